import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import SQLiteKit

/// Compares the values of rows with the log's values, as far as the log still has them: the values
/// written since the revision up to which its entries may be emptied.
///
/// It finds differences that numbers of transactions cannot show: another program changed a row,
/// its change was lost on the way, and the log's own line of the record was written later. The log
/// is folded into a temporary file, so memory does not grow with it.
struct ValueComparison {
    /// A record whose row differs from the log.
    struct Found: Hashable {
        let type: Int
        let id: RecordID
        /// The log's revision of the record that its row was compared with; 0 if no device can
        /// receive the row.
        let revision: Revision
    }

    private static let pageBytes = 16 << 20

    private let connection: PostgresConnection
    private let schema: PostgresSchema
    /// The log's values: an object of attributes for each record.
    private let folded: Connection

    init(on connection: PostgresConnection, _ schema: PostgresSchema) throws(SQLiteError) {
        self.connection = connection
        self.schema = schema
        folded = try Connection(path: "")
        try folded.execute(
            """
            CREATE TABLE records (
                type INTEGER NOT NULL, id TEXT NOT NULL, whole INTEGER NOT NULL,
                attributes BLOB NOT NULL, PRIMARY KEY (type, id)) WITHOUT ROWID
            """)
    }

    /// The rows that are compared.
    struct Extent: Sendable {
        /// Returns SQL about a row `t` and its line `r`. Such rows are found even if the log does
        /// not have all of their values, or if no device can receive them.
        let suspects: @Sendable (PostgresTable) -> String
        /// Whether to compare the other rows as well.
        var takesOthers = false

        static let all = Extent(suspects: { _ in "true" })
    }

    /// Finds differences, and changes nothing. It may also find rows that other programs wrote
    /// meanwhile, so the caller checks again. In an open transaction it reads what that transaction
    /// sees.
    /// - Parameter wanted: The tables' numbers; nil for all.
    func find(_ extent: Extent, in wanted: Set<Int64>? = nil) throws -> [Found] {
        let isOpen = connection.isInTransaction
        if !isOpen {
            _ = try connection.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        }
        // A failure here closes the command's connection.
        try fold()
        var found: [Found] = []
        for (type, table) in schema.tables.enumerated()
        where wanted?.contains(table.number) ?? true {
            let suspects = extent.suspects(table)
            try compare(type, where: suspects, takesUnknown: true, into: &found)
            guard extent.takesOthers else { continue }
            try compare(type, where: "NOT (\(suspects))", takesUnknown: false, into: &found)
        }
        if !isOpen { _ = try connection.query("COMMIT") }
        return found
    }

    private func compare(
        _ type: Int, where condition: String, takesUnknown: Bool, into found: inout [Found]
    ) throws {
        let rows = try TableRows(schema.tables[type], on: connection)
        try rows.forEachMarked(
            where: condition,
            unsendable: { id, _ in
                if takesUnknown { found.append(Found(type: type, id: id, revision: 0)) }
            },
            { id, row, mark in
                guard try isOther(id, row, type, takesUnknown) else { return }
                found.append(Found(type: type, id: id, revision: mark.revision))
            })
    }

    // MARK: - The log

    private func fold() throws {
        let row = try connection.query(
            "SELECT floor, revision FROM _martlet.dataset WHERE number = 1")
        guard row.count == 1 else { throw PostgresError(.other, "_martlet.dataset is empty") }
        var next = try row.integer(0, 0) + 1
        let last = try row.integer(0, 1)
        try folded.execute("BEGIN")
        while next <= last {
            let entries = try LogPages.entries(
                from: next, through: last, maxBytes: Self.pageBytes, on: connection)
            guard let end = entries.last else {
                throw PostgresError(.other, "the log lacks an entry")
            }
            for entry in entries where !entry.body.isEmpty {
                for changes in try SyncCoder.decodeChangeSet(entry.body).types {
                    try fold(changes)
                }
            }
            next = end.revision + 1
        }
        try folded.execute("COMMIT")
    }

    private func fold(_ changes: TypeChanges) throws {
        guard let type = schema.schema.index(of: changes.name) else { return }
        let created = Set(changes.create)
        for entry in changes.entries {
            let isNew = created.contains(entry.id)
            let before = isNew ? nil : try self.folded(entry.id, type)
            var attributes = before?.attributes ?? Attributes()
            for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                attributes[name] = value
            }
            try keep(entry.id, type, attributes, isWhole: isNew || before?.isWhole == true)
        }
        for id in changes.delete {
            let remove = try folded.statement("DELETE FROM records WHERE type = ?1 AND id = ?2")
            remove.bind(1, integer: Int64(type))
            remove.bind(2, text: id.description)
            try remove.run()
        }
    }

    private func keep(
        _ id: RecordID, _ type: Int, _ attributes: Attributes, isWhole: Bool
    ) throws {
        let keep = try folded.statement("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3, ?4)")
        keep.bind(1, integer: Int64(type))
        keep.bind(2, text: id.description)
        keep.bind(3, integer: isWhole ? 1 : 0)
        keep.bind(4, blob: try SyncCoder.encode(attributes))
        try keep.run()
    }

    /// Returns the log's values of a record, and whether they are all of its values.
    private func folded(
        _ id: RecordID, _ type: Int
    ) throws -> (attributes: Attributes, isWhole: Bool)? {
        let find = try folded.statement(
            "SELECT attributes, whole FROM records WHERE type = ?1 AND id = ?2")
        find.bind(1, integer: Int64(type))
        find.bind(2, text: id.description)
        defer { find.reset() }
        guard try find.step() else { return nil }
        return (try SyncCoder.decodeAttributes(find.blob(0)), find.integer(1) != 0)
    }

    // MARK: - Rows

    private func isOther(
        _ id: RecordID, _ row: Attributes, _ type: Int, _ takesUnknown: Bool
    ) throws -> Bool {
        guard let known = try folded(id, type) else { return takesUnknown }
        // A value read from the log equals the value that was written.
        return zip(row.names, row.values).contains { name, value in
            guard let told = known.attributes[name] else {
                return known.isWhole ? value != .null : takesUnknown
            }
            return told != value
        }
    }
}
