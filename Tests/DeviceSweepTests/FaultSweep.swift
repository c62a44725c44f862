import RandomKit
import SQLiteFaults
import SmallWorlds
import Testing

/// Does a piece of work over and over, each time with another operation of its disk failing in
/// another way: the machine crashes, crashes again in what follows, an operation fails, the disk
/// is full.
///
/// After each, the file is whole and shows a state that is between two transactions of a run in
/// which nothing fails, no older than what somebody was told is done; then the work goes on, and
/// ends as that run does.
final class FaultSweep {
    private let scenario: SweptScenario
    private let share = SweepShare.current
    private var random: SplitMix64
    private var failures = 0
    /// Faults of which the work said that it failed.
    private var refusals = 0
    private var runs = 0

    init(_ scenario: SweptScenario) {
        self.scenario = scenario
        random = SplitMix64(seed: UInt64(SweepShare.current.offset))
    }

    private var name: String { scenario.name }

    /// Does it.
    /// - Parameters:
    ///   - limit: Points of a run that does not try all.
    ///   - transactions: How many the work has. Another number means that what was one is two by
    ///     now, so that there is something between the old and the new.
    func run(limit: Int, transactions: Int) throws {
        let start = ContinuousClock.now
        let course = try SweptCourse(of: scenario, from: scenario.images, life: 0)
        #expect(course.states.count == transactions + 1, "transactions of \(name)")
        let points = share.points(of: course, limit: limit)
        for point in points {
            do {
                try run(point, course)
            } catch {
                fail("\(error)", point)
            }
        }
        print(
            """
            sweep “\(name)”: \(course.operations) operations, \(course.reads) reads, \
            \(transactions) transactions, \(points.count) of \
            \(SweepShare.points(of: course).count) points, \
            \(runs) runs, \(refusals) refused, \(failures) failures, \
            \(ContinuousClock.now - start)\(share.isWhole ? "" : ", offset \(share.offset)")
            """)
        // Otherwise nothing has failed that mattered.
        #expect(refusals > points.count / 8)
    }

    private func fail(_ text: String, _ point: SweepPoint) {
        failures += 1
        Issue.record(
            """
            \(name), \(point.way) at operation \(point.operation): \(text) \
            (MARTLET_SWEEP_OFFSET=\(share.offset))
            """)
    }

    // MARK: - With one fault

    private func run(_ point: SweepPoint, _ course: SweptCourse) throws {
        let work = try scenario.make(scenario.images, 0)
        runs += 1
        switch point.way {
        case .crash(let survival):
            try crash(work, at: point.operation, survival, course, life: 1)
        case .crashTwice:
            let survival = FaultDisk.Survival.allCases.randomElement(using: &random) ?? .sectors
            try crash(work, at: point.operation, survival, course, life: 1)
            try crashAgain(from: work.images, point, course)
        case .failure(let kind, let isLasting):
            work.disk.failAfter(operations: point.operation, kind: kind, lasting: isLasting)
            try refuse(work, isLasting: isLasting, course)
        case .read(let isLasting):
            work.disk.failAfter(reads: point.operation, lasting: isLasting)
            try refuse(work, isLasting: isLasting, course)
        }
        try course.finish(work)
    }

    /// - Parameter life: The life after the crash, whose identities are its own.
    private func crash(
        _ work: any SweptWork, at operation: Int, _ survival: FaultDisk.Survival,
        _ course: SweptCourse, life: Int
    ) throws {
        work.disk.failAfter(operations: operation, kind: .crash)
        try attempt(work)
        let acknowledged = work.acknowledged
        work.close(life: life)
        guard work.disk.isDown else { throw SweepFailure("there is no such operation") }
        work.disk.restart(survival, using: &random)
        try course.look(at: work, acknowledged: acknowledged)
    }

    /// Starts once more from what a crash left, and crashes in that.
    private func crashAgain(
        from images: DiskImages, _ point: SweepPoint, _ course: SweptCourse
    ) throws {
        let recovery = try SweptCourse(of: scenario, from: images, life: 1)
        guard recovery.end == course.end else { throw SweepFailure("it ends otherwise") }
        let operations = share.operations(
            ofRecovery: recovery.operations, afterCrashAt: point.operation, limit: 4)
        for operation in operations {
            let work = try scenario.make(images, 1)
            runs += 1
            let survival = FaultDisk.Survival.allCases.randomElement(using: &random) ?? .sectors
            do {
                try crash(work, at: operation, survival, recovery, life: 2)
                try course.finish(work)
            } catch {
                throw SweepFailure("again at operation \(operation), \(survival): \(error)")
            }
        }
    }

    /// Lets the work fail, perhaps twice, without its process ending.
    private func refuse(_ work: any SweptWork, isLasting: Bool, _ course: SweptCourse) throws {
        if try attempt(work) == nil {
            // What failed was of no consequence, or it was the closing.
            work.close(life: 1)
        } else {
            try course.lookAfterFailure(at: work)
            if isLasting { try attempt(work) }
        }
        work.disk.heal()
    }

    @discardableResult
    private func attempt(_ work: any SweptWork) throws -> (any Error)? {
        let failure = try SweptCourse.attempt(work)
        if failure != nil { refusals += 1 }
        return failure
    }
}
