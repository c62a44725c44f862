internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Writes the server's entries into the app's tables.
struct RemoteApplier {
    /// How changes are written.
    struct Manner {
        /// Whether a set's rows are all deleted before any is inserted, so that no order of writes
        /// can meet a UNIQUE constraint on the way.
        var replaces = false
        /// Whether a change to a record that is not there makes it: the sender says nothing of what
        /// it takes the device to have.
        var isLenient = false
        /// Whether a row of a difference that the table refuses is quarantined, so that the others
        /// come in.
        var isCareful = false
    }

    let store: LocalStore
    var manner = Manner()
    let place = RemotePlace()
    private let registry: ModelRegistry
    private var aside: Aside
    private var quarantine: Quarantine
    private let storedNames: [[String]]
    private var knownNames: [[String]]

    init(store: LocalStore, registry: ModelRegistry = ModelRegistry(), now: Int64) {
        self.store = store
        self.registry = registry
        aside = Aside(store: store)
        quarantine = Quarantine(store: store, now: now)
        storedNames = store.schema.types.map { type in
            type.attributes.filter { !$0.isGenerated }.map(\.name)
        }
        knownNames = store.schema.types.map { _ in [] }
    }

    /// Applies one entry of the change log, or a difference.
    mutating func apply(_ set: ChangeSet, revision: Revision) throws {
        if set.isDifference { return try applyDifference(set, revision: revision) }
        for changes in set.types {
            guard let type = store.schema.index(of: changes.name) else {
                try keepAside(changes, revision: revision)
                continue
            }
            let number = store.numbers[type]
            let creates = changes.update.isEmpty ? [] : Set(changes.create)
            let deletes = Set(changes.delete)
            for id in changes.delete {
                // With rows replaced, deletes come before the inserts they make room for.
                place.note(changes.name, id, revision)
                if manner.replaces { _ = try store.tables[type].delete(id) }
                try forgetAll(changes.name, number, id)
            }
            if manner.replaces {
                try merge(
                    changes, type: type, creates: creates, deletes: deletes, revision: revision)
            }
            for entry in changes.entries where !deleted(entry.id, deletes) {
                let isCreate = changes.update.isEmpty || creates.contains(entry.id)
                let newest = entry.revision ?? revision
                place.note(changes.name, entry.id, newest)
                if !manner.replaces {
                    guard
                        try !settleQuarantined(
                            entry, type: type, isCreate: isCreate, revision: newest)
                    else { continue }
                    let known = try split(
                        entry, type: type, isCreate: isCreate, revision: revision)
                    try put(type, entry.id, known, isWhole: isCreate)
                }
                try remember(number, entry.id, revision: newest)
                try tell(entry, of: changes.name, isWhole: isCreate, revision: newest)
            }
        }
        for changes in set.types {
            guard let type = store.schema.index(of: changes.name) else { continue }
            for id in changes.delete {
                place.note(changes.name, id, revision)
                if !manner.replaces { _ = try store.tables[type].delete(id) }
                try tell(deletionOf: id, of: changes.name, revision: revision)
            }
        }
    }

    private func deleted(_ id: RecordID, _ deletes: Set<RecordID>) -> Bool {
        !deletes.isEmpty && deletes.contains(id)
    }

    /// Writes the entries of one type by taking all their rows out first.
    private mutating func merge(
        _ changes: TypeChanges, type: Int, creates: Set<RecordID>, deletes: Set<RecordID>,
        revision: Revision
    ) throws {
        let table = store.tables[type]
        var whole: [(RecordID, Attributes)] = []
        for entry in changes.entries where !deletes.contains(entry.id) {
            let isCreate = changes.update.isEmpty || creates.contains(entry.id)
            let known = try split(entry, type: type, isCreate: isCreate, revision: revision)
            var image = Attributes()
            if !isCreate, let present = try table.read(entry.id) {
                image = store.stored(present, type: type)
            }
            for (name, value) in zip(known.names, known.values) {
                image[name] = value
            }
            whole.append((entry.id, image))
        }
        for (id, _) in whole { _ = try table.delete(id) }
        for (id, image) in whole {
            place.note(changes.name, id, revision)
            try table.insert(id, image, absentMeansNull: true)
            try quarantine.remove(changes.name, id)
        }
    }

