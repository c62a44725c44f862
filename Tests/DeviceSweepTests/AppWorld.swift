import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Synchronization
import Testing
import Waiting

/// An app on tables that chance declares: it saves by calls and by SQL, observes, and now and then does what has
/// no place in a closure. Its database is kept in step, or is not.
final class AppWorld {
    let seed: UInt64
    let schema: RandomSchema
    let isSynced: Bool
    let database: any DatabaseAccess
    let folder: URL
    var random: SeededRandom
    var statements: RandomStatements
    private(set) var history: [String] = []
    let told: ToldWrites
    private var observers: [AppObserver] = []
    /// The settings of the connection that writes, and those of one that reads, as they were at first.
    private var settings: (writing: [String], reading: [String]) = ([], [])

    var story: String {
        "seed \(seed)\(isSynced ? "" : ", a pool")\n\(schema.script)\n"
            + history.suffix(tells).joined(separator: "\n--\n")
    }

    /// How much of its history a world tells.
    var tells = 12

    var path: String { folder.appendingPathComponent("app.sqlite").path }

    static func open(seed: UInt64) async throws -> AppWorld {
        var random = SeededRandom(seed: seed &* 0x1234_5678_9abc_def1 &+ 9)
        let schema = RandomSchema(using: &random)
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-app-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.appendingPathComponent("app.sqlite").path
        let told = ToldWrites()
        var hooks = WriteHooks()
        hooks.before([.insert, .update]) { write, _ in try told.note(write, schema) }
        hooks.after([.insert, .update]) { write, context in
            try told.check(write, schema, context)
        }
        let world: AppWorld
        // A pool takes names that are composed in two ways; hooks find both columns under each.
        let isComposed = schema.tables.contains { table in
            Set(table.columns.map(\.name)).count < table.columns.count
        }
        if random.chance(60) || isComposed {
            var options = ClientOptions()
            options.hooks = hooks
            options.externalWritesPeriod = .milliseconds(5)
            let client = try await MartletClient.open(
                path: path, schema: schema.script, options: options)
            world = AppWorld(seed, schema, folder, random, told, client)
        } else {
            try Connection(path: path).execute(schema.script)
            var options = DatabaseOptions()
            options.hooks = hooks
            options.isDurable = false
            options.externalWritesPeriod = .milliseconds(5)
            let pool = try await DatabasePool.open(path: path, options: options)
            world = AppWorld(seed, schema, folder, random, told, pool)
        }
        world.settings = try await world.currentSettings()
        return world
    }

    private init(
        _ seed: UInt64, _ schema: RandomSchema, _ folder: URL, _ random: SeededRandom,
        _ told: ToldWrites, _ database: any DatabaseAccess
    ) {
        (self.seed, self.schema, self.folder, self.random) = (seed, schema, folder, random)
        (self.told, self.database) = (told, database)
        isSynced = database is MartletClient
        statements = RandomStatements(
            schema, seed: seed, on: isSynced ? .device : .server, sendable: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func run(steps: Int) async throws {
        for _ in 0..<2 { try await save() }
        try await observe()
        for _ in 0..<steps {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<20: try await misbehave()
            case 20..<23: try await plant()
            case 23..<30: try await misspell()
            case 30..<40: try otherProgram()
            default: try await save()
            }
            try await lookAround()
            if random.chance(40) { try await observeAnother() }
        }
        for observer in observers { observer.stop() }
        await (database as? MartletClient)?.close()
        await (database as? DatabasePool)?.close()
        if isSynced { try arrive() }
    }

    // MARK: - What is seen

    /// Observes each table as a whole, and some records, of which some are not there.
    private func observe() async throws {
        for table in schema.tables {
            observers.append(AppObserver(rowsOf: table, in: database))
            let keys = try await keys(of: table).shuffled(using: &random).prefix(4)
            let absent: SQLValue = table.isText ? .text("k3") : .integer(isSynced ? -7 : 4)
            for key in Set(keys + [absent]) {
                observers.append(AppObserver(record: key, of: table, in: database))
            }
        }
    }

    /// Somebody observes a record that came later, or one more that may come.
    private func observeAnother() async throws {
        guard observers.count < 20 else { return }
        let table = random.one(of: schema.tables)
        let absent: SQLValue = table.isText ? .text("moved1") : .integer(5)
        let key = try await keys(of: table).randomElement(using: &random) ?? absent
        observers.append(AppObserver(record: key, of: table, in: database))
        try await lookAround()
    }

    private func keys(of table: RandomTable) async throws -> [SQLValue] {
        try await database.read { context in
            try context.rows("SELECT \(table.quotedKey) FROM \(table.quoted)")
                .compactMap(\.values.first)
        }
    }

    /// Each observation comes to what a fresh query finds, and nothing has changed the connections.
    private func lookAround() async throws {
        for observer in observers {
            let fresh = try await observer.fresh(database)
            let hasCome = await holds { observer.last == fresh }
            #expect(
                hasCome,
                "\(observer.name) shows \(observer.last ?? "nothing") and is \(fresh): \(story)")
            guard hasCome else { throw AppWorldError.blind }
        }
        let now = try await currentSettings()
        #expect(now.writing == settings.writing, "\(story)")
        #expect(now.reading == settings.reading, "\(story)")
    }

