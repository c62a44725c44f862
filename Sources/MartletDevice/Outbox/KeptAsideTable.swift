internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Confirmed values of types and attributes that this version of the app does not have. The file
/// keeps them for a version that has them.
struct KeptAsideTable {
    let store: LocalStore
    /// Whether there are any such values; nil if this was not looked up yet. Most apps never have
    /// one, and then no record costs a look-up.
    private var hasAny: Bool?
    /// The values that this instance has added.
    private(set) var added = Kept()

    init(store: LocalStore) {
        self.store = store
    }

    /// Adds the values of a record that an entry of the log names. They replace earlier values.
    mutating func add(
        _ type: String, _ id: RecordID, _ attributes: Attributes, revision: Revision
    ) throws {
        var merged = try record(type, id)?.attributes ?? Attributes()
        for (name, value) in zip(attributes.names, attributes.values) {
            merged[name] = value
        }
        try put(type, id, merged, revision: revision)
        added.add(type, store.schema.index(of: type) == nil ? [] : attributes.names)
    }

    /// Adds the values of an older image of a record. Values that are kept already stay.
    mutating func addOlder(
        _ type: String, _ id: RecordID, _ attributes: Attributes, revision: Revision
    ) throws {
        let present = try record(type, id)
        var merged = attributes
        if let present {
            for (name, value) in zip(present.attributes.names, present.attributes.values) {
                merged[name] = value
            }
        }
        try put(type, id, merged, revision: max(revision, present?.revision ?? 0))
    }

    /// Returns the kept values of a record; nil if there are none.
    mutating func record(
        _ type: String, _ id: RecordID
    ) throws -> (revision: Revision, attributes: Attributes)? {
        guard try look() else { return nil }
        let find = try store.connection.statement(
            "SELECT revision, attributes FROM martlet_aside WHERE type = ? AND id = ?")
        find.bind(1, text: type)
        find.bind(2, id)
        defer { find.reset() }
        guard try find.step() else { return nil }
        return (find.integer(0), try SyncCoder.decodeAttributes(find.blob(1)))
    }

    /// Deletes the kept values of a record, because it was deleted, or because all of its values
    /// are about to arrive.
    mutating func remove(_ type: String, _ id: RecordID) throws {
        guard try look() else { return }
        let delete = try store.connection.statement(
            "DELETE FROM martlet_aside WHERE type = ? AND id = ?")
        delete.bind(1, text: type)
        delete.bind(2, id)
        try delete.run()
    }

    private mutating func look() throws -> Bool {
        if let hasAny { return hasAny }
        let found =
            try store.connection.integer("SELECT 1 FROM martlet_aside LIMIT 1") != nil
        hasAny = found
        return found
    }

    private mutating func put(
        _ type: String, _ id: RecordID, _ attributes: Attributes, revision: Revision
    ) throws {
        let row = try store.connection.statement(
            """
            INSERT OR REPLACE INTO martlet_aside(type, id, revision, attributes)
            VALUES (?, ?, ?, ?)
            """)
        row.bind(1, text: type)
        row.bind(2, id)
        row.bind(3, integer: revision)
        row.bind(4, blob: try SyncCoder.encode(attributes))
        try row.run()
        hasAny = true
    }
}
