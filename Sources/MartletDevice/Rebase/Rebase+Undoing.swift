internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The error that the tables refuse a confirmed image, to which an own edit is to be undone.
struct RefusedImage: Error {
    let cause: any Error
}

extension Rebase {
    /// Marks own sets as decided (1) or as moved (2), so that `undo` finds their records.
    func mark(_ sequences: Set<Int64>, as role: Int64) throws {
        for sequence in sequences {
            let mark = try store.connection.statement(
                "UPDATE martlet_outbox SET settling = ? WHERE sequence = ?")
            mark.bind(1, integer: role)
            mark.bind(2, integer: sequence)
            try mark.run()
        }
    }

    /// Restores the confirmed state of the records of own sets.
    ///
    /// An image may no longer fit, for example because the app has made a column unique since, and
    /// the edit made it so. Such an image is quarantined like any other row of the server that the
    /// tables refuse.
    /// - Throws: `RefusedImage` if the mode is not to quarantine images yet.
    mutating func undo(isWhole: Bool) throws {
        let source = isWhole ? "martlet_base AS base" : Self.moved
        let condition = applier.manner.replaces ? "1" : "base.image IS NULL"
        var keys = try removeRecords(of: source, where: condition)
        let rows = try store.connection.statement(
            """
            SELECT base.type, base.id, base.image, base.revision FROM \(source)
            WHERE base.image IS NOT NULL
            """)
        // A statement that has not ended would keep its read transaction open after a rollback.
        defer { rows.reset() }
        while try rows.step() {
            let key = RecordKey(type: rows.integer(0), id: try rows.recordID(1))
            if !isWhole { keys.append(key) }
            let image = try SyncCoder.decodeAttributes(rows.blob(2))
            if try !applier.takeBack(key, image, revision: rows.integer(3)) {
                refusedImages.append(key)
                report.changedTypes.insert(try store.typeName(ofNumber: key.type))
            }
        }
        rows.reset()
        try isWhole ? store.connection.run("DELETE FROM martlet_base") : forget(keys)
    }

    /// The bases of the sets that are decided or moved. Each is found by its key, so that the query
    /// does not go through the other waiting sets.
    private static let moved = """
        (SELECT DISTINCT change.type, change.id FROM martlet_outbox AS own
            CROSS JOIN martlet_changes AS change ON change.sequence = own.sequence
            WHERE own.settling > 0) AS edited
        CROSS JOIN martlet_base AS base ON base.type = edited.type AND base.id = edited.id
        """

    private func removeRecords(of source: String, where condition: String) throws -> [RecordKey] {
        let rows = try store.connection.statement(
            "SELECT base.type, base.id FROM \(source) WHERE \(condition)")
        defer { rows.reset() }
        var keys: [RecordKey] = []
        while try rows.step() {
            let key = RecordKey(type: rows.integer(0), id: try rows.recordID(1))
            keys.append(key)
            guard let type = store.index(ofNumber: key.type) else { continue }
            _ = try store.tables[type].delete(key.id)
        }
        return keys
    }

    private func forget(_ keys: [RecordKey]) throws {
        let base = try store.connection.statement(
            "DELETE FROM martlet_base WHERE type = ? AND id = ?")
        for key in keys {
            base.bind(1, integer: key.type)
            base.bind(2, key.id)
            try base.run()
        }
    }

    /// Tries the refused images again, because the applied changes may have made room for them.
    mutating func releaseImages() throws {
        for key in refusedImages {
            guard let type = store.index(ofNumber: key.type) else { continue }
            try applier.release(key.id, type: type)
        }
    }
}

extension RemoteApplier {
    /// Restores a record's confirmed image, or quarantines it.
    /// - Returns: Whether the table accepted it.
    fileprivate mutating func takeBack(
        _ key: RecordKey, _ image: Attributes, revision: Revision
    ) throws -> Bool {
        guard manner.quarantinesImages, let type = store.index(ofNumber: key.type) else {
            do {
                try restore(key.type, key.id, image, revision: revision)
            } catch let error where ErrorLocation.isData(error) {
                throw RefusedImage(cause: error)
            }
            return true
        }
        let reason = try attempt { applier in
            try applier.restore(key.type, key.id, image, revision: revision)
        }
        guard let reason else { return true }
        let name = store.schema.types[type].name
        try forget(key.type, key.id)
        // The quarantine may hold a newer form of the record already, which stays.
        if try quarantine.record(name, key.id) == nil {
            try quarantine.put(name, key.id, image, revision: revision, message: reason)
        }
        return false
    }

    /// Tries a record once more if it is in quarantine.
    fileprivate mutating func release(_ id: RecordID, type: Int) throws {
        guard let kept = try quarantine.record(store.schema.types[type].name, id) else { return }
        try release(
            RecordEntry(id: id, attributes: kept.attributes), type: type, revision: kept.revision)
    }
}
