internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Writes the server's entries into the app's tables.
struct RemoteApplier {
    /// The mode in which changes are written.
    struct ApplyMode {
        /// Whether a set's rows are all deleted before any is inserted, so that no order of writes
        /// can meet a UNIQUE constraint on the way.
        var replaces = false
        /// Whether updating a missing record inserts it. True if the sender does not say which
        /// revision it assumes.
        var isLenient = false
        /// Whether a row of a difference that the table refuses is quarantined, so that the others
        /// are applied.
        var isCareful = false
        /// Whether a confirmed image that the table refuses is quarantined.
        var quarantinesImages = false
    }

    let store: LocalStore
    var manner = ApplyMode()
    let location = ErrorLocation()
    let registry: ModelRegistry
    var keptAside: KeptAsideTable
    var quarantine: Quarantine
    /// Stores a record's revision. The statement is kept, because it runs for every record.
    private let remembering: Remembering
    private var knownNames: [[String]]

    init(store: LocalStore, registry: ModelRegistry = ModelRegistry(), now: Int64) {
        self.store = store
        self.registry = registry
        keptAside = KeptAsideTable(store: store)
        quarantine = Quarantine(store: store, now: now)
        remembering = Remembering(store: store)
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
                // If rows are replaced, deletes come before the inserts that need the room.
                location.note(changes.name, id, revision)
                if manner.replaces { _ = try store.tables[type].delete(id) }
                try forgetAll(changes.name, number, id)
            }
            var done = deletes
            if manner.replaces {
                try done.formUnion(
                    merge(
                        changes, type: type, creates: creates, deletes: deletes,
                        revision: revision))
            }
            for entry in changes.entries where !deleted(entry.id, done) {
                let isCreate = changes.update.isEmpty || creates.contains(entry.id)
                let newest = entry.revision ?? revision
                location.note(changes.name, entry.id, newest)
                if !manner.replaces {
                    guard
                        try !retryQuarantined(
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
                location.note(changes.name, id, revision)
                if !manner.replaces { _ = try store.tables[type].delete(id) }
                try tell(deletionOf: id, of: changes.name, revision: revision)
            }
        }
    }

    private func deleted(_ id: RecordID, _ deletes: Set<RecordID>) -> Bool {
        !deletes.isEmpty && deletes.contains(id)
    }

    /// Writes the entries of one type after deleting all their rows.
    /// - Returns: The quarantined records among them whose outcome is decided.
    private mutating func merge(
        _ changes: TypeChanges, type: Int, creates: Set<RecordID>, deletes: Set<RecordID>,
        revision: Revision
    ) throws -> Set<RecordID> {
        let table = store.tables[type]
        var whole: [(RecordID, Attributes)] = []
        var quarantined: [(entry: RecordEntry, shown: Attributes?)] = []
        for entry in changes.entries where !deletes.contains(entry.id) {
            location.note(changes.name, entry.id, entry.revision ?? revision)
            let isCreate = changes.update.isEmpty || creates.contains(entry.id)
            if !isCreate, try quarantine.record(changes.name, entry.id) != nil {
                let shown = try table.read(entry.id).map { store.stored($0, type: type) }
                quarantined.append((entry, shown))
                continue
            }
            let known = try split(entry, type: type, isCreate: isCreate, revision: revision)
            var image = Attributes()
            if !isCreate {
                if let present = try table.read(entry.id) {
                    image = store.stored(present, type: type)
                } else if !manner.isLenient {
                    throw isMissing(type)
                }
            }
            for (name, value) in zip(known.names, known.values) {
                image[name] = value
            }
            whole.append((entry.id, image))
        }
        for id in whole.map(\.0) + quarantined.map(\.entry.id) { _ = try table.delete(id) }
        for (id, image) in whole {
            location.note(changes.name, id, revision)
            try table.insert(id, image, absentMeansNull: true)
            try quarantine.remove(changes.name, id)
        }
        // Rows that the table has refused so far wait until all others have their values.
        for (entry, shown) in quarantined {
            _ = try retryQuarantined(
                entry, type: type, isCreate: false, revision: entry.revision ?? revision)
            guard let shown, try quarantine.record(changes.name, entry.id) != nil else { continue }
            _ = try attempt { _ in try table.insert(entry.id, shown, absentMeansNull: true) }
        }
        return Set(quarantined.map(\.entry.id))
    }

    private func isMissing(_ type: Int) -> StoreError {
        StoreError(
            .inconsistent,
            "The server changed a record of \(store.schema.types[type].name)"
                + " that this device does not have.")
    }

    /// Writes a record's values.
    /// - Parameter isWhole: Whether missing attributes become null; otherwise they stay.
    func put(_ type: Int, _ id: RecordID, _ attributes: Attributes, isWhole: Bool) throws {
        let table = store.tables[type]
        if isWhole {
            do {
                try table.insert(id, attributes, absentMeansNull: true)
            } catch {
                guard error.isUniqueViolation, try table.exists(id) else { throw error }
                _ = try table.update(
                    id, completed(attributes, type: type, without: table.ownColumns))
            }
        } else if try !table.update(id, attributes) {
            if manner.isLenient { return try table.insert(id, attributes, absentMeansNull: false) }
            throw isMissing(type)
        }
    }

