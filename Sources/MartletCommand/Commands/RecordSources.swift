import Foundation
import MartletEmbedded
import MartletPostgres
import MartletServerCore
import PostgresKit
import SQLiteKit

/// The data set that a command reads for explanations.
enum RecordSources {
    static let options = [
        CommandDescription.Option(name: "data", value: "DIR", help: "the server's data folder"),
        CommandDescription.Option(
            name: "dataset", value: "NAME", help: "the data set in that folder"),
        CommandDescription.postgresOption,
    ]

    /// Calls a closure with the data set that the options name.
    /// - Throws: `UsageError` if they name none; `CommandError` if it is not there.
    static func read<Result>(
        _ arguments: ParsedArguments, _ body: (any RecordSource) throws -> Result
    ) throws -> Result {
        if arguments.value("data") != nil {
            let path = try path(arguments)
            do {
                return try body(try EmbeddedRecords(path: path))
            } catch let error as SQLiteError {
                throw CommandError("\(path): \(FailureReport(error).sentence)")
            }
        }
        let environment = ProcessInfo.processInfo.environment["MARTLET_POSTGRES"]
        guard let url = arguments.value("postgres") ?? environment, !url.isEmpty else {
            throw UsageError(
                "\(arguments.command) needs --data DIR and --dataset NAME, or --postgres URL.",
                command: arguments.command)
        }
        let connection = try PostgresConnection(
            PostgresAddress(url),
            PostgresOptions(
                readOnly: true, allowsHiddenRows: false, name: "martlet \(arguments.command)"))
        defer { connection.close() }
        return try body(try PostgresRecords(on: connection))
    }

    /// Returns the path of the data set's file.
    private static func path(_ arguments: ParsedArguments) throws -> String {
        guard let data = arguments.value("data"), let name = arguments.value("dataset") else {
            throw UsageError("--data DIR needs --dataset NAME.", command: arguments.command)
        }
        let path = URL(fileURLWithPath: data).appendingPathComponent("\(name).sqlite").path
        guard FileManager.default.fileExists(atPath: path) else {
            throw CommandError(
                "There is no data set \(name) in \(data). Check --data and --dataset.")
        }
        return path
    }
}
