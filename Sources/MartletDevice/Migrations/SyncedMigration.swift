package import MartletModel
internal import MartletProtocol
internal import MartletStore
package import SQLiteKit
internal import SQLiteRecords

/// Keeps Martlet's own data about a file's records correct while the file's tables change.
///
/// Capture is either on, with triggers made for the present tables, or off between the first change
/// of the schema and the next use of records. Noted writes are turned into change sets before their
/// tables change. Values kept aside for a new table or column are filled in before the triggers are
/// recreated.
package final class SyncedMigration: MigrationHost {
    private let connection: Connection
    private let file: DeviceFile
    private let sink: (any ChangeSetSink)?
    /// The schema up to which everything is done. Renamed and dropped columns are handled at once.
    private var known = Schema(types: [])
    /// The tables while capture is on.
    private var store: LocalStore?
    /// Columns that were renamed since.
    private var renamed: [String: Set<String>] = [:]
    /// Columns that other programs added.
    private var unannounced: [String: Set<String>] = [:]
    /// The tables that other programs dropped and made again.
    private var remade: [String] = []
    /// The records that the device made and the server accepted while their tables were away, by
    /// table.
    private var made: [String: Set<RecordID>] = [:]
    /// The tables to which other programs gave other names.
    private var away: [MovedTables.Move] = []
    /// The change set of the current version. While it is open, a record that it deletes may be
    /// inserted again under its key: the set then joins the two.
    private var ownSet: Int64?

    package init(connection: Connection, sink: (any ChangeSetSink)?) {
        self.connection = connection
        file = DeviceFile(connection: connection)
        self.sink = sink
    }

    package func begin() throws {
        connection.clearStatementCache()
        renamed = [:]
        unannounced = [:]
        ownSet = nil
        store = nil
        guard try file.isSetUp else {
            try file.install()
            known = Schema(types: [])
            return
        }
        try file.checkFormat()
        known = try file.schema()
        away = try MovedTables(connection).away
        let current = LocalStore(
            connection: connection, schema: known, numbers: try file.numbers(of: known))
        store = current
        // Without a table for notes nothing was noted, because the file was never opened
        // completely.
        try connection.execute(DeviceTables.captureTable(width: 0) + DeviceTables.withheld)
        var others = try OthersChanges(current)
        try others.follow(current)
        try sink?.closeExternal(current)
        try others.keepNames(current)
        guard let former = others.schema else { return }
        try willChangeSchema()
        (known, unannounced, renamed) = (former, others.added, others.renamed)
        (remade, made) = (others.remade, others.made)
        _ = try raised(isByOthers: true)
    }

    package func willChangeSchema() throws {
        guard store != nil else { return }
        try closeOwn()
        try CaptureTriggers.dropAll(connection)
        connection.clearStatementCache()
        store = nil
    }

    package func willUseRecords() throws {
        _ = try raised()
    }

    package func end() throws {
        let store = try raised()
        try closeOwn()
        if ownSet != nil { try store.setState("openSet", .integer(0)) }
        try file.setUpCapture(of: store.schema, numbers: store.numbers)
    }

    /// Turns the version's writes into a change set.
    private func closeOwn() throws {
        guard let sink, let store, try store.hasCapture else { return }
        let notes = try store.takeNotes()
        guard !notes.isEmpty else { return }
        ownSet = try sink.add(notes, to: ownSet, store: store)
        try store.setState("openSet", .integer(ownSet ?? 0))
    }

    /// Returns the present tables, with everything that they have gained filled in, and capture on.
    /// - Parameter isByOthers: Whether other programs changed the tables, and not a version of the
    ///   app.
    private func raised(isByOthers: Bool = false) throws -> LocalStore {
        if let store { return store }
        connection.clearStatementCache()
        // The new table would get the values that are meant for the other one.
        for move in try MovedTables(connection).replaced
        where away.contains(where: { $0.number == move.number }) {
            throw move.refusal
        }
        let schema = try file.schema()
        let raised = LocalStore(
            connection: connection, schema: schema, numbers: try file.numbers(of: schema))
        var news: [TypeChanges] = []
        if isByOthers {
            news = try schema.types.indices.compactMap { try fillReturned($0, of: raised) }
        } else {
            try RemoteTriggers(connection: connection).runAlone {
                for index in schema.types.indices { try fillOwn(index, of: raised) }
            }
        }
        try file.setUpCapture(of: schema, numbers: raised.numbers)
        if !news.isEmpty { try takeIn(news, raised) }
        for name in remade {
            try schema.index(of: name).map { try MissingRecords(store: raised, type: $0).forget() }
        }
        (remade, made) = ([], [:])
        known = schema
        renamed = [:]
        unannounced = [:]
        store = raised
        return raised
    }

    /// Applies the server's changes as the connection for remote change does.
    private func takeIn(_ news: [TypeChanges], _ store: LocalStore) throws {
        var set = ChangeSet(types: news)
        set.isDifference = true
        try RemoteTriggers(connection: connection).runAlone {
            try sink?.takeIn(set, store: store)
        }
    }

    /// Fills a table, or new columns of one, with the values that the server sent before the app
    /// had them.
    private func fillOwn(_ index: Int, of store: LocalStore) throws {
        let type = store.schema.types[index]
        guard known[type.name] != nil else {
            return try NewTable(store: store, type: index).fill()
        }
        let columns = gained(type)
        guard !columns.isEmpty else { return }
        try NewColumns(
            store: store, type: index, columns: columns, renamed: renamed[type.name] ?? []
        ).fill()
    }

    /// Returns the values that the server sent for a table, or for columns, that another program
    /// had taken away.
    private func fillReturned(_ index: Int, of store: LocalStore) throws -> TypeChanges? {
        let type = store.schema.types[index]
        guard known[type.name] != nil else {
            return try ReturnedValues(
                store: store, type: index, columns: nil, made: made[type.name] ?? []
            ).changes()
        }
        let columns = gained(type)
        guard !columns.isEmpty else { return nil }
        try NewColumns(
            store: store, type: index, columns: columns, renamed: renamed[type.name] ?? [],
            unannounced: unannounced[type.name] ?? []
        ).fillDefaults()
        return try ReturnedValues(store: store, type: index, columns: Set(columns.map(\.name)))
            .changes()
    }

    /// Returns the columns that a table did not have before, or that had another name.
    private func gained(_ type: EntityType) -> [Attribute] {
        let again = renamed[type.name] ?? []
        return type.attributes.filter {
            !$0.isGenerated
                && (known[type.name]?[attribute: $0.name] == nil || again.contains($0.name))
        }
    }
}

