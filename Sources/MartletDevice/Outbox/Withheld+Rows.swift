public import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

// MARK: - Keeping a record's values

extension Withheld {
    /// Keeps the values that another program gave a record, as SQLite stores them.
    mutating func put(_ note: NotedRecord, reason: String) throws {
        let type = store.schema.types[note.type]
        let key = RecordKey(type: store.numbers[note.type], id: note.id)
        let image = note.image(type)
        let outbox = Outbox(store: store)
        if try outbox.base(key.type, key.id) == nil {
            try outbox.insertBase(
                key.type, key.id, revision: outbox.confirmedRevision(key.type, key.id) ?? 0,
                image: try image.map { try SyncCoder.encode($0) })
        }
        let base = try outbox.base(key.type, key.id)?.revision ?? 0
        if try !isKept(key) { added += 1 }
        let row = try store.connection.statement(
            """
            INSERT INTO martlet_withheld(type, id, revision, image, message, at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (type, id) DO UPDATE SET message = ?5, at = ?6, shows = 1,
                revision = iif(shows, revision, ?3), image = iif(shows, image, ?4)
            """)
        row.bind(1, integer: key.type)
        row.bind(2, key.id)
        row.bind(3, integer: base)
        if let image { row.bind(4, blob: try SyncCoder.encode(image)) } else { row.bindNull(4) }
        row.bind(5, text: reason)
        row.bind(6, integer: now)
        try row.run()
        try keepValues(of: note, key, image)
    }

    private func isKept(_ key: RecordKey) throws -> Bool {
        let find = try store.connection.statement(
            "SELECT 1 FROM martlet_withheld WHERE type = ? AND id = ?")
        find.bind(1, integer: key.type)
        find.bind(2, key.id)
        defer { find.reset() }
        return try find.step()
    }

    /// Copies the values that differ from the earlier ones. They need not be readable.
    private func keepValues(of note: NotedRecord, _ key: RecordKey, _ image: Attributes?) throws {
        let type = store.schema.types[note.type]
        let table = store.tables[note.type]
        try forgetValues(key)
        for attribute in type.attributes where !attribute.isGenerated {
            do {
                let value = try table.read(key.id, [attribute.name])?[attribute.name]
                guard let value, value != image?[attribute.name] ?? .null else { continue }
            } catch {
                guard error.isMismatch else { throw error }
            }
            let copy = try store.connection.statement(
                """
                INSERT INTO martlet_withheld_values(type, id, name, value)
                SELECT ?1, ?2, ?3, \(SQLName.quoted(attribute.name))
                FROM main.\(SQLName.quoted(type.name)) WHERE \(SQLName.quoted(type.key)) = ?2
                """)
            copy.bind(1, integer: key.type)
            copy.bind(2, key.id)
            copy.bind(3, text: attribute.name)
            try copy.run()
        }
    }

    func forget(_ key: RecordKey) throws {
        let row = try store.connection.statement(
            "DELETE FROM martlet_withheld WHERE type = ? AND id = ?")
        row.bind(1, integer: key.type)
        row.bind(2, key.id)
        try row.run()
        try forgetValues(key)
    }

    private func forgetValues(_ key: RecordKey) throws {
        let values = try store.connection.statement(
            "DELETE FROM martlet_withheld_values WHERE type = ? AND id = ?")
        values.bind(1, integer: key.type)
        values.bind(2, key.id)
        try values.run()
    }
}

// MARK: - Over remote change

extension Withheld {
    /// Puts withheld edits on top of the confirmed state and the queued edits again. An edit that
    /// does not fit there, or whose record another device deleted, stays kept, and the table does
    /// not show it.
    /// - Parameters:
    ///   - assigned: The permanent ids of temporary ones.
    ///   - own: The revisions that own accepted sets gave records.
    ///   - madeOn: The revisions that those sets were based on.
    func putBack(
        assigned: [RecordKey: Int64], own: [RecordKey: Revision], madeOn: [RecordKey: Revision]
    ) throws {
        guard try !isEmpty else { return }
        try follow(assigned)
        for record in try all() {
            guard let type = record.type else { continue }
            if let revision = own[record.key], revision > record.revision,
                record.revision >= madeOn[record.key] ?? 0
            {
                try base(record.key, on: revision)
            }
            var isShown = false
            try store.connection.run("SAVEPOINT martlet_withheld")
            do {
                isShown = try putBack(record, type)
            } catch let error where ErrorLocation.isData(error) && store.connection.isInTransaction
            {
                try store.connection.run("ROLLBACK TO martlet_withheld")
            }
            try store.connection.run("RELEASE martlet_withheld")
            if isShown != record.isShown {
                try set("shows = ?3", of: record.key) { $0.bind(3, integer: isShown ? 1 : 0) }
            }
        }
    }

