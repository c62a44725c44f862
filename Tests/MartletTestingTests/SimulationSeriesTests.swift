import Testing

@testable import MartletTesting

@Suite("A series of simulations")
struct SimulationSeriesTests {
    private func series(_ count: Int, jobs: Int) -> SimulationSeries {
        var series = SimulationSeries(first: 40, count: count)
        series.options.steps = 120
        series.jobs = jobs
        return series
    }

    @Test("worlds beside each other do what they do one after the other, in the order of the seeds")
    func jobs() async throws {
        let alone = try await series(4, jobs: 1).run()
        let together = try await series(4, jobs: 3).run()
        #expect(alone == together)
        #expect(alone.worlds == 4)
        var options = Simulator.Options()
        options.steps = 120
        var total = SimulationReport()
        for seed in UInt64(40)...43 { total.add(try Simulator(seed: seed, options: options).run()) }
        #expect(alone.total == total)
    }

    @Test("every so many worlds are run twice; that one is counted once")
    func repeats() async throws {
        var twice = series(3, jobs: 2)
        twice.repeats = 2
        let outcome = try await twice.run()
        #expect(outcome.repeated == 2)
        #expect(outcome.total == (try await series(3, jobs: 1).run()).total)
    }

    @Test("two runs of one seed that differ are a failure with both traces")
    func differenceOfTraces() throws {
        let one = SimulationReport()
        var other = one
        try SimulationSeries.compare(one, other, seed: 7)
        other.add("word", 1)
        let failure = #expect(throws: SimulationFailure.self) {
            try SimulationSeries.compare(one, other, seed: 7)
        }
        #expect(failure?.seed == 7)
        #expect(failure?.message.contains(one.traceText) == true)
        #expect(failure?.message.contains(other.traceText) == true)
    }

    @Test(
        "of several seeds that fail, the first one is told, whichever ends first",
        arguments: [1, 3])
    func failuresOfSeeds(jobs: Int) async throws {
        var broken = series(9, jobs: jobs)
        broken.simulate = { seed, _ throws(SimulationFailure) in
            guard seed == 42 || seed == 43 else { return SimulationReport() }
            throw SimulationFailure(
                seed: seed, step: 5, message: "broken", replay: "simulate \(seed)")
        }
        var ended = 0
        do {
            _ = try await broken.run { ended = $0 }
            Issue.record("the series did not fail")
        } catch {
            #expect(error.seed == 42)
            #expect(error.replay == "simulate 42")
        }
        #expect(jobs > 1 || ended == 3)
    }
}
