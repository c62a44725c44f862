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
    /// - Parameter hidden: The records that left the user's view; nil for all that are not there.
    ///   Records that left may be there again; these stay as they are.
    /// - Complexity: O(*n*) in the edits that are kept.
    func run(_ hidden: Set<RecordKey>?) throws {
        func isHidden(_ key: RecordKey) throws -> Bool {
            try hidden?.contains(key) != false && isAway(key)
        }
        for table in ["martlet_changes", "martlet_parked_changes", "martlet_confirmed_changes"] {
            let found = try edits("SELECT type, id, sequence FROM \(table) WHERE base IS NOT NULL")
            for (key, sequence) in found where try isHidden(key) {
                let forget = try store.connection.statement(
                    "UPDATE \(table) SET base = NULL WHERE sequence = ? AND type = ? AND id = ?")
                forget.bind(1, integer: sequence)
                forget.bind(2, integer: key.type)
                forget.bind(3, key.id)
                try forget.run()
            }
        }
        try ConfirmedSets(store: store, mostBytes: 0).forgetSize()
        // An image without values is still that of a record which the edit did not make.
        let nothing = try SyncCoder.encode(Attributes())
        for (key, _) in try edits(
            "SELECT type, id, 0 FROM martlet_withheld WHERE image IS NOT NULL")
        where try isHidden(key) {
            let forget = try store.connection.statement(
                "UPDATE martlet_withheld SET image = ? WHERE type = ? AND id = ?")
            forget.bind(1, blob: nothing)
            forget.bind(2, integer: key.type)
            forget.bind(3, key.id)
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
        Set(try edits("SELECT type, id, 0 FROM martlet_records WHERE revision >= 0").map(\.key))
    }

    private func edits(_ query: String) throws -> [(key: RecordKey, sequence: Int64)] {
        let rows = try store.connection.statement(query)
        defer { rows.reset() }
        var edits: [(key: RecordKey, sequence: Int64)] = []
        while try rows.step() {
            let key = RecordKey(type: rows.integer(0), id: try rows.recordID(1))
            edits.append((key, rows.integer(2)))
        }
        return edits
    }

    /// Returns whether the device has no confirmed values of a record.
    func isAway(_ key: RecordKey) throws -> Bool {
        let find = try store.connection.statement(
            """
            SELECT 1 WHERE EXISTS (
                SELECT 1 FROM martlet_records WHERE type = ?1 AND id = ?2 AND revision >= 0)
            OR EXISTS (SELECT 1 FROM martlet_aside WHERE type = ?3 AND id = ?2)
            OR EXISTS (SELECT 1 FROM martlet_quarantine WHERE type = ?3 AND id = ?2)
            """)
        defer { find.reset() }
        find.bind(1, integer: key.type)
        find.bind(2, key.id)
        find.bind(3, text: try store.typeName(ofNumber: key.type))
        return try !find.step()
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