    /// Puts one withheld edit on top of its record.
    /// - Returns: Whether the record exists.
    private func putBack(_ record: Record, _ index: Int) throws -> Bool {
        let outbox = Outbox(store: store)
        let table = store.tables[index]
        let type = store.schema.types[index]
        let hasBase = try outbox.base(record.key.type, record.key.id) != nil
        var image: [UInt8]?
        if record.image != nil {
            // A record that another device has deleted is not restored.
            guard let row = try table.read(record.key.id) else { return false }
            let shown = try SyncCoder.encode(store.stored(row, type: index).withoutNulls())
            try set("image = ?3", of: record.key) { $0.bind(3, blob: shown) }
            image = shown
        }
        if !hasBase {
            let revision = try outbox.confirmedRevision(record.key.type, record.key.id)
            try outbox.insertBase(
                record.key.type, record.key.id, revision: revision ?? 0, image: image)
        }
        let names = try names(record.key).filter { type[attribute: $0]?.isGenerated == false }
        let columns = names.map { SQLName.quoted($0) }
        let values = names.indices.map { index in
            """
            (SELECT value FROM martlet_withheld_values
            WHERE type = ?1 AND id = ?2 AND name = ?\(index + 3))
            """
        }
        let sql: String
        let (name, key) = (SQLName.quoted(type.name), SQLName.quoted(type.key))
        if record.image == nil {
            sql = """
                INSERT OR ABORT INTO main.\(name)(\(([key] + columns).joined(separator: ", ")))
                VALUES (\((["?2"] + values).joined(separator: ", ")))
                """
        } else {
            guard !names.isEmpty else { return true }
            let settings = zip(columns, values).map { "\($0) = \($1)" }
            sql =
                "UPDATE OR ABORT main.\(name) SET \(settings.joined(separator: ", ")) WHERE \(key) = ?2"
        }
        let write = try store.connection.prepare(sql)
        if !names.isEmpty { write.bind(1, integer: record.key.type) }
        write.bind(2, record.key.id)
        for (index, name) in names.enumerated() { write.bind(Int32(index + 3), text: name) }
        try write.run()
        return true
    }

    private func names(_ key: RecordKey) throws -> [String] {
        let rows = try store.connection.statement(
            "SELECT name FROM martlet_withheld_values WHERE type = ? AND id = ? ORDER BY name")
        rows.bind(1, integer: key.type)
        rows.bind(2, key.id)
        return try rows.rows { (row) throws(SQLiteError) in row.text(0) }
    }

    /// Bases a record's edit on another revision.
    func base(_ key: RecordKey, on revision: Revision) throws {
        try set("revision = ?3", of: key) { $0.bind(3, integer: revision) }
    }

    private func set(
        _ setting: String, of key: RecordKey, _ bind: (Statement) -> Void
    ) throws {
        let update = try store.connection.statement(
            "UPDATE martlet_withheld SET \(setting) WHERE type = ?1 AND id = ?2")
        update.bind(1, integer: key.type)
        update.bind(2, key.id)
        bind(update)
        try update.run()
    }

    /// Returns the records to which the kept values refer by ids that the server assigned.
    func references() throws -> [RecordKey] {
        var keys: [RecordKey] = []
        for (index, type) in store.schema.types.enumerated() {
            for reference in type.references {
                guard let target = store.schema.index(of: reference.target) else { continue }
                let rows = try store.connection.statement(
                    """
                    SELECT DISTINCT value FROM martlet_withheld_values
                    WHERE type = ?1 AND name = ?2 AND typeof(value) = 'integer' AND value > 0
                    """)
                rows.bind(1, integer: store.numbers[index])
                rows.bind(2, text: reference.attribute)
                let ids = try rows.rows { (row) throws(SQLiteError) in row.integer(0) }
                keys += ids.map {
                    RecordKey(type: store.numbers[target], id: .integer($0))
                }
            }
        }
        return keys
    }

    /// Renames records and references whose ids have changed.
    func follow(_ assigned: [RecordKey: Int64]) throws {
        for (old, new) in assigned { try rename(old, to: new) }
    }

    private func rename(_ old: RecordKey, to new: Int64) throws {
        for table in ["martlet_withheld", "martlet_withheld_values"] {
            let record = try store.connection.statement(
                "UPDATE \(table) SET id = ?3 WHERE type = ?1 AND id = ?2")
            record.bind(1, integer: old.type)
            record.bind(2, old.id)
            record.bind(3, integer: new)
            try record.run()
        }
        guard let target = store.index(ofNumber: old.type) else { return }
        for (index, _, reference) in store.schema.references(to: store.schema.types[target].name) {
            let values = try store.connection.statement(
                """
                UPDATE martlet_withheld_values SET value = ?4
                WHERE type = ?1 AND name = ?2 AND value = ?3
                """)
            values.bind(1, integer: store.numbers[index])
            values.bind(2, text: reference.attribute)
            values.bind(3, old.id)
            values.bind(4, integer: new)
            try values.run()
        }
    }
}

/// A record to which another program gave a value that cannot be sent. The table shows it, and
/// everything else is synchronised without it. The client tries again when the record is written
/// once more, and when the file is opened; or a person gives the record up.
public struct WithheldRecord: Hashable, Sendable {
    /// The entity type.
    public let type: String
    /// The record's id.
    public let id: RecordID
    /// The reason why the record cannot be sent; it names the column.
    public let message: String
    /// The time at which this was last found, in milliseconds since 1970.
    public let since: Int64
    /// Whether the table shows the value. False if another device has deleted the record meanwhile,
    /// or has changed records that the value needs.
    public let isShown: Bool
}
