import Foundation
import Martlet
import MartletModel
import MartletStore
import SQLiteKit

/// A device's file, as the commands open it, and its server.
struct DeviceFile {
    let path: String
    let client: MartletClient
    /// The server's address; nil if the device has none yet.
    let server: URL?

    /// The table in which `init` stores settings for later commands. It never contains the token.
    private static let settingsScript =
        "CREATE TABLE IF NOT EXISTS martlet_command(name TEXT PRIMARY KEY, value TEXT NOT NULL)"

    static let serverOptions: [CommandDescription.Option] = [
        .init(name: "server", value: "URL", help: "the server; default: the one init was given"),
        .init(name: "token", value: "TOKEN", help: "the token; others on this machine may see it"),
        .init(
            name: "token-file", value: "FILE",
            help: "a file with the token; default: MARTLET_TOKEN, or the file init was given"),
    ]

    /// Opens an existing device's file.
    /// - Parameter needsServer: Whether a server's address must be known.
    /// - Throws: `CommandError` if the file is missing or is not Martlet's.
    static func open(
        _ arguments: ParsedArguments, needsServer: Bool = false
    ) async throws -> DeviceFile {
        let path = arguments.positional[0]
        guard FileManager.default.fileExists(atPath: path) else {
            throw CommandError(
                "There is no file \(path). Make one with: martlet init \(path) --schema FILE")
        }
        try refuseFolder(path)
        let settings = try settings(path)
        let server = try address(arguments, settings)
        guard !needsServer || server != nil else {
            throw CommandError("\(path) knows no server. Name it with --server URL.")
        }
        let token = try server == nil ? nil : token(arguments, settings)
        let client: MartletClient
        do {
            client = try await MartletClient.open(
                path: path, schema: nil, server: server, token: token)
        } catch {
            throw named(error, path)
        }
        return DeviceFile(path: path, client: client, server: server)
    }

    /// Returns the error for a file that this user may only read; any other error as it is.
    static func named(_ error: any Error, _ path: String) -> any Error {
        let refusal = error as? StoreError
        guard
            (error as? SQLiteError)?.isReadOnly == true
                || refusal?.kind == .readOnly && refusal?.code != nil
        else { return error }
        return CommandError(
            "\(path) can only be read by this user, or is on a disk that can only be read. Martlet writes to a"
                + " device file even to show how it stands. Get the right to write to it and to its folder."
        )
    }

    /// - Throws: `CommandError` if the path is that of a folder.
    static func refuseFolder(_ path: String) throws {
        let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        let kind = try? FileManager.default.attributesOfItem(atPath: resolved.path)[.type]
        guard kind as? FileAttributeType != .typeDirectory else {
            throw CommandError("\(path) is a folder. Name the device file in it.")
        }
    }