    private static let settingNames = [
        "query_only", "foreign_keys", "recursive_triggers", "ignore_check_constraints",
        "synchronous",
        "journal_mode", "cache_size", "locking_mode", "temp_store", "writable_schema",
        "busy_timeout",
        "reverse_unordered_selects", "legacy_alter_table", "trusted_schema", "cell_size_check",
        "automatic_index", "secure_delete", "wal_autocheckpoint", "read_uncommitted",
    ]

    private func currentSettings() async throws -> (writing: [String], reading: [String]) {
        let ask: @Sendable (ReadContext) throws -> [String] = { context in
            try Self.settingNames.map { name in
                "\(name): \(try context.rows("PRAGMA \(name)").first?.values ?? [])"
            }
        }
        return try await (database.write { try ask($0) }, database.read(ask))
    }

    // MARK: - What is saved

    private func save() async throws {
        let deeds = (0..<Int.random(in: 1...3, using: &random)).map { _ in deed() }
        let (schema, told) = (schema, told)
        history += deeds.map(\.description)
        do {
            let faults = try await database.write { context in
                try deeds.flatMap { try $0.perform(context, schema, told) }
            }
            #expect(faults.isEmpty, "\(faults) \(story)")
        } catch let error as StoreError {
            history.append("-- refused: \(error.message)")
            let kinds: [StoreError.Kind] = [.constraint, .value, .misuse]
            #expect(kinds.contains(error.kind), "\(error) \(story)")
            // Only a statement that takes the whole save back leads to this.
            #expect(error.kind != .misuse || !isSynced, "\(error) \(story)")
        }
    }

    private func deed() -> AppDeed {
        let table = random.one(of: schema.tables)
        if !isSynced, random.chance(15) { return .sql(keyChange(table)) }
        if random.chance(40) {
            return .sql(isSynced ? statements.ofSave() : statements.statement())
        }
        let columns = table.columns.filter { $0.target == nil && random.chance(60) }
        let values = RecordValues(names: columns.map(\.name), values: columns.map { value($0) })
        let offset = Int.random(in: 0..<4, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
            let key: SQLValue = table.isText ? .text("app\(random.next() % 50)") : .null
            return .insert(table: table, key: key, values)
        case 4..<7: return .update(table: table, offset: offset, values)
        case 7, 8: return .upsert(table: table, offset: offset, values)
        default: return .delete(table: table, offset: offset)
        }
    }

    /// Gives a record another key, by any name of the key. A device that is kept in step refuses that.
    private func keyChange(_ table: RandomTable) -> String {
        let (name, key) = (table.quoted, table.quotedKey)
        let new =
            table.isText
            ? "'moved\(random.next() % 50)'" : "(SELECT ifnull(max(\(key)), 0) + 1 FROM \(name))"
        let spelt = table.isText ? key : random.one(of: [key, "rowid", "oid", "_rowid_"])
        let offset = Int.random(in: 0..<3, using: &random)
        return """
            UPDATE \(name) SET \(spelt) = \(new)
            WHERE \(key) = (SELECT \(key) FROM \(name) LIMIT 1 OFFSET \(offset))
            """
    }

    private func value(_ column: RandomColumn) -> SQLValue {
        if !column.isRequired, random.chance(25) { return .null }
        return switch column.kind {
        case .text: .text(random.one(of: ["a", "A", "b", "c", "", "é", "app"]))
        case .integer: .integer(random.one(of: [0, 1, 2, 3, -1]))
        case .real: .real(random.one(of: [0.5, 1, 3]))
        case .boolean: .integer(random.one(of: [0, 1]))
        case .untyped: random.one(of: [.text("a"), .integer(1), .real(2.5)])
        case .blob: .blob(random.one(of: [[], [0], [97, 98]]))
        }
    }

    private func otherProgram() throws {
        let script = statements.transaction(foreignKeys: true)
        history.append("-- another program: " + script)
        let connection = try Connection(path: path, mode: .readWrite)
        do {
            try connection.execute(script)
        } catch {
            let isJudged = error.isConstraint || error.code == 20
            #expect(isJudged || error.message.hasPrefix("martlet:"), "\(error) \(story)")
        }
    }

