import Foundation
import SQLiteFaults
import SmallWorlds

/// A way for an operation to fail.
enum SweepWay: Hashable, CaseIterable, CustomStringConvertible {
    /// The machine goes down, and comes up with so much of what was not synced.
    case crash(FaultDisk.Survival)
    /// And goes down once more at some operation of what follows.
    case crashTwice
    case failure(FaultDisk.Failure, isLasting: Bool)
    /// A read fails.
    case read(isLasting: Bool)

    static let allCases: [SweepWay] =
        FaultDisk.Survival.allCases.map { .crash($0) } + [
            .crashTwice,
            .failure(.ioError, isLasting: false), .failure(.ioError, isLasting: true),
            .failure(.full, isLasting: false), .failure(.full, isLasting: true),
            .read(isLasting: false), .read(isLasting: true),
        ]

    var description: String {
        switch self {
        case .crash(let survival): "crash, \(survival) survives"
        case .crashTwice: "crash, and again"
        case .failure(let kind, let isLasting): "\(kind) \(isLasting ? "lasting" : "once")"
        case .read(let isLasting): "no read, \(isLasting ? "lasting" : "once")"
        }
    }
}

/// One operation that fails in one way.
struct SweepPoint: Hashable {
    /// Which operation, or which read, from 1.
    let operation: Int
    let way: SweepWay
}

/// How much of a sweep is done: by default a share of the points, another one with each run.
struct SweepShare {
    /// Every point, as `scripts/long sweep` asks for.
    let isWhole: Bool
    /// Where the share begins; a printed one, given as MARTLET_SWEEP_OFFSET, repeats a run.
    let offset: Int

    static let current: SweepShare = {
        let environment = ProcessInfo.processInfo.environment
        let offset = environment["MARTLET_SWEEP_OFFSET"].flatMap { Int($0) }
        return SweepShare(
            isWhole: environment["MARTLET_SWEEP"] == "all",
            offset: offset ?? Int.random(in: 0..<1_000_000))
    }()

    /// The points to try.
    /// - Parameters:
    ///   - course: A run in which nothing fails.
    ///   - limit: How many points, where not all are tried; about.
    func points(of course: SweptCourse, limit: Int) -> [SweepPoint] {
        let all = Self.points(of: course)
        guard !isWhole, all.count > limit else { return all }
        let stride = all.count / limit
        return Swift.stride(from: offset % stride, to: all.count, by: stride).map { all[$0] }
    }

    /// Every point there is.
    static func points(of course: SweptCourse) -> [SweepPoint] {
        SweepWay.allCases.flatMap { way in
            let count = if case .read = way { course.reads } else { course.operations }
            return (0..<count).map { SweepPoint(operation: $0 + 1, way: way) }
        }
    }

    /// The operations of a recovery at which the machine goes down once more.
    func operations(ofRecovery count: Int, afterCrashAt operation: Int, limit: Int) -> [Int] {
        guard count > 0 else { return [] }
        let wanted = isWhole ? max(1, min(count, limit)) : 1
        let stride = max(1, count / wanted)
        let first = (isWhole ? operation : offset + operation * 7) % stride
        return Swift.stride(from: first, to: count, by: stride).map { $0 + 1 }
    }
}
