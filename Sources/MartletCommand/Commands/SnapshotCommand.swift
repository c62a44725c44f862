import Foundation
import Martlet
import MartletEmbedded
import MartletServerCore

extension CommandDescription {
    static let snapshot = CommandDescription(
        name: "snapshot",
        summary: "make a snapshot to ship with an app",
        discussion: """
            Writes a data set as one SQLite file that a new device can begin with. From a server it
            fetches the newest snapshot the server has made; from a data folder it makes a new one, of
            this moment, while the server may go on. An app copies the file at its first launch
            (`Seeding.file`) and fetches what is newer.
            """,
        options: DeviceFile.serverOptions + [
            Option(
                name: "data", value: "DIR", help: "a server's data folder, in place of a server"),
            Option(name: "dataset", value: "NAME", help: "the data set in that folder"),
            Option(
                name: "out", value: "FILE", help: "the file to write; one that is there is replaced"
            ),
        ],
        examples: [
            Example(
                "snapshot --server https://sync.example.org --token-file token --out team.sqlite",
                "what the server has made last"),
            Example("snapshot --data data --dataset team --out team.sqlite", "as of now"),
        ]
    ) { arguments, console in
        guard let out = arguments.value("out") else {
            throw UsageError("snapshot needs --out FILE.", command: "snapshot")
        }
        let path = URL(fileURLWithPath: out).path
        let snapshot: ShippedSnapshot
        if let data = arguments.value("data") {
            snapshot = try await make(data, arguments.value("dataset"), path)
        } else {
            let transport = try DeviceFile.transport(arguments)
            snapshot = try await ShippedSnapshot.fetch(from: transport, to: path)
        }
        if arguments.isJSON {
            console.print(
                JSONText.object([
                    ("file", .text(out)), ("dataSet", .text(snapshot.dataSet)),
                    ("revision", .integer(snapshot.revision)),
                    ("records", .integer(snapshot.records)),
                ]).description)
        } else {
            console.print("\(out): \(snapshot.records) records at revision \(snapshot.revision)")
        }
        return .done
    }

    private static func make(
        _ data: String, _ name: String?, _ path: String
    ) async throws -> ShippedSnapshot {
        guard let name else {
            throw UsageError("snapshot --data DIR needs --dataset NAME.", command: "snapshot")
        }
        let source = URL(fileURLWithPath: data).appendingPathComponent("\(name).sqlite").path
        guard FileManager.default.fileExists(atPath: source) else {
            throw CommandError(
                "There is no data set \(name) in \(data). Check --data and --dataset.")
        }
        // The process number keeps a concurrent command's file apart.
        let number = ProcessInfo.processInfo.processIdentifier
        let made = "\(URL(fileURLWithPath: path).lastPathComponent).\(number).making"
        let target = URL(fileURLWithPath: path).deletingLastPathComponent()
            .appendingPathComponent(made).path
        do {
            try await make(from: source, at: target)
            return try ShippedSnapshot.finish(made, at: path)
        } catch {
            try? FileManager.default.removeItem(atPath: target)
            throw error
        }
    }

    /// Makes the file. A server that runs on the folder takes external writes in within moments,
    /// and this waits for it.
    private static func make(from source: String, at target: String) async throws {
        var tries = 1
        while true {
            do {
                _ = try SnapshotMaker(path: source).make { _ in target }
                return
            } catch let fault as StorageFault where fault.kind == .busy && tries < 20 {
                tries += 1
                try await Task.sleep(for: .milliseconds(100))
            }
        }
    }
}
