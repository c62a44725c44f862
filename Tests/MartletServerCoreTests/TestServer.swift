import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SetTexts

@testable import MartletEmbedded
@testable import MartletServerCore

/// A data set in a temporary file, driven with JSON as a device would.
final class TestServer {
    let folder: URL
    let script: String
    var rules = Rules.everything
    private(set) var store: EmbeddedStore
    private(set) var node: DataSetNode
    var now: Int64 = 1_000

    static let identity = "0123456789abcdef0123456789abcdef"
    static let user = Principal(name: "tablet", user: "ada")

    init(_ script: String, prepare: (Connection) throws -> Void = { _ in }) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.script = script
        let path = folder.appendingPathComponent("data.sqlite").path
        do {
            let connection = try Connection(path: path)
            try prepare(connection)
        }
        store = try EmbeddedStore(
            path: path, script: script, identity: Self.identity, now: 1_000)
        node = try DataSetNode(store: store)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    var path: String { folder.appendingPathComponent("data.sqlite").path }

    /// Drops everything in memory and opens the file again, as a new process would.
    func restart(script: String? = nil, answerBytes: Int = Limits.answerBytes) throws {
        store = try EmbeddedStore(
            path: path, script: script ?? self.script, identity: "other", now: now)
        node = try DataSetNode(store: store, rules: rules, answerBytes: answerBytes)
    }

    /// A device says which of its sets it has the answers to, beside one that is refused.
    func acknowledge(_ sequence: Int, _ client: String) throws {
        let set = SetText("ack-\(client)-\(sequence)", sequence: 9_000 + sequence)
            .update("teams", "99999", #""revision":1,"name":"Z""#)
        let answer = try answer(
            """
            {"clientId":"\(client)","maxRevision":\(node.head.revision),\
            "acknowledged":\(sequence),"changeSets":[\(set)]}
            """)
        precondition(answer.changeSets.last?.conflict == true, "there is no such team")
    }

    /// Empties all but the newest entries.
    func compact(keeping newest: Int64) {
        while !node.compact(keeping: newest).isDone {}
    }

    func admitted(
        _ json: String, as principal: Principal = user, gzip: Bool = false
    ) throws -> AdmittedRequest {
        let bytes = Array(json.utf8)
        return AdmittedRequest(
            principal: principal, request: try SyncCoder.decodeRequest(bytes), source: bytes,
            acceptsGzip: gzip)
    }

    func raw(
        _ json: String, as principal: Principal = user, gzip: Bool = false
    ) throws -> PreparedAnswer {
        node.rules = rules
        now += 1
        return try node.process([admitted(json, as: principal, gzip: gzip)], now: now)[0].get()
    }

    /// The answer as the text that went out.
    func text(_ json: String, as principal: Principal = user) throws -> String {
        String(decoding: try raw(json, as: principal).body, as: UTF8.self)
    }

    func answer(_ json: String, as principal: Principal = user) throws -> SyncAnswer {
        try SyncCoder.decodeAnswer(raw(json, as: principal).body)
    }

    func problem(_ json: String, as principal: Principal = user) throws -> Problem? {
        node.rules = rules
        now += 1
        guard
            case .failure(let problem) = try node.process(
                [admitted(json, as: principal)], now: now)[0]
        else { return nil }
        return problem
    }

    /// Sends one change set of a device that is up to date, and gives what became of it: the last
    /// set of the answer.
    @discardableResult
    func send(
        _ set: String, from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = user
    ) throws -> ChangeSet {
        let answer = try answer(
            """
            {"clientId":"\(client)","maxRevision":\(revision ?? node.head.revision),\
            "changeSets":[\(set)]}
            """, as: principal)
        guard let last = answer.changeSets.last else { throw Missing() }
        return last
    }

    /// As `send`, for a set built in code.
    @discardableResult
    func send(
        _ set: SetText, from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = user
    ) throws -> ChangeSet {
        try send(set.description, from: client, at: revision, as: principal)
    }

    /// Sends several sets in one request.
    func exchange(
        _ sets: [SetText], from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = user
    ) throws -> SyncAnswer {
        let list = sets.map(\.description).joined(separator: ",")
        return try answer(
            """
            {"clientId":"\(client)","maxRevision":\(revision ?? node.head.revision),\
            "changeSets":[\(list)]}
            """, as: principal)
    }

    struct Missing: Error {}

    /// One row as text, columns parted by bars; rows by line breaks.
    func rows(_ sql: String) throws -> String {
        let connection = try Connection(path: path, mode: .readWrite)
        let statement = try connection.prepare(sql)
        var lines: [String] = []
        while try statement.step() {
            let columns = (0..<statement.columnCount).map {
                statement.isNull($0) ? "-" : statement.text($0)
            }
            lines.append(columns.joined(separator: "|"))
        }
        return lines.joined(separator: "\n")
    }

    func execute(_ sql: String) throws {
        try Connection(path: path).execute(sql)
    }
}
