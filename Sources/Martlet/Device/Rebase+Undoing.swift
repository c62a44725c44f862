internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The tables refuse a confirmed image that an own edit is to give way to.
struct RefusedImage: Error {
    let cause: any Error
}

extension Rebase {
    /// Brings the records of own sets back to their confirmed state.
    ///
    /// An image that no longer fits (the app has made a column unique meanwhile, and the edit made it so)
    /// is quarantined like any other row of the server's that the tables refuse.
    /// - Throws: `RefusedImage` where the manner is not to quarantine images yet.
    mutating func undo(isWhole: Bool) throws {
        var scope = ""
        if !isWhole {
            scope = """
                 AND (type, id) IN (SELECT type, id FROM martlet_changes WHERE sequence IN (
                    SELECT sequence FROM martlet_outbox WHERE settling > 0))
                """
        }
        try removeRecords(where: (applier.manner.replaces ? "1" : "image IS NULL") + scope)
        let rows = try store.connection.statement(
            "SELECT type, id, image, revision FROM martlet_base WHERE image IS NOT NULL" + scope)
        // A statement left in mid-run would keep its read transaction open after a rollback.
        defer { rows.reset() }
        while try rows.step() {
            let key = RecordKey(type: rows.integer(0), id: try rows.recordID(1))
            let image = try SyncCoder.decodeAttributes(rows.blob(2))
            if try !applier.takeBack(key, image, revision: rows.integer(3)) {
                refusedImages.append(key)
                report.changedTypes.insert(try store.typeName(ofNumber: key.type))
            }
        }
        try store.connection.run("DELETE FROM martlet_base WHERE 1" + scope)
    }

    private func removeRecords(where condition: String) throws {
        let rows = try store.connection.statement(
            "SELECT type, id FROM martlet_base WHERE " + condition)
        defer { rows.reset() }
        while try rows.step() {
            guard let type = store.index(ofNumber: rows.integer(0)) else { continue }
            _ = try store.tables[type].delete(rows.recordID(1))
        }
    }

    /// Tries the refused images again: what has come in may have made room for them.
    mutating func releaseImages() throws {
        for key in refusedImages {
            guard let type = store.index(ofNumber: key.type) else { continue }
            try applier.release(key.id, type: type)
        }
    }
}

extension RemoteApplier {
    /// Brings a record back to its confirmed image, or quarantines that.
    /// - Returns: Whether the table took it.
    fileprivate mutating func takeBack(
        _ key: RecordKey, _ image: Attributes, revision: Revision
    ) throws -> Bool {
        guard manner.quarantinesImages, let type = store.index(ofNumber: key.type) else {
            do {
                try restore(key.type, key.id, image, revision: revision)
            } catch let error where RemotePlace.isData(error) {
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
        // The quarantine may hold a newer form of the record already: that one stays.
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
