internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Confirmed values of types and attributes this version of the app does not have, kept for a
/// version that has them.
struct Aside {
    let store: LocalStore
    /// Whether there are any; nil: not looked yet. Most apps never have one, and then no record
    /// costs a look-up.
    private var hasAny: Bool?
    /// The values that were put in.
    private(set) var added = Kept()

    init(store: LocalStore) {
        self.store = store
    }

    /// Adds what an entry says of a record.
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

    /// Adds what an image of a record holds that is older than what may be there: that stays.
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

    /// What is kept of a record; nil where nothing is.
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

    /// Forgets a record that is gone, or that is about to come whole.
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