    // MARK: - What is refused

    /// A closure does what has no place in one. All of it is refused, and the file stays as it is.
    private func misbehave() async throws {
        let isReading = random.chance(30)
        let refused = (0..<Int.random(in: 1...2, using: &random)).map { _ in
            forbidden(isReading: isReading)
        }
        history += refused.map { "-- refused\(isReading ? " in a read" : ""): " + $0 }
        let before = try dump()
        let attempt: @Sendable (ReadContext) throws -> [String] = { context in
            refused.filter { sql in
                do {
                    try context.rows(sql)
                    return true
                } catch {
                    return !(error is StoreError)
                }
            }
        }
        let taken: [String]
        if isReading {
            taken = try await database.read(attempt)
        } else {
            taken = try await database.write { try attempt($0) }
        }
        #expect(taken.isEmpty, "taken: \(taken) \(story)")
        #expect(try dump() == before, "\(story)")
    }

    /// A closure makes a trigger that would write to what is Martlet's, and has it run.
    private func plant() async throws {
        guard isSynced else { return }
        let table = random.one(of: schema.tables)
        let event = random.one(of: ["AFTER INSERT", "BEFORE INSERT", "AFTER DELETE"])
        let effect = ofMartlet(table)
        guard ["DELETE", "UPDATE", "INSERT"].contains(where: effect.hasPrefix) else { return }
        let made = "CREATE TRIGGER fresh \(event) ON \(table.quoted) BEGIN \(effect); END"
        let fires =
            event == "AFTER DELETE"
            ? "DELETE FROM \(table.quoted)" : "INSERT INTO \(table.quoted) DEFAULT VALUES"
        history.append("-- refused: \(made); \(fires)")
        let before = try dump()
        let database = database
        let error = await #expect(throws: StoreError.self, "\(story)") {
            try await database.write { context in
                try context.rows(made)
                try context.rows(fires)
            }
        }
        let kind = error?.kind
        #expect(kind == .misuse || kind == .statement, "\(String(describing: error)) \(story)")
        #expect(try dump() == before, "\(story)")
    }

    private func forbidden(isReading: Bool) -> String {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
            let name = random.one(of: Self.settingNames.filter { $0 != "busy_timeout" })
            let value = random.one(of: ["0", "1", "2", "ON", "OFF", "'x'"])
            return random.one(of: [
                "PRAGMA \(name) = \(value)", "pragma main.\(name)(\(value))",
                "/* so */ PRAGMA \(name.uppercased())=\(value);",
            ])
        case 4:
            return random.one(of: [
                "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT s", "RELEASE s", "ROLLBACK TO s",
                "VACUUM",
                "ATTACH ':memory:' AS other", "DETACH main", "PRAGMA wal_checkpoint",
                "PRAGMA optimize",
            ])
        default: break
        }
        let table = random.one(of: schema.tables)
        if isReading {
            return random.one(of: [
                statements.ofSave(), "DELETE FROM \(table.quoted)",
                "CREATE TABLE fresh(id INTEGER)",
                "CREATE TEMP TABLE fresh(id INTEGER)", "DROP TABLE \(table.quoted)",
            ])
        }
        guard isSynced else { return "PRAGMA query_only = 1" }
        if random.chance(25) {
            let column = random.one(of: table.columns).quoted
            return random.one(of: [
                "DROP TABLE \(table.quoted)", "ALTER TABLE \(table.quoted) RENAME TO elsewhere",
                "ALTER TABLE \(table.quoted) DROP COLUMN \(column)",
                "CREATE UNIQUE INDEX fresh ON \(table.quoted)(\(column))",
                "CREATE TABLE fresh(id INTEGER PRIMARY KEY)",
                "CREATE TEMP TABLE \(table.quoted)(id INTEGER PRIMARY KEY)",
            ])
        }
        return ofMartlet(table)
    }

    /// A statement that would write to what is Martlet's.
    private func ofMartlet(_ table: RandomTable) -> String {
        let found = try? Connection(path: path, mode: .readWrite).prepare(
            """
            SELECT o.name, (SELECT name FROM pragma_table_info(o.name) LIMIT 1) FROM sqlite_schema AS o
            WHERE type IN ('table', 'view') AND o.name LIKE 'martlet\\_%' ESCAPE '\\' ORDER BY 1
            """
        ).rows { (row) throws(SQLiteError) in (row.text(0), row.text(1)) }
        guard let (name, column) = (found ?? []).randomElement(using: &random) else {
            return "BEGIN"
        }
        return random.one(of: [
            "DELETE FROM \(name)", "UPDATE \(name) SET \(column) = NULL",
            "INSERT OR REPLACE INTO \(name)(\(column)) VALUES (1)",
            "INSERT INTO \(name) DEFAULT VALUES",
            "WITH x AS (SELECT 1) DELETE FROM main.\(name.uppercased())", "DROP TABLE \(name)",
            "DROP VIEW \(name)", "ALTER TABLE \(name) RENAME TO elsewhere",
            "CREATE TEMP TABLE \(name)(id INTEGER)", "CREATE TABLE martlet_fresh(id INTEGER)",
            "CREATE VIEW martlet_fresh AS SELECT 1",
            "CREATE TRIGGER fresh AFTER INSERT ON \(name) BEGIN DELETE FROM \(table.quoted); END",
        ])
    }

    /// A record with a name that no column has is refused as a whole.
    private func misspell() async throws {
        let table = random.one(of: schema.tables)
        let column = random.one(of: table.columns)
        var letters = Array(column.name)
        letters.insert("q", at: Int.random(in: 0...letters.count, using: &random))
        let (name, right, given) = (String(letters), column.name, value(column))
        let key: SQLValue = table.isText ? .text("spelt") : .integer(1)
        let verb = Int.random(in: 0..<3, using: &random)
        history.append("-- a record of \(table.name) with “\(name)”, \(verb)")
        let before = try dump()
        let database = database
        let error = await #expect(throws: StoreError.self, "\(story)") {
            try await database.write { context in
                var values = RecordValues(names: [name], values: [given])
                if given != .null {
                    values = RecordValues(names: [right, name], values: [given, given])
                }
                let plain = PlainTable(table.name)
                switch verb {
                case 0: try plain.insert(values, in: context)
                case 1: try plain.update(values.adding(table.key, key), in: context)
                default: try plain.upsert(values.adding(table.key, key), in: context)
                }
            }
        }
        #expect(error?.kind == .unknown, "\(String(describing: error)) \(story)")
        #expect(try dump() == before, "\(story)")
    }

    /// All that the file holds, as SQL.
    private func dump() throws -> [String] {
        let connection = try Connection(path: path, mode: .readWrite)
        func texts(_ sql: String) throws -> [[String]] {
            let statement = try connection.prepare(sql)
            return try statement.rows { (row) throws(SQLiteError) in
                (0..<statement.columnCount).map { row.text($0) }
            }
        }
        let objects = try texts(
            "SELECT type, name, ifnull(sql, '') FROM sqlite_schema ORDER BY 1, 2")
        return try objects.flatMap { object in
            guard object[0] == "table" else { return [object.joined(separator: " ")] }
            let table = RandomTable.quoted(object[1])
            let columns = try texts("SELECT name FROM pragma_table_info(\(table))").map { row in
                "quote(\(RandomTable.quoted(row[0])))"
            }
            let rows = try texts("SELECT \(columns.joined(separator: ", ")) FROM \(table)")
            return [object.joined(separator: " ")] + rows.map { $0.joined(separator: "|") }.sorted()
        }
    }

    // MARK: - What arrives

    /// All that was saved reaches a server.
    private func arrive() throws {
        let world = try SmallWorld(DiskName.next("app"), script: schema.script)
        let device = try world.device(ofFileAt: path, script: schema.script)
        try device.store.endLeases()
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(device.errors) \(story)")
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        // schema.md: what such an index forbids to move needs two saves.
        let isOfIndex =
            parked.contains { $0.contains("failed: index") } || schema.script.contains(" WHERE ")
        #expect(parked.isEmpty || isOfIndex || isOfCase(parked), "\(parked) \(story)")
        #expect(try device.store.withheld().isEmpty, "\(story)")
        guard parked.isEmpty else { return }
        #expect(
            try Witness.visible(schema, device.connection())
                == Witness.visible(schema, world.server.connection()), "\(story)")
    }
}

extension AppWorld {
    /// Whether a set was refused because it deletes a record and creates one whose key differs in case only. See
    /// schema.md: a server does not take that if a key that changes is to clear references.
    private func isOfCase(_ parked: [String]) -> Bool {
        schema.script.contains("ON UPDATE SET NULL")
            && schema.tables.contains { table in
                table.isText && table.script.contains("PRIMARY KEY COLLATE NOCASE")
                    && parked.contains {
                        $0.hasSuffix("UNIQUE constraint failed: \(table.name).\(table.key)")
                    }
            }
    }
}

enum AppWorldError: Error {
    /// An observation does not show what is there.
    case blind
}

extension RecordValues {
    /// The same, with one value more.
    func adding(_ name: String, _ value: SQLValue) -> RecordValues {
        RecordValues(names: [name] + names, values: [value] + values)
    }
}
