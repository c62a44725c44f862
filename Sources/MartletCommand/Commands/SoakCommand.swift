import Foundation
import HTTPKit
import MartletDemo

extension CommandDescription {
    static let soak = CommandDescription(
        name: "soak",
        summary: "the same work for a long time: memory, descriptors and times must stay flat",
        discussion: """
            Starts the real server and a team of devices in this process that save, exchange, listen,
            leave, come back and reopen their files, at one pace decided by a seed. Memory,
            descriptors and threads are read from /proc meanwhile. Fails where one of them grows,
            where the 99th percentile of the time until a save was judged is more than 1.2 times as
            long in the last tenth as in the first, or where a save is lost or doubled.
            SIGTERM and SIGINT end it, and all it started.
            """,
        options: [
            Option(name: "minutes", value: "N", help: "how long, after the warm-up; default 15"),
            Option(name: "seconds", value: "N", help: "the same in seconds, for a quick look"),
            Option(name: "devices", value: "N", help: "2 to 500; default 50"),
            Option(name: "saves", value: "N", help: "of all devices each second; default 12"),
            Option(name: "seed", value: "N", help: "decides data and plan; default 1"),
            Option(
                name: "dir", value: "DIR",
                help: "where the files go; default: a temporary folder, removed when all is well"),
            Option(
                name: "databases", value: "PROGRAM",
                help: "starts PostgreSQL and Redis: two servers on them"),
            Option(
                name: "cache", value: "MIB",
                help: "the servers' memory for the newest change sets; default 1, full soon"),
            Option(name: "small", help: "a hundredth of the 110,000 records, for a quick look"),
        ],
        examples: [
            Example("soak", "a quarter of an hour on a file"),
            Example(
                "soak --databases scripts/databases --minutes 120", "two hours on PostgreSQL"),
        ]
    ) { arguments, console in
        let given = arguments.value("dir")
        let directory = given ?? temporaryFolder()
        var demo = DemoOptions(directory: directory, program: try ownProgram())
        demo.devices = try arguments.integer("devices", in: 2...500, default: 50)
        demo.seed = try arguments.seed("seed") ?? 1
        demo.databases = arguments.value("databases")
        demo.cache = try arguments.integer("cache", in: 1...65_536, default: 1)
        if arguments.has("small") { demo.size = .small }
        var options = SoakOptions(demo)
        let minutes = try arguments.integer("minutes", in: 1...10_000, default: 15)
        let seconds = try arguments.integer("seconds", in: 5...600_000, default: minutes * 60)
        options.length = .seconds(seconds)
        options.saves = Double(try arguments.integer("saves", in: 1...10_000, default: 12))
        let bars = DemoBars(console: console)
        let report = try await untilAsked(Soak(options, progress: { bars.show($0) }))
        bars.finish()
        guard let report else {
            console.note("The soak was stopped before its end, so nothing was judged.")
            if given == nil { try? FileManager.default.removeItem(atPath: directory) }
            return .failed
        }
        if arguments.isJSON {
            console.print(SoakText.json(report).description)
        } else {
            for line in SoakText.lines(report) { console.print(line) }
        }
        if given == nil, report.isGood {
            try FileManager.default.removeItem(atPath: directory)
        } else {
            console.note("The files are in \(directory).")
        }
        return report.isGood ? .done : .failed
    }

    private static func temporaryFolder() -> String {
        FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-soak-\(UUID().uuidString)").path
    }

    /// - Returns: The report; nil if the process was asked to end meanwhile. Everything is stopped
    ///   then.
    private static func untilAsked(_ soak: Soak) async throws -> SoakReport? {
        let signal = await TerminationSignal()
        let work = Task { try await soak.run() }
        let watch = Task {
            let number = await signal.wait()
            if number != nil { work.cancel() }
            return number != nil
        }
        let result = await work.result
        await signal.end()
        return await watch.value ? nil : try result.get()
    }
}
