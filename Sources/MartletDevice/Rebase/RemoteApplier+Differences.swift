internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension RemoteApplier {
    /// Writes the records of a difference: whole rows, and deletions.
    mutating func applyDifference(_ set: ChangeSet, revision: Revision) throws {
        for changes in set.types {
            guard let type = store.schema.index(of: changes.name) else {
                for id in changes.delete { try noteGone(id, of: changes.name) }
                continue
            }
            for id in changes.delete {
                location.note(changes.name, id, revision)
                _ = try store.tables[type].delete(id)
                try forgetAll(changes.name, store.numbers[type], id)
                try tell(deletionOf: id, of: changes.name, revision: revision)
            }
        }
        for changes in set.types {
            guard let type = store.schema.index(of: changes.name) else {
                try keepAside(whole: changes, revision: revision)
                continue
            }
            if manner.replaces {
                try replace(changes, type: type, revision: revision)
            } else {
                for entry in changes.entries {
                    let newest = entry.revision ?? revision
                    location.note(changes.name, entry.id, newest)
                    let known = try split(
                        entry, type: type, isCreate: true, revision: newest)
                    try put(type, entry.id, known, isWhole: true)
                    try noteTaken(entry, type: type, revision: newest)
                }
            }
        }
    }

    /// The records of a difference that its later parts delete. Parts are applied from the last.
    struct Filled {
        fileprivate var gone: [String: Set<RecordID>] = [:]
    }

    /// Deletes all records that a part of a difference names.
    mutating func takeOut(_ set: ChangeSet) throws {
        for changes in set.types {
            let type = store.schema.index(of: changes.name)
            for id in changes.update + changes.delete {
                if let type {
                    _ = try store.tables[type].delete(id)
                    try forgetAll(changes.name, store.numbers[type], id)
                } else {
                    try noteGone(id, of: changes.name)
                }
            }
        }
    }

    /// Writes the records of a part of a difference that no later part has.
    mutating func fill(
        _ set: ChangeSet, revision: Revision, beside filled: inout Filled
    ) throws {
        for changes in set.types {
            let type = store.schema.index(of: changes.name)
            for entry in changes.entries {
                let newest = entry.revision ?? revision
                location.note(changes.name, entry.id, newest)
                if filled.gone[changes.name]?.contains(entry.id) == true { continue }
                guard let type else {
                    guard try keptAside.record(changes.name, entry.id) == nil else { continue }
                    var one = TypeChanges(name: changes.name, update: [entry.id])
                    one.entries = [entry]
                    try keepAside(whole: one, revision: newest)
                    continue
                }
                guard try !store.tables[type].exists(entry.id),
                    try quarantine.record(changes.name, entry.id) == nil
                else { continue }
                try fill(entry, type: type, revision: newest)
            }
            for id in changes.delete {
                filled.gone[changes.name, default: []].insert(id)
                // A later part may have another record with the same key.
                if let type, try store.tables[type].exists(id) { continue }
                try tell(deletionOf: id, of: changes.name, revision: revision)
            }
        }
    }

    private mutating func fill(_ entry: RecordEntry, type: Int, revision: Revision) throws {
        func write(_ applier: inout RemoteApplier) throws {
            let known = try applier.split(entry, type: type, isCreate: true, revision: revision)
            try applier.store.tables[type].insert(entry.id, known, absentMeansNull: true)
            try applier.noteTaken(entry, type: type, revision: revision)
        }
        guard manner.isCareful else { return try write(&self) }
        if let reason = try attempt({ try write(&$0) }) {
            try quarantine.put(
                store.schema.types[type].name, entry.id, entry.attributes, revision: revision,
                message: reason)
        }
    }

    /// Notes a row of a difference that its table has accepted.
    private mutating func noteTaken(_ entry: RecordEntry, type: Int, revision: Revision) throws {
        let name = store.schema.types[type].name
        // Values kept aside while the table was away may be older than a row that the table refused
        // before.
        if try quarantine.record(name, entry.id)?.revision ?? 0 <= revision {
            try quarantine.remove(name, entry.id)
        }
        try remember(store.numbers[type], entry.id, revision: revision)
        try tell(entry, of: name, isWhole: true, revision: revision)
    }

    /// Writes a type's rows after deleting all of them. In a careful mode, a row that the table
    /// refuses is quarantined, and the earlier row is restored if it still fits.
    private mutating func replace(
        _ changes: TypeChanges, type: Int, revision: Revision
    ) throws {
        let table = store.tables[type]
        var before: [RecordID: Attributes] = [:]
        for entry in changes.entries {
            if manner.isCareful, let present = try table.read(entry.id) {
                before[entry.id] = store.stored(present, type: type)
            }
            _ = try table.delete(entry.id)
        }
        var refused: [RecordID] = []
        for entry in changes.entries {
            let newest = entry.revision ?? revision
            location.note(changes.name, entry.id, newest)
            let known = try split(entry, type: type, isCreate: true, revision: newest)
            func write(_ applier: inout RemoteApplier) throws {
                try table.insert(entry.id, known, absentMeansNull: true)
                try applier.noteTaken(entry, type: type, revision: newest)
            }
            guard manner.isCareful else {
                try write(&self)
                continue
            }
            if let reason = try attempt({ try write(&$0) }) {
                try quarantine.put(
                    changes.name, entry.id, entry.attributes, revision: newest, message: reason)
                refused.append(entry.id)
            }
        }
        for id in refused {
            guard let image = before[id] else { continue }
            _ = try attempt { _ in try table.insert(id, image, absentMeansNull: true) }
        }
    }

    /// Runs the work on one row, and undoes it if its data is at fault.
    /// - Returns: The reason if it was undone; nil otherwise.
    mutating func attempt(
        _ work: (inout RemoteApplier) throws -> Void
    ) throws -> String? {
        try store.connection.run("SAVEPOINT martlet_row")
        do {
            try work(&self)
            try store.connection.run("RELEASE martlet_row")
            return nil
        } catch let error where ErrorLocation.isData(error) && store.connection.isInTransaction {
            try store.connection.run("ROLLBACK TO martlet_row")
            try store.connection.run("RELEASE martlet_row")
            return ErrorLocation.sentence(error)
        }
    }

    /// Tries a record in quarantine again, with the values of an entry.
    /// - Returns: Whether it was in quarantine. If so, it is now either in its table or in
    ///   quarantine again.
    mutating func retryQuarantined(
        _ entry: RecordEntry, type: Int, isCreate: Bool, revision: Revision
    ) throws -> Bool {
        let name = store.schema.types[type].name
        guard !isCreate, let kept = try quarantine.record(name, entry.id) else { return false }
        var whole = kept.attributes
        for (attribute, value) in zip(entry.attributes.names, entry.attributes.values) {
            whole[attribute] = value
        }
        try release(RecordEntry(id: entry.id, attributes: whole), type: type, revision: revision)
        return true
    }

    /// Tries to put a quarantined record into its table.
    mutating func release(
        _ entry: RecordEntry, type: Int, revision: Revision
    ) throws {
        let reason = try attempt { applier in
            let known = try applier.split(entry, type: type, isCreate: true, revision: revision)
            try applier.put(type, entry.id, known, isWhole: true)
            try applier.noteTaken(entry, type: type, revision: revision)
        }
        guard let reason else { return }
        try quarantine.put(
            store.schema.types[type].name, entry.id, entry.attributes, revision: revision,
            message: reason)
    }

    /// Tries every record in quarantine again, because the tables may have changed.
    mutating func releaseQuarantined() throws {
        for record in try quarantine.list() {
            // Under an unconfirmed edit, the record waits for the edit's verdict.
            guard let type = store.schema.index(of: record.type),
                try Outbox(store: store).base(store.numbers[type], record.id) == nil,
                let kept = try quarantine.record(record.type, record.id)
            else { continue }
            try release(
                RecordEntry(id: record.id, attributes: kept.attributes), type: type,
                revision: kept.revision)
        }
    }
}