// MARK: - Renamed and dropped columns

extension SyncedMigration {
    package func didRenameColumn(_ name: String, to new: String, in table: String) throws {
        guard let type = known[table], let number = try file.number(of: table) else { return }
        try StoredAttributes(connection: connection).rename(name, to: new, type: table, number)
        known = known.renaming(name, to: new, in: type)
        try UnannouncedColumns(connection).remove(name, of: number)
        if type.key != name { renamed[table, default: []].insert(new) }
        renamed[table]?.remove(name)
    }

    package func willDropColumn(_ name: String, from table: String) throws {
        guard let type = known[table], let attribute = type[attribute: name] else { return }
        if !attribute.isGenerated, let number = try file.number(of: table) {
            try UnannouncedColumns(connection).remove(name, of: number)
            try DroppedColumn(connection: connection, type: type, number: number)
                .keepAside(attribute)
        }
        known = known.removing(name, from: type)
        renamed[table]?.remove(name)
    }

    package func willDropTable(_ name: String) throws {
        guard known[name] != nil, let number = try file.number(of: name) else { return }
        if try connection.integer(
            "SELECT 1 FROM martlet_changes WHERE type = \(number) LIMIT 1") != nil
            || connection.integer(
                "SELECT 1 FROM martlet_parked_changes WHERE type = \(number) LIMIT 1") != nil
            || connection.integer(
                "SELECT 1 FROM martlet_withheld WHERE type = \(number) LIMIT 1") != nil
        {
            throw StoreError(
                .schema,
                "Table “\(name)” has edits the server has not confirmed, or has refused; dropping it"
                    + " would lose them. Keep the table until they are decided.")
        }
        if try connection.integer(
            "SELECT 1 FROM martlet_records WHERE type = \(number) LIMIT 1") != nil
        {
            throw StoreError(
                .schema,
                "Table “\(name)” holds records the server knows, which would come back with their"
                    + " next change. Leave it in the file, unused, or delete its records first and"
                    + " sync.")
        }
        known = Schema(types: known.types.filter { $0.name != name })
        renamed[name] = nil
        try NotedColumns(connection: connection).forget(number)
    }
}

