import Foundation
import Martlet
import MartletDevice
import MartletModel
import Testing

/// One scenario: the scripted server in its own process, and the real client, on a file, over HTTP.
final class Scenario: Sendable {
    /// The tables the device begins with.
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, number INTEGER CHECK (number > 0),
            team INTEGER REFERENCES teams(id) ON DELETE CASCADE
        );
        """

    let client: MartletClient
    private let server: URL
    private let file: String
    private let events: AsyncStream<ClientEvent>

    private init(client: MartletClient, server: URL, file: String) {
        self.client = client
        self.server = server
        self.file = file
        events = client.events
    }

    /// Plays a script, runs `body` against it, and expects that all has happened which the script
    /// expects.
    /// - Parameters:
    ///   - steps: The script's steps, as JSON without the brackets.
    ///   - log: Change sets the server has from the start, likewise.
    static func play(
        _ steps: String, log: String = "", default fallback: String = "log", isLive: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (Scenario) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-scenario-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let lines = schema.split(separator: "\n").map { "\"\($0)\"" }.joined(separator: ",\n")
        let script = """
            {"dataSet": "mock", "default": "\(fallback)",
             "schema": [\(lines)],
             "log": [\(log)],
             "steps": [\(steps)]}
            """
        let mock = try await MockProcess(script: script, folder: folder)
        let file = folder.appendingPathComponent("device.sqlite").path
        let scenario = Scenario(
            client: try await open(
                file, schema: schema, server: mock.address, isLive: isLive),
            server: mock.address, file: file)
        do {
            try await body(scenario)
        } catch {
            await scenario.client.close()
            _ = await mock.end()
            throw error
        }
        await scenario.client.close()
        let end = await mock.end()
        #expect(end.status == 0, "\(end.said)", sourceLocation: sourceLocation)
    }

    /// As `play`, with a device that listens to the stream.
    static func live(
        _ steps: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (Scenario) async throws -> Void
    ) async throws {
        try await play(steps, isLive: true, sourceLocation: sourceLocation, body)
    }

    private static func open(
        _ file: String, schema: String, server: URL, isLive: Bool = false
    ) async throws -> MartletClient {
        var options = ClientOptions()
        // Failures are part of every scenario; nobody waits for them.
        options.node.backoff.first = 10
        options.node.backoff.longest = 100
        options.pull = isLive ? .live(pollingEvery: nil) : .onRequest
        return try await MartletClient.open(
            path: file, schema: schema, server: server, token: "any", options: options)
    }

    /// The same file, opened by a later version of the app. The client so far is closed.
    func reopened(schema: String) async throws -> Scenario {
        await client.close()
        return Scenario(
            client: try await Self.open(file, schema: schema, server: server), server: server,
            file: file)
    }

    // MARK: - What the device has

    /// The rows of a query, each with its values joined.
    func rows(_ query: String) async throws -> [String] {
        try await client.read { context in
            try context.rows(query).map { row in
                row.values.map(Self.text).joined(separator: " ")
            }
        }
    }

    private static func text(_ value: SQLValue) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): text
        case .blob(let bytes): "\(bytes.count) bytes"
        }
    }

    /// All teams, each as its id and name.
    var teams: [String] {
        get async throws { try await rows("SELECT id, name FROM teams ORDER BY id") }
    }

    /// All players, each as id, name, number and team.
    var players: [String] {
        get async throws {
            try await rows("SELECT id, name, number, team FROM players ORDER BY id")
        }
    }

    var revision: Revision {
        get async throws { try await client.status().revision }
    }

    /// The quarantined records, each as its type and id.
    var quarantined: [String] {
        get async throws {
            try await client.quarantined().map { "\($0.type) \($0.id)" }.sorted()
        }
    }

    /// Keeps in step from now on, with the stream.
    func listen() {
        client.start()
    }

    // MARK: - Waiting

    /// Waits until something holds, looking after every event. A suite's time limit ends it.
    func until(_ condition: () async throws -> Bool) async throws {
        if try await condition() { return }
        for await _ in events {
            if try await condition() { return }
        }
    }

    /// Waits until the device is at a revision, and expects that it has gone no further.
    func until(
        revision: Revision, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await until { try await self.revision >= revision }
        same(try await self.revision, revision, sourceLocation: sourceLocation)
    }

    /// Waits for the next failure.
    func failure() async throws -> SyncError {
        for await event in events {
            if case .failed(let error, _) = event { return error }
        }
        throw SyncError(.offline, "The client was closed before anything failed.")
    }
}

/// Expects what was found to be what is wanted, and shows both where it is not: of an expression that
/// waits, `#expect` shows nothing.
func same<Found: Equatable>(
    _ found: Found, _ wanted: Found, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(found == wanted, sourceLocation: sourceLocation)
}

/// A change set as the log has it, of teams only.
/// - Parameters:
///   - create: Names of new teams by id.
///   - update: New names by id.
func set(
    _ revision: Int, create: [Int: String] = [:], update: [Int: String] = [:],
    delete: [Int] = [], type: String = "teams"
) -> String {
    let attributes = create.merging(update) { $1 }.sorted { $0.key < $1.key }.map {
        "\"\($0.key)\": {\"revision\": \(revision), \"name\": \"\($0.value)\"}"
    }
    return """
        {"revision": \(revision), "types": ["\(type)"],
         "\(type)": {"create": \(create.keys.sorted()), "update": \(update.keys.sorted()),
           "delete": \(delete), "attributes": {\(attributes.joined(separator: ", "))}}}
        """
}

/// An answer to `POST /sync`.
func answer(_ revision: Int, _ sets: String..., more: Bool = false) -> String {
    """
    {"answer": {"maxRevision": \(revision), "dataSet": "mock", "more": \(more),
      "changeSets": [\(sets.joined(separator: ", "))]}}
    """
}

/// A delta that says what a record is like now.
func upsert(
    _ version: Int, _ id: Int, _ attributes: String, type: String = "teams", new: Bool = true
) -> String {
    """
    {"v": \(version), "e": "\(type)", "eid": "\(id)", "op": "upsert", "p": {\(attributes)},
     "new": \(new)}
    """
}

/// A team's delta.
func team(_ version: Int, _ id: Int, _ name: String, new: Bool = true) -> String {
    upsert(version, id, "\"name\": \"\(name)\"", new: new)
}

/// A batch of deltas as a part of a stream.
func batch(_ from: Int?, _ next: Int, _ deltas: String..., cut: Int? = nil) -> String {
    let from = from.map { "\"from\": \($0), " } ?? ""
    let cut = cut.map { ", \"cut\": \($0)" } ?? ""
    return """
        {"batch": {\(from)"dataSet": "mock", "deltas": [\(deltas.joined(separator: ", "))],
          "nextVersion": \(next)}\(cut)}
        """
}

/// A step that answers a stream with these parts.
/// - Parameter since: What the client must say it has.
func stream(_ name: String, since: Int, _ parts: String...) -> String {
    """
    {"name": "\(name)", "on": "stream", "expect": {"since": \(since)},
     "then": {"parts": [\(parts.joined(separator: ",\n"))]}}
    """
}

/// A step that answers `POST /sync`.
/// - Parameter expect: Further expectations, as members.
func sync(
    _ name: String, since: Int? = nil, expect: String = "", times: String = "1",
    then answer: String = "{\"log\": true}"
) -> String {
    var expectations = expect
    if let since { expectations = "\"since\": \(since)" + (expect.isEmpty ? "" : ", \(expect)") }
    return """
        {"name": "\(name)", "on": "sync", "times": \(times), "expect": {\(expectations)},
         "then": \(answer)}
        """
}
