import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SetTexts

@testable import MartletEmbedded
@testable import MartletServerCore

/// A data set in a temporary file, driven with JSON as a device would.
final class TestServer: JSONServer {
    let folder: URL
    let script: String
    var rules = Rules.everything
    private(set) var store: EmbeddedStore
    private(set) var node: DataSetNode
    var now: Int64 = 1_000

    static let identity = "0123456789abcdef0123456789abcdef"

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

    /// Empties all but the newest entries.
    func compact(keeping newest: Int64) {
        while !node.compact(keeping: newest).isDone {}
    }

    func process(
        _ texts: [String], as principal: Principal, gzip: Bool
    ) throws -> [Result<PreparedAnswer, Problem>] {
        node.rules = rules
        now += 1
        return node.process(
            try texts.map { try admitted($0, as: principal, gzip: gzip) }, now: now)
    }

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