    /// Makes a record be as given.
    /// - Parameter isWhole: Whether attributes not given are null; otherwise they stay.
    func put(_ type: Int, _ id: RecordID, _ attributes: Attributes, isWhole: Bool) throws {
        let table = store.tables[type]
        if isWhole {
            do {
                try table.insert(id, attributes, absentMeansNull: true)
            } catch {
                guard error.isUniqueViolation, try table.exists(id) else { throw error }
                _ = try table.update(id, completed(attributes, type: type))
            }
        } else if try !table.update(id, attributes) {
            if manner.isLenient { return try table.insert(id, attributes, absentMeansNull: false) }
            throw StoreError(
                .inconsistent,
                "The server changed a record of \(store.schema.types[type].name)"
                    + " that this device does not have.")
        }
    }

    /// Brings a record back to a confirmed image of it. What the table has no place for, because
    /// the image is older than the schema, is kept aside.
    /// - Parameter number: The number of the record's type, which the schema may have lost.
    mutating func restore(
        _ number: Int64, _ id: RecordID, _ image: Attributes, revision: Revision
    ) throws {
        guard let type = store.index(ofNumber: number) else {
            return try aside.addOlder(
                store.typeName(ofNumber: number), id, image, revision: revision)
        }
        let table = store.tables[type]
        let known = store.known(image, type: type)
        if known.count < image.count {
            try aside.addOlder(
                store.schema.types[type].name, id, store.unknown(image, type: type),
                revision: revision)
        }
        if try !table.update(id, completed(known, type: type)) {
            try table.insert(id, known, absentMeansNull: true)
        }
    }

    /// All attributes, those not given as null.
    private func completed(_ attributes: Attributes, type: Int) -> Attributes {
        let names = storedNames[type]
        return Attributes(names: names, values: names.map { attributes[$0] ?? .null })
    }

    func remember(_ number: Int64, _ id: RecordID, revision: Revision) throws {
        let put = try store.connection.statement(
            "INSERT OR REPLACE INTO martlet_records(type, id, revision) VALUES (?, ?, ?)")
        put.bind(1, integer: number)
        put.bind(2, id)
        put.bind(3, integer: revision)
        try put.run()
    }

    /// Forgets all that is known beside the table of a record that is gone.
    private mutating func forgetAll(_ name: String, _ number: Int64, _ id: RecordID) throws {
        try forget(number, id)
        try aside.remove(name, id)
        try quarantine.remove(name, id)
    }

    private func forget(_ number: Int64, _ id: RecordID) throws {
        let delete = try store.connection.statement(
            "DELETE FROM martlet_records WHERE type = ? AND id = ?")
        delete.bind(1, integer: number)
        delete.bind(2, id)
        try delete.run()
    }
}

extension RemoteApplier {
    /// Puts a snapshot's rows in place of all there are.
    mutating func install(_ snapshot: SnapshotRows) throws {
        try snapshot.install(in: store, aside: &aside, quarantine: &quarantine)
    }
}

// MARK: - Differences

