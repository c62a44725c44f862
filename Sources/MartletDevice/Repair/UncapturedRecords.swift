internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// New records that were written here without being captured. They get temporary keys, together
/// with everything that refers to them, and are queued ahead of the sets that need them.
struct UncapturedRecords {
    let store: LocalStore
    /// The records under their present keys.
    private var keys: Set<RecordKey> = []
    /// The temporary keys that records got, by their former keys.
    private var renamed: [RecordKey: Int64] = [:]

    init(store: LocalStore) {
        self.store = store
    }

    /// Adds a record under its own key.
    mutating func add(_ type: Int, _ id: RecordID) {
        keys.insert(RecordKey(type: store.numbers[type], id: id))
    }

    /// Adds a record, and gives it a temporary key. Rows that refer to it follow.
    /// - Parameter isSent: False for a withheld record, so that no set can wait for it.
    mutating func add(
        _ type: Int, _ id: RecordID, as temporary: Int64, isSent: Bool = true
    ) throws {
        let target = store.schema.types[type].name
        for (_, holder, reference) in store.schema.references(to: target) {
            let column = SQLName.quoted(reference.attribute)
            let follow = try store.connection.statement(
                """
                UPDATE OR ABORT \(SQLName.quoted(holder.name)) SET \(column) = ?1 WHERE \(column) = ?2
                """)
            follow.bind(1, integer: temporary)
            follow.bind(2, id)
            try follow.run()
        }
        _ = try store.tables[type].changeKey(from: id, to: .integer(temporary))
        let image = try store.connection.statement(
            "UPDATE martlet_base SET id = ?1 WHERE type = ?2 AND id = ?3")
        image.bind(1, integer: temporary)
        image.bind(2, integer: store.numbers[type])
        image.bind(3, id)
        try image.run()
        renamed[RecordKey(type: store.numbers[type], id: id)] = temporary
        if isSent { add(type, .integer(temporary)) }
    }

    /// Returns the attributes of a type with the present keys of records in its references.
    func followed(_ attributes: Attributes, type: Int) -> Attributes {
        var attributes = attributes
        for (attribute, key) in references(in: attributes, type: type) {
            if let temporary = renamed[key] { attributes[attribute] = .integer(temporary) }
        }
        return attributes
    }

    /// Changes the queued edits of a record so that they are based on a record that is not
    /// confirmed.
    func becomeNew(_ type: Int, _ id: RecordID) throws {
        for sql in [
            "UPDATE martlet_base SET image = NULL, revision = 0 WHERE type = ?1 AND id = ?2",
            "UPDATE martlet_changes SET base = NULL, base_revision = 0 WHERE type = ?1 AND id = ?2",
        ] {
            let update = try store.connection.statement(sql)
            update.bind(1, integer: store.numbers[type])
            update.bind(2, id)
            try update.run()
        }
    }

    /// Rewrites the keys in queued and parked sets. Sent sets stay frozen: the server refuses keys
    /// that it does not know, and such a set can be tried again once it is parked.
    func rewriteSets() throws {
        guard !renamed.isEmpty else { return }
        let outbox = Outbox(store: store)
        let rewriter = IDRewriter(store: store, assigned: renamed)
        for table in ["martlet_changes", "martlet_parked_changes"] {
            for sequence in try sequences(in: table) {
                for var change in try outbox.changes(of: sequence, in: table) {
                    let id = change.id
                    guard try rewriter.rewrite(&change) else { continue }
                    try write(change, of: sequence, id, in: table)
                    guard table == "martlet_changes" else { continue }
                    try outbox.noteReferences(of: change, sequence: sequence)
                }
            }
        }
        try rewriteImages()
    }

    /// Rewrites the images under queued edits as well. Such an edit may have been made on top of
    /// one that was not captured, which is found later.
    private func rewriteImages() throws {
        let rows = try store.connection.statement(
            "SELECT type, id, image FROM martlet_base WHERE image IS NOT NULL")
        var images: [(key: RecordKey, image: [UInt8])] = []
        _ = try rows.rows { (row) throws(SQLiteError) in
            images.append((RecordKey(type: row.integer(0), id: try row.recordID(1)), row.blob(2)))
        }
        let update = try store.connection.statement(
            "UPDATE martlet_base SET image = ?1 WHERE type = ?2 AND id = ?3")
        for (key, image) in images {
            guard let type = store.index(ofNumber: key.type) else { continue }
            let attributes = try SyncCoder.decodeAttributes(image)
            let new = followed(attributes, type: type)
            guard new != attributes else { continue }
            update.rewind()
            update.bind(1, blob: try SyncCoder.encode(new))
            update.bind(2, integer: key.type)
            update.bind(3, key.id)
            try update.run()
        }
    }

    /// Returns the new records that a queued set needs, and the sequence of the first set that was
    /// never sent and edits one of them or refers to it. The records have to reach the server
    /// before that set.
    /// - Returns: Nil if no set needs one.
    func needed() throws -> (keys: Set<RecordKey>, sequence: Int64)? {
        guard !keys.isEmpty else { return nil }
        let outbox = Outbox(store: store)
        var first: Int64?
        var needed: Set<RecordKey> = []
        for set in try outbox.queued() where !set.isSent && set.isApplied {
            for change in try outbox.changes(of: set.sequence) {
                if keys.contains(change.key) {
                    first = first ?? set.sequence
                    needed.insert(change.key)
                }
                guard let type = change.type, let after = change.after,
                    !store.schema.types[type].references.isEmpty
                else { continue }
                let attributes = try SyncCoder.decodeAttributes(after)
                for (_, key) in references(in: attributes, type: type) where keys.contains(key) {
                    first = first ?? set.sequence
                    needed.insert(key)
                }
            }
        }
        guard let first else { return nil }
        return (try withParents(of: needed), first)
    }

    /// Returns new records together with the new records to which they refer.
    private func withParents(of records: Set<RecordKey>) throws -> Set<RecordKey> {
        var found = records
        var open = Array(records)
        while let key = open.popLast() {
            guard let type = store.index(ofNumber: key.type),
                let row = try store.tables[type].read(key.id)
            else { continue }
            for (_, parent) in references(in: row, type: type)
            where keys.contains(parent) && found.insert(parent).inserted {
                open.append(parent)
            }
        }
        return found
    }

    private func references(
        in attributes: Attributes, type: Int
    ) -> [(attribute: String, key: RecordKey)] {
        store.schema.types[type].references.compactMap { reference in
            guard let value = attributes[reference.attribute], let id = RecordID(value),
                let target = store.schema.index(of: reference.target)
            else { return nil }
            return (reference.attribute, RecordKey(type: store.numbers[target], id: id))
        }
    }

    private func sequences(in table: String) throws -> [Int64] {
        let rows = try store.connection.statement(
            "SELECT DISTINCT sequence FROM \(table) ORDER BY sequence")
        return try rows.rows { (row) throws(SQLiteError) in row.integer(0) }
    }

    private func write(
        _ change: StoredChange, of sequence: Int64, _ id: RecordID, in table: String
    ) throws {
        let update = try store.connection.statement(
            """
            UPDATE \(table) SET id = ?1, after = ?2 WHERE sequence = ?3 AND type = ?4 AND id = ?5
            """)
        update.bind(1, change.id)
        if let after = change.after { update.bind(2, blob: after) } else { update.bindNull(2) }
        update.bind(3, integer: sequence)
        update.bind(4, integer: change.number)
        update.bind(5, id)
        try update.run()
    }
}
