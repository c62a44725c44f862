import Foundation
import MartletModel
import MartletProtocol
import SQLiteFaults
import SQLiteKit
import SQLiteRecords
import SetTexts
import Synchronization

@testable import MartletEmbedded
@testable import MartletServerCore

/// A table as a look at the file needs it.
struct ServedTable {
    enum Kind { case integer, real, boolean, text, blob, untyped }

    let name: String
    let key: String
    let isText: Bool
    let columns: [(name: String, kind: Kind)]

    var quoted: String { Self.quoted(name) }
    var quotedKey: String { Self.quoted(key) }

    static func quoted(_ name: String) -> String { SQLName.quoted(name) }
}

/// A row as another program sees it.
struct ServedRow {
    /// Nil if no record can have this key.
    let id: RecordID?
    /// The values as SQL writes them, the key first.
    let literals: [String]
    /// The values that are not NULL, as they travel.
    var values: [String: Value] = [:]
    /// Whether all values can travel.
    var isSendable = true
    /// Whether a device's set can hold the values.
    var isWritable = true
}

/// The rows that a server has told of.
private final class Heard: Sendable {
    private let rows = Mutex<[UnsendableRows.Row]>([])

    func add(_ row: UnsendableRows.Row) { rows.withLock { $0.append(row) } }

    func take() -> [UnsendableRows.Row] {
        rows.withLock { rows in
            defer { rows = [] }
            return rows
        }
    }
}

/// A data set's file with a node on it, on a simulated disk; what has been told of its rows, and its log,
/// folded from the first entry on.
final class ServedFile {
    typealias Rows = [String: [ServedRow]]
    typealias Folded = [String: [RecordID: [String: Value]]]

    /// A row that the server said it leaves out, as it was then.
    private struct Told { var literals: [String]? }

    let script: String
    let tables: [ServedTable]
    private let disk: FaultDisk
    private var store: EmbeddedStore?
    private var opened: DataSetNode?
    private let heard = Heard()
    /// By type and key.
    private var told: [String: Told] = [:]
    /// The types of which a row without a usable key was told of.
    private var keyless: Set<String> = []
    private(set) var folded: Folded = [:]
    private(set) var revisions: [String: [RecordID: Revision]] = [:]
    private(set) var through: Revision = 0
    /// What is wrong.
    private(set) var faults: [String] = []
    /// Called with each node that is opened.
    var prepare: (DataSetNode, EmbeddedSession) -> Void = { _, _ in }
    /// Looks at each entry of the log.
    var judge: (LogEntry, ChangeSet) -> String? = { _, _ in nil }

    init(_ name: String, script: String, tables: [ServedTable]) throws {
        self.script = script
        self.tables = tables
        disk = FaultDisk(name: name)
        try open()
    }

    deinit { close() }

    func close() { (opened, store) = (nil, nil) }

    func open() throws {
        let store = try EmbeddedStore(
            path: "data.sqlite", vfs: disk.vfsName, script: script, identity: "abc", now: 0,
            unsendable: UnsendableRows { [heard] row, _ in heard.add(row) })
        let node = try DataSetNode(store: store)
        self.store = store
        opened = node
        prepare(node, try store.session())
    }

    var node: DataSetNode {
        get throws {
            guard let opened else { throw StorageFault(.failed, "the file is closed") }
            return opened
        }
    }

    var session: EmbeddedSession {
        get throws {
            guard let store else { throw StorageFault(.failed, "the file is closed") }
            return try store.session()
        }
    }

    /// Another program on the file.
    func program() throws -> Connection {
        try Connection(path: "data.sqlite", mode: .readWrite, vfs: disk.vfsName)
    }

    func fail(_ fault: String) { faults.append(fault) }

    // MARK: - The log

    /// Takes in what other programs wrote, and folds the log on.
    func converge() throws {
        var rounds = 0
        while try node.takeExternalWrites(now: 1) {
            rounds += 1
            if rounds > 10_000 { return fail("what other programs wrote is never taken in") }
        }
        if let fault = try node.takeFault() {
            fail("what other programs wrote cannot be taken in: \(fault)")
        }
        try fold()
    }

