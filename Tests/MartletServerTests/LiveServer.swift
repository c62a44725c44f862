import DeflateKit
import Foundation
import MartletServer
import SocketTalk
import Synchronization
import Testing
import Waiting

/// A server on a free port over a folder of its own, with one fixed token, “secret”, for “league”.
final class LiveServer: Sendable {
    static let schema = """
        CREATE TABLE teams (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, founded INTEGER, logo BLOB
        );
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT NOT NULL, active BOOLEAN, fee NUMERIC, height REAL
        );
        CREATE INDEX players_by_team ON players(team);
        """

    let server: MartletServer
    let port: Int
    let folder: TemporaryFolder
    private let lines: Lines

    init(
        folder: TemporaryFolder = TemporaryFolder(),
        _ configure: (inout ServerConfiguration) throws -> Void = { _ in }
    ) async throws {
        let lines = Lines()
        var configuration = ServerConfiguration(
            dataDirectory: folder.path, schema: Self.schema)
        configuration.tokens = [try FixedToken("league:secret")]
        configuration.log = ServerLog(minimum: .debug) { lines.add($0) }
        configuration.stopGrace = .seconds(60)
        try configure(&configuration)
        self.folder = folder
        self.lines = lines
        server = MartletServer(configuration)
        port = try await server.start()
    }

    /// The log so far.
    var logLines: [String] { lines.all }

    func stop() async {
        await server.stop()
    }

    /// An answer, read.
    struct Answer: Sendable {
        var status: Int
        var headers: [String: String]
        var body: String

        /// A member of the JSON body.
        func member<Value>(_ name: String) throws -> Value? {
            let object = try JSONSerialization.jsonObject(with: Data(body.utf8))
            return (object as? [String: Any])?[name] as? Value
        }

        var kind: String? { try? member("kind") }
        var changeSets: [[String: Any]] {
            ((try? member("changeSets")) as [[String: Any]]?) ?? []
        }
    }

    /// Sends one request on a connection of its own and reads the answer.
    func request(
        _ method: String, _ path: String, headers: [String] = [], body: [UInt8] = []
    ) async throws -> Answer {
        let client = RawClient(port: port)
        var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        for header in headers { head += header + "\r\n" }
        head += "Content-Length: \(body.count)\r\n\r\n"
        await client.send([UInt8](head.utf8) + body)
        return try Self.answer(await client.readBytes())
    }

    static func answer(_ bytes: [UInt8]) throws -> Answer {
        let end = try #require(bytes.firstRange(of: [13, 10, 13, 10]), "an answer with a head")
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            .components(separatedBy: "\r\n")
        let status = try #require(Int(lines[0].split(separator: " ")[1]))
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        var body = [UInt8](bytes[end.upperBound...])
        if headers["content-encoding"] == "gzip" {
            body = try OneShotGzip.inflate(body, limit: 1 << 26, ratio: 10_000, ratioFloor: 1 << 26)
        }
        return Answer(
            status: status, headers: headers, body: String(decoding: body, as: UTF8.self))
    }

    /// `POST /sync` with a token and a JSON body.
    func sync(
        _ body: String, token: String = "secret", headers: [String] = []
    ) async throws -> Answer {
        try await request(
            "POST", "/sync",
            headers: ["Authorization: Bearer \(token)", "Content-Type: application/json"]
                + headers, body: [UInt8](body.utf8))
    }

    /// Waits until `GET /metrics` has all these lines. The server may count a request a moment
    /// after its answer.
    func untilMetrics(_ lines: String...) async throws {
        try await waitUntil("the metrics have \(lines)") {
            let text = "\n" + (try await request("GET", "/metrics").body)
            return lines.allSatisfy { text.contains("\n\($0)\n") }
        }
    }

    /// Waits until the log has a line with a text. The log writes its lines on a queue of its own.
    func untilLogged(_ text: String) async throws {
        try await waitUntil("the log says \(text)") { logLines.contains { $0.contains(text) } }
    }

    /// What a new device would receive: the state, told in JSON.
    func state(token: String = "secret") async throws -> String {
        try await sync(#"{"maxRevision": 0, "changeSets": []}"#, token: token).body
    }
}

/// Lines that come from any thread.
final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    func add(_ line: String) {
        lines.withLock { $0.append(line) }
    }

    var all: [String] { lines.withLock { $0 } }
}
