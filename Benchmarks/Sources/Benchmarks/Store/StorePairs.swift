import CStore
import Foundation
import MartletStore

/// What one run of either side took.
struct StoreTime {
    var seconds: Double
    /// CPU of all threads.
    var processorSeconds: Double

    init(_ result: store_time) {
        seconds = result.seconds
        processorSeconds = result.processor_seconds
    }

    /// Times Swift's side.
    init(_ body: () async throws -> Void) async rethrows {
        let (from, used) = (DispatchTime.now().uptimeNanoseconds, Machine.processorSeconds)
        try await body()
        processorSeconds = Machine.processorSeconds - used
        seconds = Double(DispatchTime.now().uptimeNanoseconds - from) / 1e9
    }
}

/// Runs of C and of Martlet in turn; what counts is each pair's ratio, since whatever else the
/// machine does falls on both.
struct StorePairs {
    private let group: String
    private var floors: [StoreTime] = []
    private var ours: [StoreTime] = []

    private init(group: String) {
        self.group = group
    }

    /// - Parameter pairs: One more is run first and forgotten.
    static func run(
        pairs: Int, group: String = "store", _ title: String, expected: String?,
        floor: () throws -> StoreTime, ours: () async throws -> StoreTime
    ) async throws {
        var result = StorePairs(group: group)
        for pair in 0...pairs {
            let (bare, own) = (try floor(), try await ours())
            guard pair > 0 else { continue }
            result.floors.append(bare)
            result.ours.append(own)
        }
        try result.report(title, expected: expected)
    }

    private func report(_ title: String, expected: String?) throws {
        let name = "\(group)/\(title)"
        let milliseconds = { (times: [StoreTime]) in times.map { $0.seconds * 1_000 } }
        try Measurement("\(name), C", unit: "ms", samples: milliseconds(floors)).report()
        try Measurement("\(name), Martlet", unit: "ms", samples: milliseconds(ours)).report()
        try Measurement(
            "\(name), ratio of wall time", unit: "x C",
            samples: zip(ours, floors).map { $0.seconds / $1.seconds }, expected: expected
        ).report()
        try Measurement(
            "\(name), ratio of CPU", unit: "x C",
            samples: zip(ours, floors).map { $0.processorSeconds / $1.processorSeconds },
            expected: expected
        ).report()
    }
}

/// A file in a folder of its own.
struct StoreFile {
    let path: String
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appendingPathComponent("store.sqlite").path
    }

    func remove() {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Runs a part of the C program.
    static func floor(_ body: (inout store_time) -> Int32) throws -> StoreTime {
        var result = store_time()
        let code = body(&result)
        guard code == 0 else { throw BenchmarkFailure("SQLite failed with code \(code).") }
        return StoreTime(result)
    }
}
