import Foundation
import MartletModel
import MartletProtocol
import MartletRules
import SQLiteKit
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// A data set on one of the storages, driven with JSON as devices would. Blocks; confined to the test
/// that made it.
final class TestDataSet: JSONServer {
    static let identity = "0123456789abcdef0123456789abcdef"

    let kind: StorageKind
    var rules = Rules.everything
    private(set) var policies: RulesProgram?
    var now: Int64 = 1_000
    private(set) var node: DataSetNode
    private(set) var storage: any ServerStorage
    private let home: any StorageHome
    /// A hash of all that was asked so far.
    private var asked = Hasher()
    /// Whether answers are compared with the other storages'.
    var isCompared = true

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
        asked.combine(script)
        // PostgreSQL names a data set itself, and what it begins with is in its history.
        isCompared = rows.isEmpty
    }

    private static func open(
        _ home: any StorageHome, now: Int64, _ rules: Rules, _ answerBytes: Int, _ cacheBytes: Int,
        partBytes: Int = 64 << 10
    ) throws -> (any ServerStorage, DataSetNode) {
        let storage = try home.storage(now: now)
        let node = try DataSetNode(
            storage: storage, log: home.log(storage.schema), rules: rules,
            cacheBytes: cacheBytes, answerBytes: answerBytes, partBytes: partBytes)
        return (storage, node)
    }

    /// Drops everything in memory and opens the data set again, as a new process would.
    func restart(answerBytes: Int = Limits.answerBytes, partBytes: Int = 64 << 10) throws {
        (storage, node) = try Self.open(
            home, now: now, rules, answerBytes, 64 << 20, partBytes: partBytes)
        asked.combine("restart \(answerBytes)")
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
        asked.combine("compact \(newest)")
    }

    /// Sets the policies that the next requests meet; nil for none.
    func secure(by file: String?) throws {
        policies = try file.map { try RulesProgram($0, schema: storage.schema) }
        asked.combine(file)
    }

    func rows(_ sql: String) throws -> String { try home.rows(sql) }

    /// Makes a snapshot of a view, and returns it with a connection to its file.
    func snapshot(
        of view: Int64, by reading: @escaping ConsistentReading
    ) throws -> (SnapshotMaker.Cut, Connection) {
        try home.snapshot(of: view, by: reading)
    }

    /// Has the next record of a type get this id.
    func setNextID(_ id: Int64, of type: String) throws { try home.setNextID(id, of: type) }

    func execute(_ sql: String) throws {
        try home.execute(sql)
        asked.combine(sql)
    }
}

// MARK: - Requests

extension TestDataSet {
    /// Has a batch decided on.
    func process(
        _ texts: [String], as principal: Principal = .ada, gzip: Bool = false
    ) throws -> [Result<PreparedAnswer, Problem>] {
        node.rules = rules
        node.policies = policies
        now += 1
        let requests = try texts.map { try admitted($0, as: principal, gzip: gzip) }
        let results = node.process(requests, now: now)
        asked.combine(texts)
        asked.combine(principal.identity)
        if let fault = node.takeFault() { Issue.record("\(kind.rawValue): \(fault)") }
        if isCompared, !gzip {
            let answers = results.map(Self.comparable).joined(separator: "\n")
            // After the first difference others follow from it.
            isCompared = AnswerBook.shared.enter(answers, to: hash, of: kind)
        }
        return results
    }

    private var hash: Int {
        let asked = asked
        return asked.finalize()
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
}
