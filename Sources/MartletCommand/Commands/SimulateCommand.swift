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
        var total = SimulationReport()
        let bar = ProgressBar("simulating", console: console)
        for index in 0..<count {
            let seed = first &+ UInt64(index)
            let report = try Simulator(seed: seed, options: options).run()
            total.steps += report.steps
            total.saves += report.saves
            total.accepted += report.accepted
            total.refused += report.refused
            total.deviceCrashes += report.deviceCrashes
            total.serverCrashes += report.serverCrashes
            bar.show(done: index + 1, of: count, detail: "seed \(seed)")
        }
        bar.finish()
        if arguments.isJSON {
            console.print(json(total, seeds: count).description)
        } else {
            console.print(
                "\(count) seeds, \(total.steps) steps, \(total.saves) saves: \(total.accepted) accepted,"
                    + " \(total.refused) refused; \(total.deviceCrashes + total.serverCrashes) crashes;"
                    + " no promise broken.")
        }
        return .done
    }

    private static func json(_ report: SimulationReport, seeds: Int) -> JSONText {
        .object([
            ("seeds", .integer(Int64(seeds))), ("steps", .integer(Int64(report.steps))),
            ("saves", .integer(Int64(report.saves))),
            ("accepted", .integer(Int64(report.accepted))),
            ("refused", .integer(Int64(report.refused))),
            ("crashes", .integer(Int64(report.deviceCrashes + report.serverCrashes))),
        ])
    }
}