// MARK: - Opening by a script

extension SyncedMigration {
    /// Sets a file up and brings its tables to `script`, in one transaction.
    /// - Parameter script: The app's DDL; nil to take the tables as they are.
    /// - Returns: The schema, and the types' numbers.
    package func migrate(script: String?) throws -> (Schema, [Int64]) {
        if let unchanged = try unchanged(script: script) { return unchanged }
        defer { store = nil }
        return try connection.transaction {
            try begin()
            if let script {
                do {
                    let plan = try SchemaPlan(script: script, for: connection)
                    if !plan.isEmpty {
                        try willChangeSchema()
                        _ = try plan.run(on: connection)
                    }
                } catch let error as SchemaError {
                    throw away.first?.refusal ?? StoreError(.schema, error.message)
                }
                // The app declares its columns, and its developer adds them to the server first.
                try UnannouncedColumns(connection).removeAll()
            }
            try end()
            let migrated = try raised()
            connection.clearStatementCache()
            return (migrated.schema, migrated.numbers)
        }
    }
}

extension SyncedMigration {
    /// Returns the schema and the types' numbers of a file that needs no change; nil if it needs
    /// one, or has to be refused. It only reads, because another program may be writing for long.
    private func unchanged(script: String?) throws -> (Schema, [Int64])? {
        try connection.beginReading()
        defer {
            connection.rollback()
            connection.clearStatementCache()
        }
        do {
            guard try file.isSetUp else { return nil }
            try file.checkFormat()
            if let script {
                let isSame = try SchemaPlan(script: script, for: connection).isEmpty
                guard try isSame && UnannouncedColumns(connection).all().isEmpty else { return nil }
            }
            let schema = try file.schema()
            let numbers = try schema.types.compactMap { try file.number(of: $0.name) }
            guard numbers.count == schema.types.count,
                try file.isCaptureSetUp(of: schema, numbers: numbers),
                try !LocalStore(connection: connection, schema: schema, numbers: numbers).hasCapture
            else { return nil }
            return (schema, numbers)
        } catch is StoreError, is SchemaError {
            return nil
        }
    }
}

extension Schema {
    /// Returns the schema with a column under another name.
    fileprivate func renaming(_ name: String, to new: String, in type: EntityType) -> Schema {
        let renamed = EntityType(
            name: type.name, key: type.key == name ? new : type.key, keyKind: type.keyKind,
            attributes: type.attributes.map { attribute in
                guard attribute.name == name else { return attribute }
                return Attribute(
                    name: new, kind: attribute.kind, isRequired: attribute.isRequired,
                    hasDefault: attribute.hasDefault, defaultValue: attribute.defaultValue,
                    isGenerated: attribute.isGenerated,
                    keepsDigits: attribute.keepsDigits, meaning: attribute.meaning)
            }, keyMeaning: type.keyMeaning)
        return replacing(renamed)
    }

    /// Returns the schema without a column.
    fileprivate func removing(_ name: String, from type: EntityType) -> Schema {
        replacing(
            EntityType(
                name: type.name, key: type.key, keyKind: type.keyKind,
                attributes: type.attributes.filter { $0.name != name },
                keyMeaning: type.keyMeaning))
    }

    /// Returns the schema with one type replaced. References and unique lists are not needed here
    /// and left out.
    private func replacing(_ type: EntityType) -> Schema {
        Schema(types: types.map { $0.name == type.name ? type : $0 })
    }
}
