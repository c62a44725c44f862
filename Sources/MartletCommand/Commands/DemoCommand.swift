import Foundation
import MartletDemo

extension CommandDescription {
    static let demo = CommandDescription(
        name: "demo",
        summary: "a server, a team of devices and a bad network, and an account of every save",
        discussion: """
            Starts the real server, loads about 110,000 records through one device, brings up the
            others, lets all of them work on- and offline over a network that loses a fifth of the
            answers, connects them to see each other's saves at once (fails if less than 95 % of the
            sights take a second or less, except with --small) while one more joins from a
            snapshot, and then looks for every save in the server's log and in every device's file.
            Every fifth device is one of a coach, who sees the players of his clubs by policies
            (rules.sql in DIR), and whose clubs change. The demo looks for hidden records in the
            bytes of his device's files. With --data everyone sees everything.
            It can be stopped at any moment; the next run goes on with the same files.
            """,
        options: [
            Option(name: "devices", value: "N", help: "devices, 3 to 500; default 50"),
            Option(name: "seed", value: "N", help: "decides data, edits and losses; default 1"),
            Option(name: "data", value: "FOLDER", help: "load these CSV files instead"),
            Option(name: "schema", value: "FILE", help: "the schema for --data"),
            Option(name: "dir", value: "DIR", help: "where the files go; default martlet-demo"),
            Option(name: "port", value: "N", help: "the server's port; default: a free one"),
            Option(name: "rounds", value: "N", help: "how often each device works; default 8"),
            Option(
                name: "databases", value: "PROGRAM",
                help: "starts PostgreSQL and Redis: two servers on them (make demo-postgres)"),
            Option(name: "small", help: "a hundredth of the records, for a quick look"),
        ],
        examples: [
            Example("demo", "50 devices and 110,000 records, in less than five minutes"),
            Example("demo --seed 7 --dir demo-7", "another one"),
            Example("demo --data f1db --schema Examples/f1db/schema.sql --devices 10", "your data"),
        ]
    ) { arguments, console in
        var options = DemoOptions(
            directory: arguments.value("dir") ?? "martlet-demo", program: try ownProgram())
        options.devices = try arguments.integer("devices", in: 3...500, default: 50)
        options.rounds = try arguments.integer("rounds", in: 1...1_000, default: 8)
        options.port = try arguments.integer("port", in: 0...65_535, default: 0)
        options.seed = try arguments.seed("seed") ?? 1
        options.databases = arguments.value("databases")
        if options.databases != nil, arguments.value("data") != nil {
            throw UsageError("--databases and --data do not go together.", command: "demo")
        }
        options.dataFolder = arguments.value("data")
        options.schema = try arguments.value("schema").map { try SchemaFiles.read($0) }
        if arguments.has("small") {
            options.size = .small
            options.snapshotEvery = 50
        }
        let bars = DemoBars(console: console)
        let report = try await Demo(options, progress: { bars.show($0) }).run()
        bars.finish()
        if arguments.isJSON {
            console.print(DemoText.json(report).description)
        } else {
            for line in DemoText.lines(report, directory: options.directory) { console.print(line) }
        }
        return report.isGood ? .done : .failed
    }

    /// Returns the path of the running program, which is also started as the server.
    static func ownProgram() throws -> String {
        guard let path = Bundle.main.executablePath else {
            throw CommandError("The program cannot find its own file; start it by its full path.")
        }
        return path
    }
}
