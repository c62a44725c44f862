import Foundation
import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// A data set on one of the storages, driven with JSON as devices would. Blocks; confined to the test
/// that made it.
final class TestDataSet {
    static let identity = "0123456789abcdef0123456789abcdef"
    static let user = Principal(name: "tablet", user: "ada")

    let kind: StorageKind
    var rules = Rules.everything
    var now: Int64 = 1_000
    private(set) var node: DataSetNode
    private(set) var storage: any ServerStorage
    private let home: any StorageHome
    /// A hash of all that was asked so far.
    private var questions = Hasher()
    /// Whether answers are compared with the other storages'.
    var isCompared = true

    struct Missing: Error {}

    /// - Parameters:
    ///   - script: CREATE statements in SQLite's words.
    ///   - postgres: The same in PostgreSQL's, where `PostgresHome.translated` does not do.
    ///   - rows: Statements that fill the tables before Martlet knows of them.
    init(
        _ kind: StorageKind, _ script: String, postgres: String? = nil, rows: String = ""
    ) async throws {
        self.kind = kind
        switch kind {
        case .memory: home = try FileHome(script, rows, isInMemory: true)
        case .file: home = try FileHome(script, rows, isInMemory: false)
        case .postgres, .postgresAndRedis:
            home = try await PostgresHome(
                (postgres ?? PostgresHome.translated(script)) + rows,
                withRedis: kind == .postgresAndRedis)
        }
        (storage, node) = try Self.open(home, now: 1_000, .everything, Limits.answerBytes, 64 << 20)
        questions.combine(script)
        // PostgreSQL names a data set itself, and what it begins with is in its history.
        isCompared = rows.isEmpty
    }

    private static func open(
        _ home: any StorageHome, now: Int64, _ rules: Rules, _ answerBytes: Int, _ cacheBytes: Int
    ) throws -> (any ServerStorage, DataSetNode) {
        let storage = try home.storage(now: now)
        let node = try DataSetNode(
            storage: storage, log: home.log(storage.schema), rules: rules, filter: .everything,
            cacheBytes: cacheBytes, answerBytes: answerBytes)
        return (storage, node)
    }

    /// Drops everything in memory and opens the data set again, as a new process would.
    func restart(answerBytes: Int = Limits.answerBytes) throws {
        (storage, node) = try Self.open(home, now: now, rules, answerBytes, 64 << 20)
        questions.combine("restart \(answerBytes)")
    }

    /// Another process on the same data set; only one of them may write at a time.
    func otherNode(cacheBytes: Int = 64 << 20) throws -> DataSetNode {
        try Self.open(home, now: now, rules, Limits.answerBytes, cacheBytes).1
    }

    func log() -> any LogSource { home.log(storage.schema) }

    /// What answers beside the node.
    func reader(of feed: DataSetFeed? = nil) -> LogReader {
        LogReader(
            feed: feed ?? node.feed, log: log(), check: home.check(storage.schema),
            consistently: { [node] (body) throws(StorageFault) in try node.whenCaughtUp(body) })
    }

    /// The hash after an entry, as on the wire.
    func lineage(at revision: Revision) throws -> String? {
        try log().hash(at: revision)?.text
    }

    /// Empties all but the newest entries.
    func compact(keeping newest: Int64) {
        while !node.compact(keeping: newest).isDone {}
        questions.combine("compact \(newest)")
    }

    /// A device says which of its sets it has the answers to, beside one that is refused.
    func acknowledge(_ sequence: Int, _ client: String, type: String = "teams") throws {
        let set = SetText("ack-\(client)-\(sequence)", sequence: 9_000 + sequence)
            .update(type, "99999", #""revision":1,"name":"Z""#)
        let answer = try answer(
            """
            {"clientId":"\(client)","maxRevision":\(node.head.revision),\
            "acknowledged":\(sequence),"changeSets":[\(set)]}
            """)
        #expect(answer.changeSets.last?.conflict == true)
    }

    func rows(_ sql: String) throws -> String { try home.rows(sql) }

    /// Has the next record of a type get this id.
    func setNextID(_ id: Int64, of type: String) throws { try home.setNextID(id, of: type) }

    func execute(_ sql: String) throws {
        try home.execute(sql)
        questions.combine(sql)
    }
}

// MARK: - Requests

extension TestDataSet {
    func admitted(
        _ json: String, as principal: Principal = user, gzip: Bool = false
    ) throws -> AdmittedRequest {
        let bytes = Array(json.utf8)
        return AdmittedRequest(
            principal: principal, request: try SyncCoder.decodeRequest(bytes), source: bytes,
            acceptsGzip: gzip)
    }

    /// Has a batch decided on.
    func process(
        _ texts: [String], as principal: Principal = user, gzip: Bool = false
    ) throws -> [Result<PreparedAnswer, Problem>] {
        node.rules = rules
        now += 1
        let requests = try texts.map { try admitted($0, as: principal, gzip: gzip) }
        let results = node.process(requests, now: now)
        questions.combine(texts)
        questions.combine(principal.identity)
        if let fault = node.takeFault() { Issue.record("\(kind.rawValue): \(fault)") }
        if isCompared, !gzip {
            let answers = results.map(Self.comparable).joined(separator: "\n")
            // After the first difference others follow from it.
            isCompared = AnswerBook.shared.enter(answers, to: hash, of: kind)
        }
        return results
    }

    private var hash: Int {
        let questions = questions
        return questions.finalize()
    }

    /// An answer as every storage gives it: what a database says in its own words is left out.
    private static func comparable(_ result: Result<PreparedAnswer, Problem>) -> String {
        switch result {
        case .failure(let problem): return "\(problem)"
        case .success(let answer):
            let text = String(decoding: answer.body, as: UTF8.self)
            guard answer.refused[.constraint] != nil else { return text }
            return text.replacing(
                "the database rolls everything back for this change", with: "the database refused"
            ).replacing(
                #/the database refused(?:[^"\\]|\\.)*/#, with: "the database refused")
        }
    }

    func raw(
        _ json: String, as principal: Principal = user, gzip: Bool = false
    ) throws -> PreparedAnswer {
        try process([json], as: principal, gzip: gzip)[0].get()
    }

    /// The answer as the text that went out.
    func text(_ json: String, as principal: Principal = user) throws -> String {
        String(decoding: try raw(json, as: principal).body, as: UTF8.self)
    }

    func answer(_ json: String, as principal: Principal = user) throws -> SyncAnswer {
        try SyncCoder.decodeAnswer(raw(json, as: principal).body)
    }

    func problem(_ json: String, as principal: Principal = user) throws -> Problem? {
        guard case .failure(let problem) = try process([json], as: principal)[0] else {
            return nil
        }
        return problem
    }

    /// Sends one change set of a device that is up to date, and gives what became of it: the last
    /// set of the answer.
    @discardableResult
    func send(
        _ set: String, from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = user
    ) throws -> ChangeSet {
        let answer = try answer(request(client, at: revision, set), as: principal)
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
        return try answer(request(client, at: revision, list), as: principal)
    }

    private func request(_ client: String, at revision: Revision?, _ sets: String) -> String {
        """
        {"clientId":"\(client)","maxRevision":\(revision ?? node.head.revision),\
        "changeSets":[\(sets)]}
        """
    }
}
