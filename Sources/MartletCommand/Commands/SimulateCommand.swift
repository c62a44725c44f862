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
            Option(name: "jobs", value: "N", help: "how many to run at a time; default 1"),
            Option(name: "steps", value: "N", help: "events before faults stop; default 2000"),
            Option(name: "devices", value: "N", help: "default 5"),
            Option(
                name: "policies", value: "N",
                help: "of a hundred worlds with Martlet's own tables, N have policies; default 0"),
            Option(
                name: "repeat", value: "N",
                help: "run every Nth seed twice and compare the traces; default none"),
            Option(name: "story", help: "print what happens in the first world, line by line"),
            Option(name: "every-fault", help: "fail when a kind of fault did not occur"),
        ],
        examples: [
            Example("simulate --seed 42", "replay one run"),
            Example("simulate --seed 42 --story", "what happened in it"),
            Example("simulate --seed 1000 --seeds 50 --jobs 2", "fifty new ones on two cores"),
        ]
    ) { arguments, console in
        var options = Simulator.Options()
        options.steps = try arguments.integer("steps", in: 1...100_000_000, default: options.steps)
        options.devices = try arguments.integer("devices", in: 1...500, default: options.devices)
        options.policies = try arguments.integer(
            "policies", in: 0...100, default: options.policies)
        let count = try arguments.integer("seeds", in: 1...1_000_000, default: 1)
        var series = SimulationSeries(first: try arguments.seed("seed") ?? 1, count: count)
        series.options = options
        series.jobs = try arguments.integer("jobs", in: 1...256, default: 1)
        if arguments.value("repeat") != nil {
            series.repeats = try arguments.integer("repeat", in: 1...1_000_000, default: 1)
        }
        if arguments.has("story") {
            series.count = 1
            series.options.tell = { console.print($0) }
        }
        let bar = ProgressBar("simulating", console: console)
        let outcome: SimulationSeries.Outcome
        do throws(SimulationFailure) {
            outcome = try await series.run { bar.show(done: $0, of: count) }
        } catch {
            bar.finish()
            var further = series.repeats == nil ? "" : " --repeat 1"
            if arguments.value("policies") != nil { further += " --policies \(options.policies)" }
            throw CommandError(
                """
                A promise was broken. Seed \(error.seed), step \(error.step): \(error.message)
                Replay it: martlet simulate --seed \(error.seed) --steps \(options.steps) \
                --devices \(options.devices)\(further)
                """)
        }
        bar.finish()
        let missing = outcome.total.missing(of: options.faults).map(\.rawValue)
        Self.print(outcome, of: options.faults, missing: missing, arguments, console)
        guard missing.isEmpty || !arguments.has("every-fault") else {
            throw CommandError(
                "Faults that were asked for did not occur: \(missing.joined(separator: ", ")). Run"
                    + " more seeds, or look for what keeps them away.")
        }
        return .done
    }

    private static func print(
        _ outcome: SimulationSeries.Outcome, of plan: FaultPlan, missing: [String],
        _ arguments: ParsedArguments, _ console: Console
    ) {
        let totals = totals(outcome)
        let faults = plan.kinds.map { ($0.rawValue, outcome.total.faults[$0, default: 0]) }
        if arguments.isJSON {
            var members = totals.map { ($0.name, JSONText.integer(Int64($0.count))) }
            members.append(("faults", .object(faults.map { ($0.0, .integer(Int64($0.1))) })))
            members.append(("missing", .list(missing.map { .text($0) })))
            members.append(("trace", .text(outcome.total.traceText)))
            console.print(JSONText.object(members).description)
            return
        }
        console.print(totals.map { "\($0.count) \($0.name)" }.joined(separator: ", ") + ";")
        console.print("faults: \(faults.map { "\($0.1) \($0.0)" }.joined(separator: ", "));")
        console.print("trace \(outcome.total.traceText); no promise broken.")
        if !missing.isEmpty {
            console.print("did not occur: \(missing.joined(separator: ", "))")
        }
    }

    private static func totals(
        _ outcome: SimulationSeries.Outcome
    ) -> [(name: String, count: Int)] {
        let total = outcome.total
        return [
            ("seeds", outcome.worlds), ("steps", total.steps), ("saves", total.saves),
            ("accepted", total.accepted), ("refused", total.refused),
            ("lostMessages", total.lostMessages), ("deviceCrashes", total.deviceCrashes),
            ("serverCrashes", total.serverCrashes), ("diskErrors", total.diskErrors),
            ("newBeginnings", total.newBeginnings), ("streams", total.streams),
            ("batches", total.batches), ("snapshots", total.snapshots),
            ("viewSnapshots", total.viewSnapshots), ("parts", total.parts),
            ("partsGone", total.partsGone), ("compactions", total.compactions),
            ("externalWrites", total.externalWrites), ("moves", total.moves),
            ("purges", total.purges), ("forbidden", total.forbidden),
            ("refusedAtOnce", total.refusedAtOnce),
            ("runTwice", outcome.repeated),
        ]
    }
}
