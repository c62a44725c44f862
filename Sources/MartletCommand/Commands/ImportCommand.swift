import Foundation
import Martlet
internal import MartletDevice
import MartletTransfer

extension CommandDescription {
    static let importRecords = CommandDescription(
        name: "import",
        summary: "take CSV files into a device file",
        discussion: """
            A file holds the records of the type it is named after: teams.csv or teams.csv.gz. Its
            first line names the columns. An empty field is null, "" an empty text. Ids in the files
            become new ids, and references between the files follow. All files are checked before
            anything is written; a mistake is named with file, line and column. An import that was
            interrupted goes on where it was when it is run again; one that is done is not repeated.

            Where the device file is missing it is made, with --schema, or with a schema.sql found
            beside the files, or with a schema found out from the files.
            """,
        arguments: [
            Argument(name: "FILE", help: "the device file"),
            Argument(name: "CSV", help: "CSV files, or folders of them", repeats: true),
        ],
        options: [
            Option(name: "schema", value: "FILE", help: "the schema for a new device file"),
            Option(name: "set-size", value: "N", help: "records in a change set; default 1000"),
            Option(name: "again", help: "import as new records what was imported before"),
            Option(name: "offline", help: "do not exchange with the server while importing"),
        ] + DeviceFile.serverOptions,
        examples: [
            Example("import team.sqlite season-2026/", "every CSV file of a folder"),
            Example("import team.sqlite players.csv.gz teams.csv", "two files"),
            Example(
                "import team.sqlite season-2026/ --server https://sync.example.org"
                    + " --token-file token", "and send the records while they are imported"),
        ]
    ) { arguments, console in
        try await ImportRun(arguments: arguments, console: console).run()
    }
}

/// One run of `martlet import`.
private struct ImportRun {
    let arguments: ParsedArguments
    let console: Console

    func run() async throws -> ExitCode {
        var options = ImportOptions()
        options.setSize = try arguments.integer("set-size", in: 1...50_000, default: 1_000)
        options.again = arguments.has("again")
        let paths = Array(arguments.positional.dropFirst())
        let sources = try CSVFile.find(paths).map { CSVSource($0) }
        let device = try await open(paths)
        let exchanges = device.server != nil && !arguments.has("offline")
        let bar = ProgressBar("importing", console: console)
        let result = try await Importer(client: device.client, options: options).run(
            sources, schema: try await device.schema,
            progress: { bar.show(done: $0.done, of: $0.total, detail: $0.type) },
            afterSet: { sets in
                if exchanges, sets.isMultiple(of: 10) { try await send(device) }
            })
        bar.finish()
        if exchanges { try await send(device) }
        let status = try await device.client.status()
        await device.client.close()
        report(result, queued: status.outbox)
        return status.parked > 0 ? .conflictsParked : .done
    }

    private func open(_ paths: [String]) async throws -> DeviceFile {
        let path = arguments.positional[0]
        // A stopped import can leave a file without content. This one creates it again.
        if FileManager.default.fileExists(atPath: path), !DeviceFile.isEmpty(path) {
            return try await DeviceFile.open(arguments)
        }
        let schema = try SchemaFiles.forFiles(
            paths, given: arguments.value("schema"), console: console)
        return try await DeviceFile.create(arguments, schema: schema)
    }

    /// Sends the records. An unreachable server or an untrusted certificate does not stop an
    /// import, because the records are queued.
    private func send(_ device: DeviceFile) async throws {
        do {
            try await device.client.sync()
        } catch let error as SyncError where [.wait, .checkServer].contains(error.remedy) {
            return
        }
    }

    private func report(_ result: ImportReport, queued: Int) {
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("records", .integer(Int64(result.records))),
                    ("skipped", .integer(Int64(result.skipped))),
                    ("changeSets", .integer(Int64(result.changeSets))),
                    ("queued", .integer(Int64(queued))),
                ]).description)
            return
        }
        let skipped = result.skipped == 0 ? "" : " (\(result.skipped) were there from before)"
        console.print("\(result.records) records in \(result.changeSets) change sets\(skipped).")
        if queued > 0 {
            console.print("\(queued) change sets are queued; send them with: martlet sync")
        }
    }
}
