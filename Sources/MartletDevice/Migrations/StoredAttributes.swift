internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Rewrites the lists of attributes in Martlet's own tables, which are stored as JSON, one by one.
struct StoredAttributes {
    /// A table with such lists.
    enum AttributeTable: String {
        /// Edits that are not confirmed yet.
        case queued = "martlet_changes"
        /// Edits that the server has refused.
        case parked = "martlet_parked_changes"
        /// Edits that the server has accepted, kept in case it loses them.
        case confirmed = "martlet_confirmed_changes"
        /// The confirmed images of records.
        case base = "martlet_base"
        /// The images of records before other programs wrote values that no set can carry.
        case withheld = "martlet_withheld"
        /// Values for which the tables had no place.
        case keptAside = "martlet_aside"
    }

    let connection: Connection

    /// Renames an attribute of a type, in all of these tables. Sent bytes stay as they are.
    func rename(_ name: String, to new: String, type: String, _ number: Int64) throws {
        for table in [AttributeTable.queued, .parked, .confirmed] {
            try rewriteChanges(in: table, of: number) { change in
                let base = change.base?.rename(name, to: new, keepingNew: false) ?? false
                let after = change.after?.rename(name, to: new, keepingNew: false) ?? false
                return base || after
            }
        }
        for table in [AttributeTable.base, .withheld] {
            try rewriteImages(in: table, of: number) { _, image in
                image.rename(name, to: new, keepingNew: false)
            }
        }
        let values = try connection.prepare(
            "UPDATE martlet_withheld_values SET name = ?3 WHERE type = ?1 AND name = ?2")
        values.bind(1, integer: number)
        values.bind(2, text: name)
        values.bind(3, text: new)
        try values.run()
        // A value that is kept aside under the new name already is newer, because the server has
        // renamed the attribute as well.
        try rewriteKeptAside(of: type) { _, _, attributes in
            attributes.rename(name, to: new, keepingNew: true)
        }
    }

    /// One record's part of a change set.
    struct Change {
        let id: RecordID
        let operation: RecordOperation?
        let baseRevision: Revision
        var base: Attributes?
        var after: Attributes?
    }

    /// Rewrites the changes of a type.
    /// - Parameter body: Changes one of them; returns whether it has.
    func rewriteChanges(
        in table: AttributeTable, of type: Int64, _ body: (inout Change) throws -> Bool
    ) throws {
        let find = try connection.prepare(
            "SELECT sequence, id FROM \(table.rawValue) WHERE type = ?1 ORDER BY sequence")
        find.bind(1, integer: type)
        let keys = try find.rows { (row) throws(SQLiteError) in
            (row.integer(0), try row.recordID(1))
        }
        let read = try connection.prepare(
            """
            SELECT operation, base_revision, base, after FROM \(table.rawValue)
            WHERE sequence = ?1 AND type = ?2 AND id = ?3
            """)
        let write = try connection.prepare(
            """
            UPDATE \(table.rawValue) SET base = ?4, after = ?5
            WHERE sequence = ?1 AND type = ?2 AND id = ?3
            """)
        defer { read.reset() }
        for (sequence, id) in keys {
            read.reset()
            read.bind(1, integer: sequence)
            read.bind(2, integer: type)
            read.bind(3, id)
            guard try read.step() else { continue }
            var change = Change(
                id: id, operation: RecordOperation(rawValue: read.integer(0)),
                baseRevision: read.integer(1), base: try Self.attributes(read, 2),
                after: try Self.attributes(read, 3))
            guard try body(&change) else { continue }
            write.bind(1, integer: sequence)
            write.bind(2, integer: type)
            write.bind(3, id)
            try Self.bind(change.base, to: write, 4)
            try Self.bind(change.after, to: write, 5)
            try write.run()
            write.reset()
        }
    }

    /// Rewrites the confirmed images of records with unconfirmed edits. New records have none.
    func rewriteImages(
        in table: AttributeTable, of type: Int64,
        _ body: (RecordID, inout Attributes) throws -> Bool
    ) throws {
        let name = table.rawValue
        let find = try connection.prepare(
            "SELECT id FROM \(name) WHERE type = ?1 AND image IS NOT NULL")
        find.bind(1, integer: type)
        let ids = try find.rows { (row) throws(SQLiteError) in try row.recordID(0) }
        let read = try connection.prepare(
            "SELECT image FROM \(name) WHERE type = ?1 AND id = ?2")
        let write = try connection.prepare(
            "UPDATE \(name) SET image = ?3 WHERE type = ?1 AND id = ?2")
        defer { read.reset() }
        for id in ids {
            read.reset()
            read.bind(1, integer: type)
            read.bind(2, id)
            guard try read.step(), var image = try Self.attributes(read, 0), try body(id, &image)
            else { continue }
            write.bind(1, integer: type)
            write.bind(2, id)
            try Self.bind(image, to: write, 3)
            try write.run()
            write.reset()
        }
    }

    /// Rewrites the lists that are kept aside for a type's records, and deletes a list that becomes
    /// empty.
    /// - Parameter body: Changes one list; returns whether it has. It also gets the revision that
    ///   brought the list.
    func rewriteKeptAside(
        of type: String, _ body: (RecordID, Revision, inout Attributes) throws -> Bool
    ) throws {
        let find = try connection.prepare("SELECT id FROM martlet_aside WHERE type = ?1")
        find.bind(1, text: type)
        let ids = try find.rows { (row) throws(SQLiteError) in try row.recordID(0) }
        let read = try connection.prepare(
            "SELECT attributes, revision FROM martlet_aside WHERE type = ?1 AND id = ?2")
        let write = try connection.prepare(
            "UPDATE martlet_aside SET attributes = ?3 WHERE type = ?1 AND id = ?2")
        let delete = try connection.prepare(
            "DELETE FROM martlet_aside WHERE type = ?1 AND id = ?2")
        defer { read.reset() }
        for id in ids {
            read.reset()
            read.bind(1, text: type)
            read.bind(2, id)
            guard try read.step(), var attributes = try Self.attributes(read, 0),
                try body(id, read.integer(1), &attributes)
            else { continue }
            let statement = attributes.isEmpty ? delete : write
            statement.bind(1, text: type)
            statement.bind(2, id)
            if !attributes.isEmpty { try Self.bind(attributes, to: statement, 3) }
            try statement.run()
            statement.reset()
        }
    }

    private static func attributes(_ row: Statement, _ column: Int32) throws -> Attributes? {
        row.isNull(column) ? nil : try SyncCoder.decodeAttributes(row.blob(column))
    }

    private static func bind(
        _ attributes: Attributes?, to statement: Statement, _ index: Int32
    ) throws {
        if let attributes {
            statement.bind(index, blob: try SyncCoder.encode(attributes))
        } else {
            statement.bindNull(index)
        }
    }
}

extension Attributes {
    /// Renames an attribute, in its place.
    /// - Parameter keepingNew: Whether the value under the new name stays if both names exist.
    /// - Returns: Whether there was such an attribute.
    fileprivate mutating func rename(_ name: String, to new: String, keepingNew: Bool) -> Bool {
        guard names.contains(name) else { return false }
        if self[new] != nil {
            if keepingNew {
                self[name] = nil
                return true
            }
            self[new] = nil
        }
        self = Attributes(names: names.map { $0 == name ? new : $0 }, values: values)
        return true
    }
}