    /// Restores a confirmed image of a record. Values that the table has no place for, because the
    /// image is older than the schema, are kept aside.
    /// - Parameter number: The number of the record's type, which the schema may have lost.
    mutating func restore(
        _ number: Int64, _ id: RecordID, _ image: Attributes, revision: Revision
    ) throws {
        guard let type = store.index(ofNumber: number) else {
            // If the table comes back, the kept values hold the whole record.
            try forget(number, id)
            return try keptAside.addOlder(
                store.typeName(ofNumber: number), id, image, revision: revision)
        }
        let table = store.tables[type]
        let known = store.known(image, type: type)
        if known.count < image.count {
            try keptAside.addOlder(
                store.schema.types[type].name, id, store.unknown(image, type: type),
                revision: revision)
        }
        if try !table.update(id, completed(known, type: type)) {
            try table.insert(id, known, absentMeansNull: true)
        }
    }

    /// Returns all attributes, with null for missing ones. Leaves out a null if the column holds
    /// its default instead.
    /// - Parameter left: Columns that stay as they are if they are missing.
    private func completed(
        _ attributes: Attributes, type: Int, without left: Set<String> = []
    ) -> Attributes {
        var (names, values): ([String], [Value]) = ([], [])
        for attribute in store.schema.types[type].attributes where !attribute.isGenerated {
            let given = attributes[attribute.name]
            let value = given ?? .null
            guard !attribute.refuses(value), given != nil || !left.contains(attribute.name) else {
                continue
            }
            names.append(attribute.name)
            values.append(value)
        }
        return Attributes(names: names, values: values)
    }

    func remember(_ number: Int64, _ id: RecordID, revision: Revision) throws {
        let put = try remembering.statement
        put.bind(1, integer: number)
        put.bind(2, id)
        put.bind(3, integer: revision)
        try put.run()
    }

    private final class Remembering {
        private let store: LocalStore
        private var made: Statement?

        init(store: LocalStore) {
            self.store = store
        }

        var statement: Statement {
            get throws(SQLiteError) {
                if let made { return made }
                let put = try store.connection.statement(
                    "INSERT OR REPLACE INTO martlet_records(type, id, revision) VALUES (?, ?, ?)")
                made = put
                return put
            }
        }
    }

    /// Deletes everything known of a deleted record, apart from its row.
    mutating func forgetAll(_ name: String, _ number: Int64, _ id: RecordID) throws {
        try forget(number, id)
        try keptAside.remove(name, id)
        try quarantine.remove(name, id)
    }

    func forget(_ number: Int64, _ id: RecordID) throws {
        let delete = try store.connection.statement(
            "DELETE FROM martlet_records WHERE type = ? AND id = ?")
        delete.bind(1, integer: number)
        delete.bind(2, id)
        try delete.run()
    }
}

// MARK: - Types and attributes that this version of the app does not know

extension RemoteApplier {
    /// Returns the attributes that the schema has. The others are kept aside for a later version of
    /// the app.
    mutating func split(
        _ entry: RecordEntry, type: Int, isCreate: Bool, revision: Revision
    ) throws -> Attributes {
        let described = store.schema.types[type]
        // A whole record brings all its values. Older ones exist if the device had the record
        // before and fetches it again.
        if isCreate { try keptAside.remove(described.name, entry.id) }
        let names = entry.attributes.names
        if names == knownNames[type] { return entry.attributes }
        try store.announce(names, of: type)
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
            try keptAside.add(described.name, entry.id, unknown, revision: revision)
        }
        return known
    }

    mutating func keepAside(_ changes: TypeChanges, revision: Revision) throws {
        let isHandled = registry[changes.name] != nil
        let creates = Set(changes.create)
        if !isHandled {
            let number = try store.number(ofType: changes.name)
            for id in changes.create {
                try keptAside.remove(changes.name, id)
                try quarantine.remove(changes.name, id)
                // The kept values are whole from now on, whatever row a table that comes back has.
                if let number { try forget(number, id) }
            }
        }
        for entry in changes.entries {
            location.note(changes.name, entry.id, revision)
            if isHandled {
                let isWhole = creates.contains(entry.id)
                try tell(entry, of: changes.name, isWhole: isWhole, revision: revision)
            } else {
                try keptAside.add(
                    changes.name, entry.id, entry.attributes, revision: entry.revision ?? revision)
            }
        }
        for id in changes.delete {
            try noteGone(id, of: changes.name)
            try tell(deletionOf: id, of: changes.name, revision: revision)
        }
    }

    /// Notes that a record of a type without a table was deleted: its revision becomes negative. If
    /// the table comes back, its row is deleted.
    mutating func noteGone(_ id: RecordID, of name: String) throws {
        let wasKeptAside = try keptAside.record(name, id) != nil
        try keptAside.remove(name, id)
        try quarantine.remove(name, id)
        guard let number = try store.number(ofType: name) else { return }
        let mark = try store.connection.statement(
            """
            UPDATE martlet_records SET revision = -1 - revision
            WHERE type = ? AND id = ? AND revision >= 0
            """)
        mark.bind(1, integer: number)
        mark.bind(2, id)
        try mark.run()
        guard wasKeptAside else { return }
        // For a record with unsent edits, its image and revision were kept aside. Its row is still
        // in the table that is away.
        let note = try store.connection.statement(
            "INSERT OR IGNORE INTO martlet_records(type, id, revision) VALUES (?, ?, -1)")
        note.bind(1, integer: number)
        note.bind(2, id)
        try note.run()
    }

    /// Keeps the rows of a difference of a type without a table.
    mutating func keepAside(whole changes: TypeChanges, revision: Revision) throws {
        var created = changes
        created.create = changes.update
        created.update = []
        try keepAside(created, revision: revision)
    }
}
