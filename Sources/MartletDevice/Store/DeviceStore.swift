package import MartletModel
internal import MartletProtocol
package import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A device's data: the app's tables, its identity, its outbox, and its refused sets.
///
/// It has two connections to one file, used by one holder, one at a time. The app uses `local`,
/// which enforces foreign keys. Remote change goes through `applying`, which does not check them,
/// because rows arrive in any order and a parent may be outside of what the device may see. There
/// are two connections because switching the setting on one discards every prepared statement.
package final class DeviceStore {
    package private(set) var local: LocalStore
    package private(set) var applying: LocalStore
    /// The local connection, with the state that contexts on it share.
    package private(set) var session: Session
    /// Evenly spread random bits, for identities.
    let randomBits: () -> UInt64
    /// The observer of transactions.
    package weak var observer: (any TransactionObserver)?
    /// The point from which the last request asked to continue.
    var asked = Standing.Asked()
    /// The number of withheld records that have not been reported yet.
    private var newlyWithheld = 0
    /// The progress of the removal of hidden records' bytes.
    var sweep = Sweep()
    /// The app's handlers of remote change, by entity type.
    package var registry = ModelRegistry()
    /// Bytes of own accepted sets that the file keeps in case the server is restored from a backup.
    package var mostKeptBytes: Int64 = 16 << 20
    /// Whether a save that the rules do not allow is refused at once; otherwise the server refuses it.
    package var judgesSaves = true
    /// The data set that the first answer must name; nil for any.
    private(set) var expectedDataSet: String?
    /// The number of skipped deltas that the file's count does not include yet.
    private var uncounted: Int64 = 0
    let path: String
    let vfs: String?
    private let hooks: WriteHooks
    /// The generation of the schema, which all sessions on the file share.
    private let generation: SchemaGeneration

    /// How opening by versions ended; nil if the file was opened by a script.
    public let migration: MigrationOutcome?

    /// Opens or creates a device's file.
    /// - Parameters:
    ///   - script: The app's DDL; nil takes the tables as they are in the file.
    ///   - now: Milliseconds since 1970, for the timestamps of external writes; nil for the time of
    ///     the last exchange.
    ///   - randomBits: The source of identities; seeded in a simulation.
    /// - Throws: `StoreError`, or `SQLiteError` if the file itself fails.
    package convenience init(
        path: String, script: String?, vfs: String? = nil, hooks: WriteHooks = WriteHooks(),
        now: Int64? = nil, randomBits: @escaping () -> UInt64
    ) throws {
        try self.init(
            path: path, script: script, vfs: vfs, hooks: hooks, generation: SchemaGeneration(),
            now: now, randomBits: randomBits)
    }

    /// Opens or creates a device's file.
    /// - Parameters:
    ///   - generation: The generation of the schema, which all sessions on the file share.
    ///   - client: The name of the device, if the file has none; nil for a new one.
    package convenience init(
        path: String, script: String?, vfs: String? = nil, hooks: WriteHooks,
        generation: SchemaGeneration, now: Int64? = nil, client: String? = nil,
        randomBits: @escaping () -> UInt64
    ) throws {
        let local = try LocalStore(
            path: path, script: script, vfs: vfs,
            sink: CaptureClosing(randomBits: randomBits, now: now))
        try self.init(
            local: local, migration: nil, path: path, vfs: vfs, hooks: hooks,
            generation: generation, client: client, randomBits: randomBits)
    }

    /// Opens or creates a device's file, and runs the versions that it has not seen.
    ///
    /// If a version fails and the fallback says so, the file is open for reading only; see
    /// `migration`.
    /// - Parameters:
    ///   - fallback: What to do if a version cannot be run.
    ///   - now: Milliseconds since 1970, for the timestamps of change sets and versions.
    ///   - progress: Called before and after each version.
    ///   - randomBits: The source of identities; seeded in a simulation.
    /// - Throws: `StoreError`: `.newer` if a newer version of the app made the file; another kind
    ///   if a version or the file itself fails.
    public convenience init(
        path: String, migrations: Migrations, fallback: MigrationFallback = .fail,
        vfs: String? = nil, hooks: WriteHooks = WriteHooks(), now: Int64,
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in },
        randomBits: @escaping () -> UInt64
    ) throws {
        try self.init(
            path: path, migrator: Migrator(migrations, now: now, progress: progress),
            fallback: fallback, vfs: vfs, hooks: hooks, generation: SchemaGeneration(), now: now,
            randomBits: randomBits)
    }

    /// Opens or creates a device's file by versions.
    /// - Parameters:
    ///   - generation: The generation of the schema, which all sessions on the file share.
    ///   - client: The name of the device, if the file has none; nil for a new one.
    package convenience init(
        path: String, migrator: Migrator, fallback: MigrationFallback, vfs: String? = nil,
        hooks: WriteHooks, generation: SchemaGeneration, now: Int64, client: String? = nil,
        randomBits: @escaping () -> UInt64
    ) throws {
        do {
            let (local, outcome) = try LocalStore.open(
                path: path, migrator: migrator, fallback: fallback, vfs: vfs,
                sink: CaptureClosing(randomBits: randomBits, now: now))
            try self.init(
                local: local, migration: outcome, path: path, vfs: vfs, hooks: hooks,
                generation: generation, client: client, randomBits: randomBits)
        } catch {
            throw StoreError.of(error)
        }
    }

    private init(
        local: LocalStore, migration: MigrationOutcome?, path: String, vfs: String?,
        hooks: WriteHooks, generation: SchemaGeneration, client: String?,
        randomBits: @escaping () -> UInt64
    ) throws {
        self.path = path
        self.vfs = vfs
        self.hooks = hooks
        self.generation = generation
        self.migration = migration
        self.randomBits = randomBits
        self.local = local
        session = Session(store: local, hooks: hooks, generation: generation)
        guard migration?.failure == nil else {
            applying = try LocalStore(readingFrom: path, vfs: vfs)
            return
        }
        applying = try LocalStore(applyingBeside: local, path: path, vfs: vfs)
        if try local.textState("clientID") == nil {
            try local.connection.transaction {
                try local.setState("clientID", .text(client ?? newIdentity()))
            }
        }
    }

    /// Refuses to write to a file that a failed migration left open for reading only.
    /// - Throws: `StoreError` `.readOnly`.
    package func checkWritable() throws {
        guard let failure = migration?.failure else { return }
        throw StoreError(
            .readOnly,
            "The file can only be read, because it could not be brought to the app's schema."
                + " \(failure.message)")
    }

    /// Returns 128 random bits in hexadecimal.
    func newIdentity() -> String { Self.newIdentity(randomBits) }

    /// Returns a name for a device that has no file yet.
    package static func newIdentity(_ randomBits: @escaping () -> UInt64) -> String {
        CaptureClosing(randomBits: randomBits, now: nil).newIdentity()
    }

    /// The device's name, until `renewIdentity` replaces it.
    package var clientID: String {
        get throws { try applying.textState("clientID") ?? "" }
    }

    /// The newest revision whose entries are all applied.
    package var revision: Revision {
        get throws { try applying.counter("revision") }
    }

    /// The data set that the device belongs to. Before the first answer it is the expected one, or
    /// nil for any.
    package var dataSet: String? {
        get throws { try applying.textState("dataSet") ?? expectedDataSet }
    }

    /// Makes the device accept only this data set.
    /// - Throws: `SyncError` `.wrongDataSet` if the file belongs to another one.
    package func expect(dataSet expected: String) throws {
        guard try dataSet ?? expected == expected else {
            throw SyncError(
                .wrongDataSet,
                "The file belongs to another data set than the app expects. Open another file, or expect"
                    + " the file's own.")
        }
        expectedDataSet = expected
    }

    /// Milliseconds since 1970 of the last exchange that ended well; nil before the first.
    package var lastExchange: Int64? {
        get throws { try applying.integerState("lastExchange") }
    }

    /// The number of change sets that are not confirmed yet.
    package var outboxCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_outbox") ?? 0)
        }
    }

    /// Whether the queue has a change set that the tables do not show.
    package var hasUnappliedSet: Bool {
        get throws {
            try applying.connection.integer(
                "SELECT 1 FROM martlet_outbox WHERE NOT applied LIMIT 1") != nil
        }
    }

    /// The number of records that other programs wrote in tables which the file no longer has.
    package var awaitingTableCount: Int {
        get throws { try applying.awayCount }
    }

    /// The number of other devices' change sets, or their deltas, that arrived again and were
    /// skipped. A crash loses the newest.
    package var passedOverCount: Int64 {
        get throws { try (applying.integerState(Self.passedOver) ?? 0) + uncounted }
    }

    /// Adds to the count of skipped changes. The count stays in memory, because it is not worth a
    /// transaction of its own.
    func countPassedOver(_ count: Int) { uncounted += Int64(count) }

    /// Stores the count in a transaction that is open anyway.
    func storePassedOver(_ more: Int) throws {
        countPassedOver(more)
        guard uncounted > 0 else { return }
        try applying.setState(Self.passedOver, .integer(passedOverCount))
        uncounted = 0
    }

    private static let passedOver = "passedOver"

    /// The number of refused change sets that wait for a decision.
    package var parkedCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_parked") ?? 0)
        }
    }

    /// Runs `body` as one local save: all of its writes become one change set in the outbox, in the
    /// same transaction.
    ///
    /// External writes since the last look become change sets of their own first.
    /// - Parameter now: Milliseconds since 1970, for the set's timestamp.
    /// - Throws: Errors of `body`; `StoreError` `.tooLarge` if the set could never be sent, and
    ///   `.permission` if the rules do not allow it. The transaction is then rolled back.
    package func write<Result>(
        now: Int64, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try checkWritable()
        try session.checkNotMoved()
        local.now = { now }
        do {
            try session.begin()
            let result = try writeTransaction(now: now, body)
            session.committed()
            return result
        } catch {
            session.rolledBack()
            throw error
        }
    }

    private func writeTransaction<Result>(
        now: Int64, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try local.connection.transaction {
            try closeExternalCapture(local, now: now)
            let nextTemporaryID = try local.counter("nextTemporaryID")
            let context = WriteContext(
                session: session, nextTemporaryID: nextTemporaryID, randomBits: randomBits)
            defer { context.end() }
            let result = try body(context)
            try context.passNotedIDs()
            if context.nextTemporaryID < nextTemporaryID {
                try local.setState("nextTemporaryID", .integer(context.nextTemporaryID))
            }
            var withheld = Withheld(store: local, now: now)
            let changes = try withheld.changes(ofSave: local.takeNotes())
            if !changes.isEmpty {
                if judgesSaves { try SaveRights(local, now: now)?.check(changes) }
                try Outbox(store: local).enqueue(
                    changes, identifier: newIdentity(), now: now)
            }
            observer?.saveWillCommit(changes, in: context)
            return result
        }
    }

    /// Returns the records that other programs wrote and no set can carry, by type and key.
    package func withheld() throws -> [WithheldRecord] {
        try Withheld(store: applying, now: 0).list()
    }

    /// Gives a withheld record up, within a save: its earlier values return.
    package func drop(_ record: WithheldRecord) throws {
        try Withheld(store: local, now: 0).drop(record)
    }

    /// Returns the number of records that were withheld since the last call.
    package func takeNewlyWithheld() -> Int {
        defer { newlyWithheld = 0 }
        return newlyWithheld
    }

    /// Runs `body` in one transaction of the applying connection.
    func inApplyingTransaction<Result>(_ body: () throws -> Result) throws -> Result {
        try checkWritable()
        observer?.applyingHasBegun()
        do {
            let result = try applying.connection.transaction(body)
            observer?.applyingHasEnded(isCommitted: true)
            return result
        } catch {
            observer?.applyingHasEnded(isCommitted: false)
            throw error
        }
    }

    /// Creates a table that the app used before it existed.
    /// - Throws: `StoreError` `.schema` for a declaration that cannot be synchronised.
    package func make(_ missing: MissingTable) throws {
        try checkWritable()
        if missing.isDerived {
            do {
                try local.connection.transaction {
                    try local.connection.execute(missing.declaration)
                }
            } catch {
                throw StoreError.of(error, table: missing.name)
            }
            return generation.advance()
        }
        // Another task may have created it meanwhile.
        guard local.schema[missing.name] == nil else { return }
        let script = try SchemaMigration.ddl(of: local.connection) + missing.declaration
        local = try LocalStore(
            path: path, script: script, vfs: vfs,
            sink: CaptureClosing(randomBits: randomBits, now: nil))
        applying = try LocalStore(applyingBeside: local, path: path, vfs: vfs)
        session = Session(store: local, hooks: hooks, generation: generation)
        guard local.schema[missing.name] != nil else { throw missing.isNotDeclared }
    }

    /// Whether there is anything to send, including writes that only the triggers have noted.
    package var hasUnsent: Bool {
        get throws { try applying.hasCapture || outboxCount > 0 }
    }

    /// Closes the file's connections and their statements. The caller refuses further work first,
    /// because the tables are gone.
    package func close() {
        guard let nothing = try? LocalStore(nothing: ()) else { return }
        observer = nil
        local = nothing
        applying = nothing
        session = Session(store: nothing, hooks: hooks, generation: generation)
    }

    /// Turns external writes into change sets. Runs in the caller's transaction.
    /// - Throws: `StoreError` `.newer` if another process has changed the tables meanwhile.
    func closeExternalCapture(_ store: LocalStore, now: Int64) throws {
        try store.checkOrder()
        newlyWithheld += try CaptureClosing(randomBits: randomBits, now: now)
            .closeExternal(store, triesAgain: false)
    }
}
