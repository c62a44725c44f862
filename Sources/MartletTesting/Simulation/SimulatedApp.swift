internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletRules
internal import MartletServerCore
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit
internal import SQLiteRecords
internal import Synchronization

/// The app that the devices of a simulation open: tables, rules, handlers.
struct SimulatedApp {
    enum Tables {
        case script(String)
        case versions(Migrations)

        init(_ schema: SimulatedSchema) {
            switch schema.content {
            case .script(let script): self = .script(script)
            case .versions(let migrations): self = .versions(migrations)
            }
        }
    }

    private static let made = Atomic(0)

    let tables: Tables
    /// The same tables, as the server has them.
    let serverScript: String
    /// The plan by which snapshots are divided into parts.
    var seeding = SeedingPlan.whole
    var hooks = WriteHooks()
    var models = ModelRegistry()
    /// Whether the caller that steps the simulation performs people's actions. Otherwise the
    /// simulation makes random edits.
    var isScripted = true
    /// The tables, if they were declared at random.
    private(set) var random: RandomSchema?
    /// Whether the last device joins late, if there are three or more.
    var hasLatecomer = true

    /// The app with which Martlet itself is tested.
    /// - Parameter hasPolicies: Whether it has memberships, on which policies depend.
    static func workload(hasPolicies: Bool) -> SimulatedApp {
        var app = SimulatedApp(
            script: Workload.script + (hasPolicies ? "\n\(Workload.members)" : ""))
        app.seeding = Workload.seeding
        app.isScripted = false
        return app
    }

    /// Returns an app with tables that are declared at random.
    static func random(using random: inout SeededRandom) -> SimulatedApp {
        var schema = RandomSchema(using: &random)
        // A schema that is refused when it is read cannot be used.
        while (try? serverScript(.sql(schema.script))) == nil {
            schema = RandomSchema(using: &random)
        }
        var app = SimulatedApp(script: schema.script)
        app.random = schema
        if schema.tables.count > 1 {
            let first = random.one(of: schema.tables).name
            app.seeding = SeedingPlan(classes: [.init(name: "first", types: [first: .all])])
        }
        app.isScripted = false
        return app
    }

    private init(script: String) {
        tables = .script(script)
        serverScript = script
    }

    /// - Parameter serverScript: The result of `serverScript(_:rules:)` for the schema.
    init(_ schema: SimulatedSchema, serverScript: String) {
        tables = Tables(schema)
        self.serverScript = serverScript
    }

    /// Returns the tables as the server gets them.
    /// - Parameter rules: A rules file, which has to fit the tables; nil for none.
    /// - Throws: `StoreError` for tables that cannot be made or synchronised, and for such a file.
    static func serverScript(_ schema: SimulatedSchema, rules: String? = nil) throws -> String {
        // This makes a device's file once, so that a wrong schema is reported here, and the server
        // gets the final tables.
        let disk = FaultDisk(name: "schema-\(made.add(1, ordering: .relaxed).newValue)")
        do {
            let store = try open(
                Tables(schema), WriteHooks(), path: "schema.sqlite", vfs: disk.vfsName, now: 0,
                randomBits: { 0 })
            if let rules {
                _ = try RulesProgram(rules, schema: SchemaReader.read(store.local.connection))
            }
            return try SchemaMigration.ddl(of: store.local.connection, triggers: false)
        } catch let fault as RulesFault {
            throw StoreError(.schema, "The rules: \(fault)")
        } catch {
            throw StoreError.of(error)
        }
    }

    /// Opens or creates a device's file.
    func open(
        path: String, vfs: String, now: Int64, randomBits: @escaping () -> UInt64
    ) throws -> DeviceStore {
        let store = try Self.open(
            tables, hooks, path: path, vfs: vfs, now: now, randomBits: randomBits)
        store.registry = models
        return store
    }

    private static func open(
        _ tables: Tables, _ hooks: WriteHooks, path: String, vfs: String, now: Int64,
        randomBits: @escaping () -> UInt64
    ) throws -> DeviceStore {
        switch tables {
        case .script(let script):
            try DeviceStore(
                path: path, script: script, vfs: vfs, hooks: hooks, randomBits: randomBits)
        case .versions(let migrations):
            try DeviceStore(
                path: path, migrations: migrations, vfs: vfs, hooks: hooks, now: now,
                randomBits: randomBits)
        }
    }

    /// Creates the empty tables in a file whose tables were dropped.
    func makeTables(on connection: Connection) throws {
        switch tables {
        case .script(let script): try connection.execute(script)
        case .versions(let migrations): try Migrator(migrations, now: 0).makeTables(on: connection)
        }
    }
}