    func fold() throws {
        let log = EmbeddedLog(path: "data.sqlite", vfs: disk.vfsName)
        while true {
            let entries = try log.entries(
                from: through + 1, through: try node.head.revision, maxBytes: 1 << 20)
            guard !entries.isEmpty else { break }
            for entry in entries {
                let set = try SyncCoder.decodeChangeSet(entry.body)
                if let fault = judge(entry, set) { fail(fault) }
                for type in set.types { fold(type, at: entry.revision) }
                through = entry.revision
            }
        }
    }

    private func fold(_ type: TypeChanges, at revision: Revision) {
        for entry in type.entries {
            let isKnown = folded[type.name]?[entry.id] != nil
            if type.create.contains(entry.id) == isKnown {
                fail("entry \(revision) makes or changes \(type.name) \(entry.id) wrongly")
            }
            var values = folded[type.name]?[entry.id] ?? [:]
            for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                values[name] = value == .null ? nil : value
            }
            folded[type.name, default: [:]][entry.id] = values
            revisions[type.name, default: [:]][entry.id] = revision
        }
        for id in type.delete where folded[type.name]?.removeValue(forKey: id) == nil {
            fail("entry \(revision) deletes \(type.name) \(id), which is not there")
        }
    }

    // MARK: - The tables

    /// All rows, as another program reads them.
    func rows() throws -> Rows {
        let connection = try program()
        var all: Rows = [:]
        for table in tables {
            let names = [table.quotedKey] + table.columns.map { ServedTable.quoted($0.name) }
            let list = (names + names.map { "quote(\($0))" }).joined(separator: ", ")
            let statement = try connection.prepare("SELECT \(list) FROM \(table.quoted)")
            var rows: [ServedRow] = []
            while try statement.step() {
                let literals = names.indices.map { statement.text(Int32(names.count + $0)) }
                var row = ServedRow(id: Self.id(statement, of: table), literals: literals)
                for (index, column) in table.columns.enumerated() {
                    row.take(statement, Int32(index + 1), column)
                }
                rows.append(row)
            }
            all[table.name] = rows
        }
        return all
    }

    private static func id(_ row: Statement, of table: ServedTable) -> RecordID? {
        guard table.isText else {
            let number = row.integer(0)
            return row.storage(0) == .integer && number > 0 && number <= Limits.greatestKey
                ? .integer(number) : nil
        }
        guard row.storage(0) == .text, let text = row.validatedText(0) else { return nil }
        let isKey = !text.isEmpty && !text.utf8.contains(0)
        return isKey ? .text(text) : nil
    }

    /// Whether devices have a row as it is.
    func holds(_ id: RecordID, _ row: ServedRow, of table: String) -> Bool {
        let names = Set(tables.first { $0.name == table }?.columns.map(\.name) ?? [])
        let known = folded[table]?[id]?.filter { names.contains($0.key) }
        return row.isSendable && known == row.values
    }

    /// Compares the tables with the folded log. A row may differ if a sentence named it as it is now, apart from
    /// columns of which the log has come to hold the value.
    func compare() throws {
        let all = try rows()
        for row in heard.take() {
            told["\(row.type)/\(row.id)"] = Told()
            if row.reason.hasPrefix("its key") { keyless.insert(row.type) }
        }
        for table in tables {
            let names = Set(table.columns.map(\.name))
            // Computed values are in the log as well.
            var left = (folded[table.name] ?? [:]).mapValues { values in
                values.filter { names.contains($0.key) }
            }
            for row in all[table.name] ?? [] {
                guard let id = row.id else {
                    let isTold = keyless.contains(table.name)
                    if !isTold { fail("\(table.name) \(row.literals[0]) is told of nowhere") }
                    continue
                }
                let held = left.removeValue(forKey: id)
                let name = "\(table.name)/\(id)"
                guard held != row.values || !row.isSendable else { continue }
                let differs = table.columns.enumerated().contains { index, column in
                    let literal = row.literals[index + 1]
                    return told[name]?.literals?[index + 1] ?? literal != literal
                        && held?[column.name] != row.values[column.name]
                }
                guard told[name] != nil, !differs else {
                    let values = held.map { "\($0)" } ?? "nothing"
                    fail("\(table.name) \(id) is \(row.literals), the log has \(values)".clipped)
                    continue
                }
                told[name] = Told(literals: row.literals)
            }
            for id in left.keys { fail("\(table.name) \(id) is in the log, and in no table") }
        }
    }

    /// Compares what a new device is sent in rows with the folded log.
    func compareWhole() throws {
        var request = SyncRequest(maxRevision: 0)
        // An answer names a lineage only to a device that names itself.
        request.clientID = "new"
        var whole: Folded = [:]
        var since: Revision = 0
        var lineage: String?
        for _ in 0..<10_000 {
            var next = request
            next.maxRevision = since
            next.wantsRows = since == 0 && lineage == nil
            // It says how far a difference has come.
            next.lineage = lineage
            let answer = try self.answer(next, as: Principal(name: "new"))
            for type in answer.changeSets.flatMap(\.types) {
                for entry in type.entries {
                    var values = whole[type.name]?[entry.id] ?? [:]
                    for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                        values[name] = value == .null ? nil : value
                    }
                    whole[type.name, default: [:]][entry.id] = values
                }
                for id in type.delete { whole[type.name]?[id] = nil }
            }
            since = answer.maxRevision
            lineage = answer.lineage
            guard answer.more else { break }
        }
        for table in tables {
            let (has, should) = (whole[table.name] ?? [:], folded[table.name] ?? [:])
            for (id, values) in should where has[id] != values && told["\(table.name)/\(id)"] == nil
            {
                fail("a new device has \(has[id] ?? [:]) of \(table.name) \(id): \(values)".clipped)
            }
            for id in has.keys where should[id] == nil {
                fail("a new device has \(table.name) \(id), which is in no entry")
            }
        }
    }

    // MARK: - Devices

    func answer(_ request: SyncRequest, as principal: Principal) throws -> SyncAnswer {
        let bytes = try SyncCoder.encode(request)
        let admitted = AdmittedRequest(
            principal: principal, request: try SyncCoder.decodeRequest(bytes), source: bytes)
        switch try node.process([admitted], now: 2)[0] {
        case .success(let prepared): return try SyncCoder.decodeAnswer(prepared.body)
        case .failure(let problem):
            if let fault = try node.takeFault() { fail("\(fault)") }
            throw problem
        }
    }
}

extension ServedRow {
    mutating func take(
        _ row: Statement, _ position: Int32, _ column: (name: String, kind: ServedTable.Kind)
    ) {
        let value: Value?
        switch row.storage(position) {
        case .null: return
        case .integer where column.kind == .boolean:
            let number = row.integer(position)
            value = number == 0 || number == 1 ? .boolean(number == 1) : nil
        case .integer: value = column.kind == .real ? nil : .integer(row.integer(position))
        case .real:
            let isOf = column.kind == .real || column.kind == .untyped
            value = isOf && row.real(position).isFinite ? .real(row.real(position)) : nil
        case .text:
            let text = row.validatedText(position)
            if text?.utf8.contains(0) == true { isWritable = false }
            let isOf = column.kind == .text || column.kind == .untyped
            value = isOf ? text.map { .text($0) } : nil
        case .blob:
            value =
                column.kind == .blob
                ? .text(Data(row.blob(position)).base64EncodedString()) : nil
        }
        if let value { values[column.name] = value } else { isSendable = false }
    }
}

extension String {
    /// The text, without the middle of long ones.
    var clipped: String { count < 600 ? self : "\(prefix(300)) … \(suffix(200))" }
}
