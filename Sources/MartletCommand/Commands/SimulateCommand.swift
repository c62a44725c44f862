import MartletTesting

extension CommandDescription {
    static let simulate = CommandDescription(
        name: "simulate",
        summary: "run simulated teams on virtual time, or replay one by its seed",
        discussion: """
            The real code of server and devices, with a simulated network, clock and disk that lose,
            delay, double and crash. The same seed gives the same run; a failing one is printed with
            the command that replays it.
            """,
        options: [
            Option(name: "seed", value: "N", help: "the first seed; default 1"),
            Option(name: "seeds", value: "N", help: "how many seeds to run; default 1"),
            Option(name: "steps", value: "N", help: "events before faults stop; default 2000"),
            Option(name: "devices", value: "N", help: "default 5"),
        ],
        examples: [
            Example("simulate --seed 42", "replay one run"),
            Example("simulate --seed 1000 --seeds 50", "fifty new ones"),
        ]
    ) { arguments, console in
        var options = Simulator.Options()
        options.steps = try arguments.integer("steps", in: 1...100_000_000, default: options.steps)
        options.devices = try arguments.integer("devices", in: 1...500, default: options.devices)
        let first = try arguments.seed("seed") ?? 1
        let count = try arguments.integer("seeds", in: 1...1_000_000, default: 1)
        var reports: [SimulationReport] = []
        let bar = ProgressBar("simulating", console: console)
        for index in 0..<count {
            let seed = first &+ UInt64(index)
            do {
                reports.append(try Simulator(seed: seed, options: options).run())
            } catch let failure as SimulationFailure {
                bar.finish()
                throw CommandError(
                    """
                    A promise was broken. Seed \(seed), step \(failure.step): \(failure.message)
                    Replay it: martlet simulate --seed \(seed) --steps \(options.steps) \
                    --devices \(options.devices)
                    """)
            }
            bar.show(done: index + 1, of: count, detail: "seed \(seed)")
        }
        bar.finish()
        let totals = Self.totals(reports)
        if arguments.isJSON {
            console.print(
                JSONText.object(totals.map { ($0.name, .integer(Int64($0.count))) }).description)
        } else {
            console.print(totals.map { "\($0.count) \($0.name)" }.joined(separator: ", ") + ";")
            console.print("no promise broken.")
            let missing = options.faults.kinds.filter { kind in
                reports.allSatisfy { $0.faults[kind, default: 0] == 0 }
            }
            if !missing.isEmpty {
                console.print("did not occur: \(missing.map(\.rawValue).joined(separator: ", "))")
            }
        }
        return .done
    }

    private static func totals(_ reports: [SimulationReport]) -> [(name: String, count: Int)] {
        func sum(_ value: (SimulationReport) -> Int) -> Int { reports.reduce(0) { $0 + value($1) } }
        return [
            ("seeds", reports.count), ("steps", sum(\.steps)), ("saves", sum(\.saves)),
            ("accepted", sum(\.accepted)), ("refused", sum(\.refused)),
            ("lostMessages", sum(\.lostMessages)), ("deviceCrashes", sum(\.deviceCrashes)),
            ("serverCrashes", sum(\.serverCrashes)), ("diskErrors", sum(\.diskErrors)),
            ("newBeginnings", sum(\.newBeginnings)), ("streams", sum(\.streams)),
            ("batches", sum(\.batches)), ("snapshots", sum(\.snapshots)),
            ("parts", sum(\.parts)), ("partsGone", sum(\.partsGone)),
            ("compactions", sum(\.compactions)),
        ]
    }
}
