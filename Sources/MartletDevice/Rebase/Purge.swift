internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Removes what a device keeps, besides the rows, of records that its user may not see any more:
/// the earlier values of queued, refused, confirmed and withheld edits. Only the values that the
/// user gave stay.
struct Purge {
    let store: LocalStore

    /// Removes the values.
    ///
    /// If a hidden record is there again, this may be another record with its key. Only values of the present
    /// revision stay.
    /// - Parameter hidden: The records that left the user's view; nil for all that are not there. Then nobody
    ///   says which records have the keys of deleted ones. Only text keys are given again.
    /// - Complexity: O(*n*) in the edits that are kept.
    func run(_ hidden: Set<RecordKey>?) throws {
        func isHidden(_ edit: Edit) throws -> Bool {
            guard hidden?.contains(edit.key) != false else { return false }
            guard let present = try revision(of: edit.key) else { return true }
            if hidden == nil, case .integer = edit.key.id { return false }
            return edit.revision < present
        }
        for table in ["martlet_changes", "martlet_parked_changes", "martlet_confirmed_changes"] {
            let found = try edits(
                "SELECT type, id, sequence, base_revision FROM \(table) WHERE base IS NOT NULL")
            for edit in found where try isHidden(edit) {
                let forget = try store.connection.statement(
                    "UPDATE \(table) SET base = NULL WHERE sequence = ? AND type = ? AND id = ?")
                forget.bind(1, integer: edit.sequence)
                forget.bind(2, integer: edit.key.type)
                forget.bind(3, edit.key.id)
                try forget.run()
            }
        }
        try ConfirmedSets(store: store, mostBytes: 0).forgetSize()
        // An image without values is still that of a record which the edit did not make. That of an edit which
        // the table shows has just been read from there.
        let nothing = try SyncCoder.encode(Attributes())
        let found = try edits(
            """
            SELECT type, id, 0, iif(shows, \(Revision.max), revision)
            FROM martlet_withheld WHERE image IS NOT NULL
            """)
        for edit in found where try isHidden(edit) {
            let forget = try store.connection.statement(
                "UPDATE martlet_withheld SET image = ? WHERE type = ? AND id = ?")
            forget.bind(1, blob: nothing)
            forget.bind(2, integer: edit.key.type)
            forget.bind(3, edit.key.id)
            try forget.run()
        }
    }

    /// Returns the hash of a record's name.
    func hash(_ key: RecordKey) throws -> UInt64 {
        var hash = XXH64()
        hash.update(Array("\(try store.typeName(ofNumber: key.type))\0\(key.id)".utf8))
        return hash.finished()
    }

    /// The confirmed records of the device.
    func confirmed() throws -> Set<RecordKey> {
        Set(try edits("SELECT type, id, 0, 0 FROM martlet_records WHERE revision >= 0").map(\.key))
    }

    /// A kept edit of a record.
    private struct Edit {
        let key: RecordKey
        let sequence: Int64
        /// The revision of the record on which it is based.
        let revision: Revision
    }

    private func edits(_ query: String) throws -> [Edit] {
        let rows = try store.connection.statement(query)
        defer { rows.reset() }
        var edits: [Edit] = []
        while try rows.step() {
            let key = RecordKey(type: rows.integer(0), id: try rows.recordID(1))
            edits.append(Edit(key: key, sequence: rows.integer(2), revision: rows.integer(3)))
        }
        return edits
    }

    /// Returns whether the device has no confirmed values of a record.
    func isAway(_ key: RecordKey) throws -> Bool { try revision(of: key) == nil }

    /// Returns the revision of the confirmed values that the device has of a record; nil if it has none.
    private func revision(of key: RecordKey) throws -> Revision? {
        let find = try store.connection.statement(
            """
            SELECT revision FROM martlet_records WHERE type = ?1 AND id = ?2 AND revision >= 0
            UNION ALL SELECT revision FROM martlet_aside WHERE type = ?3 AND id = ?2
            UNION ALL SELECT revision FROM martlet_quarantine WHERE type = ?3 AND id = ?2
            ORDER BY 1 DESC LIMIT 1
            """)
        defer { find.reset() }
        find.bind(1, integer: key.type)
        find.bind(2, key.id)
        find.bind(3, text: try store.typeName(ofNumber: key.type))
        return try find.step() ? find.integer(0) : nil
    }
}

extension ChangeSet {
    /// Returns the records that left the user's view, without those of types that the device never
    /// had.
    func hidden(in store: LocalStore) throws -> Set<RecordKey> {
        var keys: Set<RecordKey> = []
        for changes in types where !changes.hidden.isEmpty {
            guard let number = try store.number(ofType: changes.name) else { continue }
            keys.formUnion(changes.hidden.lazy.map { RecordKey(type: number, id: $0) })
        }
        return keys
    }
}
