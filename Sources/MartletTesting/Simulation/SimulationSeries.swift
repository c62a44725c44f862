/// A run of worlds with consecutive seeds, several of them at a time.
///
/// Each world runs in one thread from its beginning to its end, with its own disks, so that
/// concurrent worlds do not affect it. The results are combined in the order of the seeds.
package struct SimulationSeries: Sendable {
    /// The seed of the first world.
    package var first: UInt64
    /// The number of worlds.
    package var count: Int
    /// The size of each world.
    package var options = Simulator.Options()
    /// The number of worlds that run at a time.
    package var jobs = 1
    /// One world in this many runs twice, to compare the traces; nil to repeat none.
    package var repeats: Int?
    /// Runs one world. Tests replace it.
    var simulate:
        @Sendable (UInt64, Simulator.Options) throws(SimulationFailure) ->
            SimulationReport = { seed, options throws(SimulationFailure) in
                try Simulator(seed: seed, options: options).run()
            }

    package init(first: UInt64, count: Int) {
        self.first = first
        self.count = count
    }

    /// The results of a series.
    package struct Outcome: Hashable, Sendable {
        /// The sum of all reports. Its trace is a hash over their traces, in the order of the
        /// seeds.
        package var total = SimulationReport()
        package var worlds = 0
        /// The number of worlds that were run twice, with the same trace.
        package var repeated = 0
    }

    private typealias Result = Swift.Result<SimulationReport, SimulationFailure>

    /// Runs all worlds.
    /// - Parameter progress: Called after each world with the number of worlds that have ended.
    /// - Throws: The failure of the first seed that fails. Worlds that had begun by then run to
    ///   their end, and no others begin.
    package func run(
        progress: (_ ended: Int) -> Void = { _ in }
    ) async throws(SimulationFailure) -> Outcome {
        var outcome = Outcome()
        for (index, result) in await results(progress).sorted(by: { $0.key < $1.key }) {
            outcome.total.add(try result.get())
            outcome.worlds += 1
            if isRepeated(index) { outcome.repeated += 1 }
        }
        return outcome
    }

    /// Returns the results by the world's number, without worlds that did not begin.
    private func results(_ progress: (Int) -> Void) async -> [Int: Result] {
        await withTaskGroup(of: (Int, Result).self) { group in
            var results: [Int: Result] = [:]
            var next = 0
            var hasFailed = false
            while next < min(jobs, count) {
                let index = next
                group.addTask { (index, world(index)) }
                next += 1
            }
            for await (index, result) in group {
                results[index] = result
                progress(results.count)
                if case .failure = result { hasFailed = true }
                guard !hasFailed, next < count else { continue }
                let following = next
                group.addTask { (following, world(following)) }
                next += 1
            }
            return results
        }
    }

    private func isRepeated(_ index: Int) -> Bool {
        repeats.map { index % $0 == 0 } ?? false
    }

    /// Runs one world to its end. It never suspends.
    private func world(_ index: Int) -> Result {
        let seed = first &+ UInt64(index)
        do {
            let report = try simulate(seed, options)
            if isRepeated(index) {
                try Self.compare(report, try simulate(seed, options), seed: seed)
            }
            return .success(report)
        } catch {
            return .failure(error)
        }
    }

    /// - Throws: `SimulationFailure` if two runs of one seed differ.
    static func compare(
        _ one: SimulationReport, _ other: SimulationReport, seed: UInt64
    ) throws(SimulationFailure) {
        guard one != other else { return }
        throw SimulationFailure(
            seed: seed, step: min(one.steps, other.steps),
            message: "two runs of this seed differ: one took \(one.steps) steps, its trace"
                + " \(one.traceText), the other \(other.steps), its trace \(other.traceText)."
                + " Something besides the seed decides what happens.",
            replay: "martlet simulate --seed \(seed) --repeat 1")
    }
}

extension SimulationReport {
    /// The hash of the trace as a text, for people to compare.
    package var traceText: String {
        let digits = String(trace, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