    /// - Throws: `CommandError` if a new file's folder does not exist.
    static func refuseMissingFolder(_ path: String) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
            .resolvingSymlinksInPath().path
        let kind = try? FileManager.default.attributesOfItem(atPath: folder)[.type]
        guard kind as? FileAttributeType != .typeDirectory else { return }
        throw CommandError(
            "There is no folder \(folder), so \(path) cannot be made. Make the folder first, or name"
                + " another.")
    }

    /// Creates a device's file and stores the server's address in it.
    /// - Parameter isThere: Whether a stopped `init` has left a file. Its settings are stored only after the server
    ///   has answered: the file may be a device of another user, who gave another token then.
    /// - Throws: `CommandError` if it is.
    static func create(
        _ arguments: ParsedArguments, schema: String?, isThere: Bool = false
    ) async throws -> DeviceFile {
        let path = arguments.positional[0]
        let server = try address(arguments, [:])
        let token = try server == nil ? nil : token(arguments, [:])
        var options = ClientOptions()
        options.seeding = server == nil ? nil : .server
        let client = try await MartletClient.open(
            path: path, schema: schema, server: server, token: token, options: options)
        if isThere, server != nil {
            do {
                try await client.sync()
            } catch {
                await client.close()
                guard (error as? SyncError)?.kind == .wrongUser else { throw error }
                throw CommandError(
                    "\(path) is a device of another user: an init with that user's token was stopped. Nothing was"
                        + " changed. Go on with that token, or remove \(path) and run init again.")
            }
        }
        var settings: [(String, String)] = []
        if let server { settings.append(("server", server.absoluteString)) }
        if let file = arguments.value("token-file") {
            settings.append(("token-file", URL(fileURLWithPath: file).path))
        }
        let kept = settings
        try await client.write { context in
            try context.rows(settingsScript)
            for (name, value) in kept {
                try context.rows(
                    "INSERT OR REPLACE INTO martlet_command VALUES (?, ?)",
                    [.text(name), .text(value)])
            }
        }
        return DeviceFile(path: path, client: client, server: server)
    }

    var schema: Schema {
        get async throws { try await client.read { $0.schema } }
    }

    private static func settings(_ path: String) throws -> [String: String] {
        do {
            return try settings(path, Connection(path: path, mode: .readOnly))
        } catch let error as SQLiteError {
            // A program that was stopped during a write may have left a journal. The first
            // connection that can write uses it to undo the write.
            guard let connection = try? Connection(path: path, mode: .readWrite),
                (try? connection.integer("SELECT count(*) FROM sqlite_master")) != nil
            else { throw error }
            return try settings(path, connection)
        }
    }

    /// Returns whether a file has no byte, or is a database without tables, as a stopped `init` leaves it.
    static func isEmpty(_ path: String) -> Bool {
        // SQLite takes a file of one byte, whatever it is, for an empty database.
        let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        let size = try? FileManager.default.attributesOfItem(atPath: resolved.path)[.size]
        guard (size as? NSNumber)?.intValue != 1 else { return false }
        let connection = try? Connection(path: path, mode: .readWrite)
        return (try? connection?.integer("SELECT count(*) FROM sqlite_master")) == 0
    }

    /// Returns whether a device's file keeps nothing for the commands and holds no work, as an `init` leaves
    /// it that was stopped once the tables were there.
    static func isUnfinished(_ path: String) -> Bool {
        let connection = try? Connection(path: path, mode: .readWrite)
        let names =
            "SELECT group_concat(name) FROM sqlite_master"
            + " WHERE name IN ('martlet_state', 'martlet_command')"
        guard (try? connection?.text(names)) == "martlet_state" else { return false }
        let work =
            "SELECT (SELECT count(*) FROM martlet_outbox) + (SELECT count(*) FROM martlet_changes)"
        return (try? connection?.integer(work)) == 0
    }

    private static func settings(
        _ path: String, _ connection: Connection
    ) throws -> [String: String] {
        let known = try connection.integer(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('martlet_state', 'martlet_command')")
        guard let known, known > 0 else {
            if try connection.integer("SELECT 1 FROM sqlite_master LIMIT 1") == nil {
                throw CommandError(
                    "\(path) is empty; an init that was stopped leaves such a file. Run the same"
                        + " martlet init \(path) once more.")
            }
            throw CommandError(
                "\(path) is no device's file. Make one with: martlet init NEW.sqlite --schema FILE")
        }
        guard known == 2 else { return [:] }
        let statement = try connection.statement("SELECT name, value FROM martlet_command")
        defer { statement.reset() }
        var settings: [String: String] = [:]
        while try statement.step() { settings[statement.text(0)] = statement.text(1) }
        return settings
    }

    /// Returns whether a server's address is given, in the arguments or in the environment.
    static func namesServer(_ arguments: ParsedArguments) -> Bool {
        arguments.value("server") != nil
            || ProcessInfo.processInfo.environment["MARTLET_SERVER"] != nil
    }

    private static func address(
        _ arguments: ParsedArguments, _ settings: [String: String]
    ) throws -> URL? {
        let environment = ProcessInfo.processInfo.environment["MARTLET_SERVER"]
        guard let text = arguments.value("server") ?? environment ?? settings["server"] else {
            return nil
        }
        guard let url = URL(string: text), url.host != nil, url.scheme != nil else {
            throw UsageError(
                "--server takes an address such as https://sync.example.org.",
                command: arguments.command)
        }
        return url
    }

    /// Returns the transport to the server that the arguments name.
    static func transport(_ arguments: ParsedArguments) throws -> URLSessionTransport {
        guard let server = try address(arguments, [:]) else {
            throw UsageError(
                "\(arguments.command) needs --server URL, or MARTLET_SERVER.",
                command: arguments.command)
        }
        return try URLSessionTransport(server: server, token: try token(arguments, [:]))
    }

    private static func token(
        _ arguments: ParsedArguments, _ settings: [String: String]
    ) throws -> String? {
        if let token = arguments.value("token") { return token }
        let environment = ProcessInfo.processInfo.environment["MARTLET_TOKEN"]
        if arguments.value("token-file") == nil, let environment { return environment }
        guard let file = arguments.value("token-file") ?? settings["token-file"] else {
            return nil
        }
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw CommandError("The token file \(file) cannot be read. Name it with --token-file.")
        }
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !token.contains(where: \.isNewline) else {
            throw CommandError(
                "The token file \(file) has more than one line. Leave one in it, with the token.")
        }
        return token
    }
}
