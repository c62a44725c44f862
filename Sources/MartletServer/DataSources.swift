internal import MartletEmbedded
internal import MartletModel
internal import MartletPostgres
internal import MartletServerCore
internal import PostgresKit
internal import RedisKit
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// The source of a server's data sets: files in its folder, or databases.
///
/// The initialiser checks it before the server creates anything on disk.
struct DataSources: Sendable {
    let plan: SeedingPlan
    /// Returns the rules for a data set's types; throws if they do not fit the types.
    let rules: @Sendable (Schema) throws -> DataSetRules
    let redis: RedisHub?
    /// The log fields that describe the schema of all data sets.
    let schemaFields: [(String, ServerLog.Field)]
    /// The data sets in databases, by name; nil if data sets are files.
    private let databases: [String: ServedDatabase]?

    /// Reads the schema and the rules, or looks into the databases.
    ///
    /// - Throws: `ServerFailure`, `SchemaError`: sentences that say what to do.
    init(_ configuration: ServerConfiguration) async throws {
        let plan = try configuration.seeding.map { bytes throws(ServerFailure) in
            try SeedingFile.parse(bytes)
        }
        self.plan = plan ?? .whole
        redis = try Self.redis(configuration)
        let bytes = configuration.rules
        let read: @Sendable (Schema) throws -> DataSetRules = { schema in
            try bytes.map { bytes throws(ServerFailure) in
                try RulesFile.read(bytes, schema: schema)
            } ?? DataSetRules()
        }
        guard configuration.postgres.isEmpty else {
            rules = read
            schemaFields = []
            databases = try await Self.find(configuration.postgres)
            return
        }
        let script = configuration.schema
        let reading = try await Confined.making(label: "martlet.schema") {
            let connection = try Connection(path: ":memory:")
            let schema = try SchemaMigration.apply(script: script, to: connection)
            try plan?.check(on: connection)
            return schema
        }
        let schema = try await reading.run { $0 }
        // Rules have the positions of types and columns, and a file may have them in another order than the
        // schema of the configuration.
        let fixed = try read(schema)
        rules = { try $0 == schema ? fixed : read($0) }
        schemaFields = [
            ("types", .number(schema.types.count)), ("schema", .text(schema.fingerprint)),
        ]
        databases = nil
    }

    private static func redis(
        _ configuration: ServerConfiguration
    ) throws(ServerFailure) -> RedisHub? {
        guard let text = configuration.redis else { return nil }
        guard !configuration.postgres.isEmpty else {
            throw ServerFailure(
                """
                Redis serves the processes of a PostgreSQL database (--postgres); data sets in files \
                have one process and keep their change sets in its memory. Leave --redis out.
                """)
        }
        do {
            return RedisHub(try RedisAddress(text), log: configuration.log)
        } catch {
            throw ServerFailure("\(error.message). \(error.remedy)")
        }
    }

    private static func find(_ texts: [String]) async throws -> [String: ServedDatabase] {
        let looking = try await Confined.making(label: "martlet.databases") {
            var databases: [String: ServedDatabase] = [:]
            for text in texts {
                let database: ServedDatabase
                do {
                    database = try ServedDatabase.find(try PostgresAddress(text))
                } catch let refusal as PostgresRefusal {
                    throw ServerFailure(refusal.description)
                } catch let error as PostgresError {
                    throw ServerFailure(
                        "The address of a database cannot be read. \(error.remedy)")
                }
                if let other = databases[database.name] {
                    throw ServerFailure(
                        """
                        Two databases have a data set called “\(database.name)”: (\(other.address)) \
                        and (\(database.address)). Serve them from different processes, or rename \
                        one: UPDATE _martlet.dataset SET name = '…' in its database.
                        """)
                }
                try DataSetName.check(database.name)
                databases[database.name] = database
            }
            return databases
        }
        return try await looking.run { $0 }
    }

    /// The secret of each data set, by name. All servers of its database know it.
    var tokenSalts: [String: [UInt8]] {
        (databases ?? [:]).mapValues(\.cacheKey)
    }

    /// The tokens that are stored in databases.
    var tokens: [DatabaseTokens] {
        (databases ?? [:]).sorted { $0.key < $1.key }.map { DatabaseTokens($0.value) }
    }

    /// True if data sets are files; there may be many of them.
    var isEmbedded: Bool { databases == nil }

    /// Returns the names of the data sets.
    func names(
        in directory: String, ofTokens named: Set<String>, log: ServerLog
    ) throws -> [String] {
        guard let databases else {
            return named.union(try DataSetDirectory.names(in: directory)).sorted()
        }
        for name in named.sorted() where databases[name] == nil {
            log.log(
                .warning, "tokens",
                [
                    ("dataSet", .text(name)),
                    ("reason", .text("There are tokens for a data set that no database has.")),
                ])
        }
        return databases.keys.sorted()
    }

    /// Returns the storage of a data set.
    ///
    /// - Throws: `DataSetNotServed` if none of the databases has the data set.
    func backing(
        of name: String, _ configuration: ServerConfiguration
    ) throws -> any DataSetBacking {
        guard let databases else {
            return EmbeddedBacking(
                path: "\(configuration.dataDirectory)/\(name).sqlite",
                script: configuration.schema)
        }
        guard let database = databases[name] else { throw DataSetNotServed() }
        return PostgresBacking(
            database: database, plan: plan, rules: rules, redis: redis, log: configuration.log,
            now: configuration.now)
    }
}
