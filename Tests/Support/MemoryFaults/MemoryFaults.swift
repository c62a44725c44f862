internal import Foundation
internal import SQLiteFaults
internal import SmallWorlds

/// Does pieces of work over and over, each time with another allocation of SQLite's refused: once,
/// or from then on.
///
/// After each, the file is whole and shows a state between two transactions; the work goes on in
/// the same process, and ends as it does where nothing fails.
///
///     MemoryFaults                             every allocation
///     MemoryFaults --share COUNT [OFFSET]      about so many of each work, beginning at random
@main
enum MemoryFaults {
    static func main() throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let numbers = arguments.dropFirst().compactMap { Int($0) }
        guard arguments.isEmpty || arguments[0] == "--share" && !numbers.isEmpty else {
            say("MemoryFaults takes nothing, or --share COUNT [OFFSET].")
            exit(64)
        }
        guard FaultMemory.install() else {
            say("SQLite was used before its memory could be taken over.")
            exit(1)
        }
        let offset = numbers.dropFirst().first ?? Int.random(in: 0..<1_000_000)
        var failures = 0
        for scenario in [try SweptScenario.exchange(), try .restart(), try .serverCommit()] {
            var sweep = MemorySweep(scenario: scenario)
            try sweep.run(share: numbers.first, offset: offset)
            failures += sweep.failures
        }
        exit(failures == 0 ? 0 : 1)
    }

    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

/// One piece of work, with one allocation after another refused.
struct MemorySweep {
    let scenario: SweptScenario
    /// Works that did not end as they must.
    private(set) var failures = 0

    init(scenario: SweptScenario) {
        self.scenario = scenario
    }

    /// - Parameters:
    ///   - share: How many allocations, about; nil: each.
    ///   - offset: Where a share begins.
    mutating func run(share: Int?, offset: Int) throws {
        let start = ContinuousClock.now
        let course = try SweptCourse(of: scenario, from: scenario.images, life: 0)
        let allocations = try allocations()
        let step = max(1, allocations / (share ?? allocations))
        let points = Array(stride(from: 1 + offset % step, through: allocations, by: step))
        var refused = 0
        for allocation in points {
            for isLasting in [false, true] {
                do {
                    refused += try run(allocation, isLasting: isLasting, course) ? 1 : 0
                } catch {
                    failures += 1
                    MemoryFaults.say(
                        """
                        \(scenario.name), allocation \(allocation) \
                        \(isLasting ? "lasting" : "once"): \(error)
                        """)
                }
            }
        }
        MemoryFaults.say(
            """
            no memory in “\(scenario.name)”: \(points.count) of \(allocations) allocations, each \
            once and lasting, \(refused) refused, \(failures) failures, \
            \(ContinuousClock.now - start)\(share == nil ? "" : ", offset \(offset)")
            """)
        if refused < points.count / 2 { failures += 1 }
    }

    /// How many allocations the work asks for.
    private func allocations() throws -> Int {
        let work = try scenario.make(scenario.images, 0)
        let before = FaultMemory.allocations
        try work.act()
        return FaultMemory.allocations - before
    }

    /// - Returns: Whether the work said that it failed.
    private func run(
        _ allocation: Int, isLasting: Bool, _ course: SweptCourse
    ) throws -> Bool {
        let work = try scenario.make(scenario.images, 0)
        FaultMemory.failAfter(allocations: allocation, lasting: isLasting)
        defer { FaultMemory.heal() }
        let failure = try SweptCourse.attempt(work)
        FaultMemory.heal()
        try course.lookAfterFailure(at: work)
        try course.finish(work)
        return failure != nil
    }
}
