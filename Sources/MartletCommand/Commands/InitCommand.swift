import Foundation
import Martlet
import MartletModel

extension CommandDescription {
    static let initialise = CommandDescription(
        name: "init",
        summary: "make a new device file",
        discussion: """
            The file is an ordinary SQLite database with the schema's tables; without --schema they
            are the server's. With a server, the data set is fetched at once. The address and the place of the token file are kept in the
            device file for later commands; a token itself never is.
            """,
        arguments: [Argument(name: "FILE", help: "the new device file")],
        options: [
            Option(name: "schema", value: "FILE", help: "the tables as SQL CREATE statements")
        ] + DeviceFile.serverOptions,
        examples: [
            Example("init team.sqlite --schema schema.sql", "a device that works without a server"),
            Example(
                "init team.sqlite --server https://sync.example.org --token-file token",
                "one with the server's tables, that fetches the team's data"),
        ]
    ) { arguments, console in
        let path = arguments.positional[0]
        try DeviceFile.refuseFolder(path)
        try DeviceFile.refuseMissingFolder(path)
        let isThere = FileManager.default.fileExists(atPath: path)
        // A stopped init can leave a file without content, or without the settings. This one
        // continues from there.
        guard !isThere || DeviceFile.isEmpty(path) || DeviceFile.isUnfinished(path) else {
            throw CommandError(
                "\(path) exists already, and is not empty. If an init of it was stopped, go on with: martlet sync"
                    + " \(path). Otherwise choose another name; to change its schema, remove nothing: open it"
                    + " in the app with the new schema.")
        }
        let schema = try arguments.value("schema").map { try SchemaFiles.read($0) }
        guard schema != nil || DeviceFile.namesServer(arguments) else {
            throw UsageError(
                "init needs --schema FILE, or --server URL to take the server's tables.",
                command: "init")
        }
        let device: DeviceFile
        do {
            device = try await DeviceFile.create(arguments, schema: schema, isThere: isThere)
        } catch {
            // The incomplete file is useless and would block the next attempt.
            for ending in isThere ? [] : ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + ending)
            }
            throw error
        }
        let types = try await device.schema.types.count
        if !arguments.isJSON { console.note("\(path): \(types) types.") }
        if device.server != nil {
            try await device.client.sync()
            try await device.client.waitUntilSeeded()
        }
        return try await StatusReport.print(device, arguments, console)
    }
}
