public import MartletModel
internal import MartletProtocol
public import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Remote records that the device's tables refuse. They are kept, whole, with the reason, so that
/// everything else continues. The table's row of such a record stays as it was.
struct Quarantine {
    let store: LocalStore
    /// Milliseconds since 1970.
    let now: Int64
    /// Whether there are any; nil if this was not looked up yet. Almost always there is none, and
    /// then no record costs a look-up.
    private var hasAny: Bool?
    /// The records that this instance has added.
    private var put: Set<Name> = []

    private struct Name: Hashable {
        let type: String
        let id: RecordID
    }

    init(store: LocalStore, now: Int64) {
        self.store = store
        self.now = now
    }

    /// Returns the kept values of a record; nil if there are none.
    mutating func record(
        _ type: String, _ id: RecordID
    ) throws -> (revision: Revision, attributes: Attributes)? {
        guard try look() else { return nil }
        let find = try store.connection.statement(
            "SELECT revision, attributes FROM martlet_quarantine WHERE type = ? AND id = ?")
        find.bind(1, text: type)
        find.bind(2, id)
        defer { find.reset() }
        guard try find.step() else { return nil }
        return (find.integer(0), try SyncCoder.decodeAttributes(find.blob(1)))
    }

    /// Keeps a record in its newest form. If its table shows an older one, edits are based on that
    /// older revision, and the server refuses them as stale. The record may have come before, while
    /// another program had removed a column.
    mutating func put(
        _ type: String, _ id: RecordID, _ attributes: Attributes, revision: Revision,
        message: String
    ) throws {
        let row = try store.connection.statement(
            """
            INSERT OR REPLACE INTO martlet_quarantine(
                type, id, revision, attributes, message, at)
            VALUES (?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, text: type)
        row.bind(2, id)
        row.bind(3, integer: revision)
        row.bind(4, blob: try SyncCoder.encode(attributes))
        row.bind(5, text: message)
        row.bind(6, integer: now)
        try row.run()
        try outdate(type, id, before: revision)
        put.insert(Name(type: type, id: id))
        hasAny = true
    }

    private func outdate(_ type: String, _ id: RecordID, before revision: Revision) throws {
        guard let number = try store.number(ofType: type) else { return }
        for table in ["martlet_records", "martlet_withheld"] {
            let row = try store.connection.statement(
                "UPDATE \(table) SET revision = ?3 - 1 WHERE type = ?1 AND id = ?2 AND revision >= ?3"
            )
            row.bind(1, integer: number)
            row.bind(2, id)
            row.bind(3, integer: revision)
            try row.run()
        }
    }

    /// Returns how many of the added records are still there.
    mutating func added() throws -> Int {
        try put.count { try record($0.type, $0.id) != nil }
    }

    /// Removes a record, because its table has it now or it was deleted.
    mutating func remove(_ type: String, _ id: RecordID) throws {
        guard try look() else { return }
        let delete = try store.connection.statement(
            "DELETE FROM martlet_quarantine WHERE type = ? AND id = ?")
        delete.bind(1, text: type)
        delete.bind(2, id)
        try delete.run()
    }

    /// Returns all records, in the order of types and keys.
    func list() throws -> [QuarantinedRecord] {
        let rows = try store.connection.statement(
            """
            SELECT type, id, revision, attributes, message, at FROM martlet_quarantine
            ORDER BY type, id
            """)
        defer { rows.reset() }
        var records: [QuarantinedRecord] = []
        while try rows.step() {
            records.append(
                QuarantinedRecord(
                    type: rows.text(0), id: try rows.recordID(1), revision: rows.integer(2),
                    attributes: RecordValues(
                        try SyncCoder.decodeAttributes(rows.blob(3)),
                        of: store.schema[rows.text(0)]),
                    message: rows.text(4), since: rows.integer(5)))
        }
        return records
    }

    /// Returns whether there are any records in quarantine.
    mutating func look() throws -> Bool {
        if let hasAny { return hasAny }
        let found =
            try store.connection.integer("SELECT 1 FROM martlet_quarantine LIMIT 1") != nil
        hasAny = found
        return found
    }
}

/// A remote record that this device's tables refuse. The client tries it again whenever the record
/// changes, and when the file is opened.
public struct QuarantinedRecord: Hashable, Sendable {
    /// The entity type.
    public let type: String
    /// The record's id.
    public let id: RecordID
    /// The revision at which the record last changed.
    public let revision: Revision
    /// The record as the server has it.
    public let attributes: RecordValues
    /// The reason why the table refuses it.
    public let message: String
    /// The time at which it was last refused, in milliseconds since 1970.
    public let since: Int64
}
