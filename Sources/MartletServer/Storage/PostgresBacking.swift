internal import Dispatch
internal import MartletEmbedded
internal import MartletModel
internal import MartletPostgres
internal import MartletRedis
internal import MartletRules
internal import MartletServerCore
internal import PostgresKit
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// A data set in a PostgreSQL database, which other processes and programs may write to.
struct PostgresBacking: DataSetBacking {
    let database: ServedDatabase
    /// The plan for snapshots, which is checked against the tables that devices get.
    let plan: SeedingPlan
    /// Returns the rules for the types; throws if they do not fit.
    let rules: @Sendable (Schema) throws -> DataSetRules
    let redis: RedisHub?
    let log: ServerLog
    /// Returns the time, in milliseconds since 1970.
    let now: @Sendable () -> Int64

    func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet {
        let (tables, policies) = try readTables(now: now)
        let names = policies.map { TableNames(tables, readBy: $0) }
        let store = try PostgresStore(
            database.address, ServedDatabase.options(name: "martlet writer"), checking: names,
            unsendable: unsendable
        ) { [log, name = database.name] in
            log.log(
                .warning, "unreplicated",
                [
                    ("dataSet", .text(name)),
                    ("reason", .text(Self.unreplicated)),
                    ("remedy", .text(Self.unreplicatedRemedy)),
                ])
        }
        let readers = Readers(
            database: database, tables: tables, policies: policies?.text, names: names,
            unsendable: unsendable, redis: redis, now: self.now)
        return OpenedDataSet(
            storage: store, log: readers.storedLog(), ddl: tables.deviceScript,
            tables: store.tables, readers: readers)
    }

    private static let unreplicated = """
        A commit's wait for a synchronous standby was cancelled: it holds here, and perhaps on no standby.
        """
    private static let unreplicatedRemedy = """
        If this server fails before a standby has it, what others wrote is lost; devices send theirs again.
        """

    private static let rowSecurityRemedy = """
        martlet postgres adopt --rules FILE writes a rules file of its policies for --rules of the server
        """

    /// Reads the tables as they are at the start, announces new columns to devices, and logs the
    /// notes about the tables.
    private func readTables(now: Int64) throws -> (PostgresSchema, RulesProgram?) {
        do {
            let connection = try PostgresConnection(
                database.address, ServedDatabase.options(name: "martlet start"))
            defer { connection.close() }
            var policies: RulesProgram?
            let tables = try PostgresSchema.refresh(connection, now: now) { schema in
                policies = try rules(schema).policies
                return policies
            }
            var notes = tables.notes
            if policies == nil {
                notes += tables.rowSecurityNotes.map { "\($0); \(Self.rowSecurityRemedy)" }
            }
            for note in notes {
                log.log(
                    .warning, "tables", [("dataSet", .text(database.name)), ("note", .text(note))])
            }
            let devices = try Connection(path: ":memory:")
            try devices.execute(tables.deviceScript)
            try plan.check(on: devices)
            return (tables, policies)
        } catch let error as AdoptionError {
            throw ServerFailure(
                "The tables of the data set “\(database.name)” (\(database.address)): \(error)")
        } catch let error as PostgresError {
            throw ServerFailure(PostgresRefusal(error, at: database.address).description)
        }
    }
}

extension PostgresBacking {
    /// Each source has a connection of its own, and asks only the database. Blocks of the log come
    /// from Redis if there is one.
    private struct Readers: DataSetReaders {
        let database: ServedDatabase
        let tables: PostgresSchema
        /// The text of the policies; nil if there are none.
        let policies: String?
        /// The names that readers of rows check; nil if there are no policies.
        let names: TableNames?
        let unsendable: UnsendableRows
        let redis: RedisHub?
        let now: @Sendable () -> Int64
        var isRemote: Bool { true }

        func storedLog() -> any LogSource {
            PostgresLog(
                database.address, ServedDatabase.options(name: "martlet reader"),
                schema: tables.schema, checking: names, unsendable: unsendable, now: now)
        }

        func log() -> any LogSource {
            guard let redis else { return storedLog() }
            return CachedLog(storedLog(), shelf: shelf(redis.link()))
        }

        func check() -> any CheckSource {
            PostgresCheck(
                database.address, ServedDatabase.options(name: "martlet check"),
                schema: tables.schema, unsendable: unsendable)
        }

        func watch() -> any StorageWatch { PostgresWatch(database.address, policies: policies) }

        func quiet() -> FileQuiet? { nil }

        func externalReader() throws -> (any ExternalReader)? {
            guard tables.capture == .logical else { return nil }
            return LogicalReader(database.address)
        }

        func snapshotFile(
            in folder: String, of view: ViewMoment?, while isWanted: @escaping () -> Bool
        ) throws -> SnapshotFile {
            try Folder.make(path: folder)
            let path = folder + "/postgresql.staging"
            let staging = PostgresStaging(
                database.address, checking: names, unsendable: unsendable, now: now)
            _ = try staging.write(
                to: path, schema: tables.schema.fingerprint,
                of: view.map { ($0.number, $0.reading) }, while: isWanted)
            return SnapshotFile(path: path, isOneMoment: true) { try? DatabaseFile.remove(path) }
        }

        func outlet(of feed: DataSetFeed, name: String) async throws -> Confined<CommitOutlet>? {
            guard let redis else { return nil }
            return try await Confined.making(label: "martlet.outlet.\(name)") {
                let link = redis.link()
                return CommitOutlet(feed: feed, shelf: shelf(link), link: link)
            }
        }

        private func shelf(_ link: RedisLink) -> BlockShelf {
            BlockShelf(dataSet: database.identity, key: database.cacheKey, link: link)
        }
    }
}

extension PostgresWatch: StorageWatch {
    func account() throws(StorageFault) -> StorageStatus {
        let external = try external()
        return StorageStatus(
            waiting: external.waiting, oldestWriterSeconds: external.oldestWriterSeconds,
            slot: external.slot.map {
                SlotStatus(
                    isActive: $0.isActive, isLost: $0.isLost, retainedBytes: $0.retainedBytes,
                    lagBytes: $0.lagBytes)
            })
    }
}

extension LogicalReader: ExternalReader {
    func step(within limit: Duration) throws(StorageFault) -> Bool? {
        let outcome: LogicalReader.Outcome = try step(within: limit)
        switch outcome {
        case .found: return true
        case .reading: return false
        case .elsewhere, .unused: return nil
        }
    }
}