extension RemoteApplier {
    /// Makes records be as a difference says: whole rows, and records that are gone.
    private mutating func applyDifference(_ set: ChangeSet, revision: Revision) throws {
        for changes in set.types {
            guard let type = store.schema.index(of: changes.name) else { continue }
            for id in changes.delete {
                place.note(changes.name, id, revision)
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
                    place.note(changes.name, entry.id, newest)
                    let known = try split(
                        entry, type: type, isCreate: true, revision: newest)
                    try put(type, entry.id, known, isWhole: true)
                    try settle(entry, type: type, revision: newest)
                }
            }
        }
    }

    /// Books a row of a difference that its table has taken.
    private mutating func settle(_ entry: RecordEntry, type: Int, revision: Revision) throws {
        let name = store.schema.types[type].name
        try quarantine.remove(name, entry.id)
        try remember(store.numbers[type], entry.id, revision: revision)
        try tell(entry, of: name, isWhole: true, revision: revision)
    }

    /// Writes a type's rows by taking all of them out first. Where the manner is careful, a row
    /// that is refused is quarantined, and what the table had of it is put back if it still fits.
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
            place.note(changes.name, entry.id, newest)
            let known = try split(entry, type: type, isCreate: true, revision: newest)
            func write(_ applier: inout RemoteApplier) throws {
                try table.insert(entry.id, known, absentMeansNull: true)
                try applier.settle(entry, type: type, revision: newest)
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

    /// Does one row's work, or undoes it where the row cannot be taken in.
    /// - Returns: The reason where it was undone.
    private mutating func attempt(
        _ work: (inout RemoteApplier) throws -> Void
    ) throws -> String? {
        try store.connection.run("SAVEPOINT martlet_row")
        do {
            try work(&self)
            try store.connection.run("RELEASE martlet_row")
            return nil
        } catch let error where RemotePlace.isData(error) && store.connection.isInTransaction {
            try store.connection.run("ROLLBACK TO martlet_row")
            try store.connection.run("RELEASE martlet_row")
            return RemotePlace.sentence(error)
        }
    }

    /// Tries a record in quarantine again, in the form an entry gives it.
    /// - Returns: Whether it was in quarantine; its fate is settled then, one way or the other.
    private mutating func settleQuarantined(
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
    private mutating func release(
        _ entry: RecordEntry, type: Int, revision: Revision
    ) throws {
        let reason = try attempt { applier in
            let known = try applier.split(entry, type: type, isCreate: true, revision: revision)
            try applier.put(type, entry.id, known, isWhole: true)
            try applier.settle(entry, type: type, revision: revision)
        }
        guard let reason else { return }
        try quarantine.put(
            store.schema.types[type].name, entry.id, entry.attributes, revision: revision,
            message: reason)
    }

    /// Tries every record in quarantine again: the tables may be others now.
    mutating func releaseQuarantined() throws {
        guard try quarantine.look() else { return }
        for record in try quarantine.list() {
            guard let type = store.schema.index(of: record.type) else { continue }
            try release(
                RecordEntry(id: record.id, attributes: record.attributes), type: type,
                revision: record.revision)
        }
    }
}

// MARK: - Handlers

extension RemoteApplier {
    private func tell(
        _ entry: RecordEntry, of type: String, isWhole: Bool, revision: Revision
    ) throws {
        guard !registry.isEmpty, let handler = registry[type] else { return }
        try tell(
            handler,
            RemoteChange(
                type: type, id: entry.id, kind: isWhole ? .whole : .part,
                attributes: entry.attributes, revision: revision))
    }

    private func tell(deletionOf id: RecordID, of type: String, revision: Revision) throws {
        guard !registry.isEmpty, let handler = registry[type] else { return }
        try tell(
            handler,
            RemoteChange(
                type: type, id: id, kind: .deleted, attributes: Attributes(), revision: revision))
    }

    private func tell(_ handler: any EntityHandler, _ change: RemoteChange) throws {
        do {
            try handler.take(change, in: RemoteContext(store: store))
        } catch {
            throw HandlerFailure(message: "The app's handler of \(change.type) failed: \(error)")
        }
    }
}

// MARK: - What this version of the app does not know

extension RemoteApplier {
    /// The attributes the schema has; the others are kept aside for a later version of the app.
    private mutating func split(
        _ entry: RecordEntry, type: Int, isCreate: Bool, revision: Revision
    ) throws -> Attributes {
        let described = store.schema.types[type]
        // A record that comes whole brings all its values; older ones are there when it was had
        // before and is fetched again.
        if isCreate { try aside.remove(described.name, entry.id) }
        let names = entry.attributes.names
        if names == knownNames[type] { return entry.attributes }
        let isKnown = names.map { described[attribute: $0].map { !$0.isGenerated } ?? false }
        if !isKnown.contains(false) {
            knownNames[type] = names
            return entry.attributes
        }
        var known = Attributes()
        var unknown = Attributes()
        for index in names.indices {
            if isKnown[index] {
                known[names[index]] = entry.attributes.values[index]
            } else if described[attribute: names[index]] == nil {
                unknown[names[index]] = entry.attributes.values[index]
            }
        }
        if !unknown.isEmpty {
            try aside.add(described.name, entry.id, unknown, revision: revision)
        }
        return known
    }

    private mutating func keepAside(_ changes: TypeChanges, revision: Revision) throws {
        let isHandled = registry[changes.name] != nil
        let creates = Set(changes.create)
        if !isHandled {
            for id in changes.create { try aside.remove(changes.name, id) }
        }
        for entry in changes.entries {
            place.note(changes.name, entry.id, revision)
            if isHandled {
                let isWhole = creates.contains(entry.id)
                try tell(entry, of: changes.name, isWhole: isWhole, revision: revision)
            } else {
                try aside.add(changes.name, entry.id, entry.attributes, revision: revision)
            }
        }
        for id in changes.delete {
            try aside.remove(changes.name, id)
            try tell(deletionOf: id, of: changes.name, revision: revision)
        }
    }

    /// Rows of a difference of a type without a table.
    private mutating func keepAside(whole changes: TypeChanges, revision: Revision) throws {
        var created = changes
        created.create = changes.update
        created.update = []
        try keepAside(created, revision: revision)
    }
}
