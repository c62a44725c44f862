internal import MartletEmbedded
internal import MartletModel
internal import MartletPostgres
internal import MartletServerCore
internal import PostgresKit
internal import RedisKit
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// What a server's data sets stand on: files in its folder, or databases. Looked at before anything
/// is made on disk.
struct DataSources: Sendable {
    let plan: SeedingPlan
    /// The rules for a data set's types; throws where they do not fit.
    let rules: @Sendable (Schema) throws -> Rules
    let redis: RedisHub?
    /// What the log says of the schema of all data sets.
    let schemaFields: [(String, ServerLog.Field)]
    /// The data sets in databases, by name; nil where data sets are files.
    private let places: [String: PostgresPlace]?

    /// - Throws: `ServerFailure`, `SchemaError`: sentences that say what to do.
    init(_ configuration: ServerConfiguration) async throws {
        let plan = try configuration.seeding.map { bytes throws(ServerFailure) in
            try SeedingFile.parse(bytes)
        }
        self.plan = plan ?? .whole
        redis = try Self.redis(configuration)
        guard configuration.postgres.isEmpty else {
            let bytes = configuration.rules
            rules = { schema in
                try bytes.map { bytes throws(ServerFailure) in
                    try RulesFile.parse(bytes, schema: schema)
                } ?? .everything
            }
            schemaFields = []
            places = try await Self.find(configuration.postgres)
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
        let fixed = try configuration.rules.map { bytes throws(ServerFailure) in
            try RulesFile.parse(bytes, schema: schema)
        }
        rules = { _ in fixed ?? .everything }
        schemaFields = [
            ("types", .number(schema.types.count)), ("schema", .text(schema.fingerprint)),
        ]
        places = nil
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

    private static func find(_ texts: [String]) async throws -> [String: PostgresPlace] {
        let looking = try await Confined.making(label: "martlet.databases") {
            var places: [String: PostgresPlace] = [:]
            for text in texts {
                let place: PostgresPlace
                do {
                    place = try PostgresPlace.find(try PostgresAddress(text))
                } catch let refusal as PostgresRefusal {
                    throw ServerFailure(refusal.description)
                } catch let error as PostgresError {
                    throw ServerFailure(
                        "The address of a database cannot be read. \(error.remedy)")
                }
                if let other = places[place.name] {
                    throw ServerFailure(
                        """
                        Two databases have a data set called “\(place.name)”: (\(other.address)) \
                        and (\(place.address)). Serve them from different processes, or rename \
                        one: UPDATE _martlet.dataset SET name = '…' in its database.
                        """)
                }
                try DataSetName.check(place.name)
                places[place.name] = place
            }
            return places
        }
        return try await looking.run { $0 }
    }

    /// By data set: a secret that all servers of its database know.
    var tokenSalts: [String: [UInt8]] {
        (places ?? [:]).mapValues(\.cacheKey)
    }

    /// The tokens that stand in databases.
    var tokens: [DatabaseTokens] {
        (places ?? [:]).sorted { $0.key < $1.key }.map { DatabaseTokens($0.value) }
    }

    /// Whether data sets are files; there may be many of them.
    var isEmbedded: Bool { places == nil }

    /// Returns the names of the data sets.
    func names(
        in directory: String, ofTokens named: Set<String>, log: ServerLog
    ) throws -> [String] {
        guard let places else {
            return named.union(try DataSetDirectory.names(in: directory)).sorted()
        }
        for name in named.sorted() where places[name] == nil {
            log.log(
                .warning, "tokens",
                [
                    ("dataSet", .text(name)),
                    ("reason", .text("There are tokens for a data set that no database has.")),
                ])
        }
        return places.keys.sorted()
    }

    /// What keeps a data set.
    /// - Throws: `DataSetNotServed` for one that is in none of the databases.
    func backing(
        of name: String, _ configuration: ServerConfiguration
    ) throws -> any DataSetBacking {
        guard let places else {
            return EmbeddedBacking(
                path: "\(configuration.dataDirectory)/\(name).sqlite",
                script: configuration.schema)
        }
        guard let place = places[name] else { throw DataSetNotServed() }
        return PostgresBacking(
            place: place, plan: plan, redis: redis, log: configuration.log, now: configuration.now)
    }
}
