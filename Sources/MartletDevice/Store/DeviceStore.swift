package import MartletModel
internal import MartletProtocol
package import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A device's data: the app's tables, its identity, what it has yet to send, and what was refused.
///
/// Two connections to one file, used by one holder, one at a time: `local` is the app's, with
/// foreign keys enforced; `applying` takes remote change in, with foreign keys unchecked while a
/// transaction is under way, because rows come in any order and a parent may lie outside what the
/// device may see. Two, because switching the setting on one throws away every prepared statement.
package final class DeviceStore {
    package private(set) var local: LocalStore
    package private(set) var applying: LocalStore
    /// The local connection with what contexts on it share.
    package private(set) var session: Session
    /// Evenly spread random bits, for identities.
    let randomBits: () -> UInt64
    /// Who is told of transactions.
    package weak var observer: (any TransactionObserver)?
    /// Where the last request asked to go on: its answer does not fit a file that has begun anew,
    /// or that has been brought elsewhere otherwise.
    var gatheredRevision: Revision = 0
    /// The revision that the last request named.
    var askedRevision: Revision = 0
    /// What `rejoining` was when the last request was gathered.
    var gatheredRejoining: Revision?
    /// The number of withheld records that have not been reported yet.
    private var newlyWithheld = 0
    /// Who else hears of remote change, by entity type.
    package var registry = ModelRegistry()
    /// Bytes of own accepted sets that the file keeps in case the server is restored from a backup.
    package var mostKeptBytes: Int64 = 16 << 20
    /// The data set that the first answer must name; nil for any.
    private var expectedDataSet: String?
    /// Deltas that were passed over and are not in the file's count yet.
    private var uncounted: Int64 = 0
    let path: String
    let vfs: String?
    private let hooks: WriteHooks
    /// Shared by all sessions on the file.
    private let generation: SchemaGeneration

    /// How opening by versions ended; nil where the file was opened by a script.
    public let migration: MigrationOutcome?

    /// Opens or creates a device's file.
    /// - Parameters:
    ///   - script: The app's DDL; nil takes the tables as they are in the file.
    ///   - now: Milliseconds since 1970, for the timestamps of what other programs wrote; nil: as
    ///     of the last exchange.
    ///   - randomBits: The source of identities; seeded in a simulation.
    /// - Throws: `StoreError`, or `SQLiteError` where the file itself fails.
    package convenience init(
        path: String, script: String?, vfs: String? = nil, hooks: WriteHooks = WriteHooks(),
        now: Int64? = nil, randomBits: @escaping () -> UInt64
    ) throws {
        try self.init(
            path: path, script: script, vfs: vfs, hooks: hooks, generation: SchemaGeneration(),
            now: now, randomBits: randomBits)
    }

    /// - Parameter generation: Shared by all sessions on the file.
    package convenience init(
        path: String, script: String?, vfs: String? = nil, hooks: WriteHooks,
        generation: SchemaGeneration, now: Int64? = nil, randomBits: @escaping () -> UInt64
    ) throws {
        let local = try LocalStore(
            path: path, script: script, vfs: vfs,
            sink: CaptureClosing(randomBits: randomBits, now: now))
        try self.init(
            local: local, migration: nil, path: path, vfs: vfs, hooks: hooks,
            generation: generation, randomBits: randomBits)
    }

    /// Opens or creates a device's file, and leads it through the versions it has not seen.
    ///
    /// Where a version fails and the fallback says so, the file is open for reading only; see
    /// `migration`.
    /// - Parameters:
    ///   - fallback: What to do when a version cannot be run.
    ///   - now: Milliseconds since 1970, for the timestamps of change sets and versions.
    ///   - progress: Told before and after each version.
    ///   - randomBits: The source of identities; seeded in a simulation.
    /// - Throws: `StoreError`: `.newer` for the file of a newer app, what a version fails of, what
    ///   the file fails of.
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

    /// - Parameter generation: Shared by all sessions on the file.
    package convenience init(
        path: String, migrator: Migrator, fallback: MigrationFallback, vfs: String? = nil,
        hooks: WriteHooks, generation: SchemaGeneration, now: Int64,
        randomBits: @escaping () -> UInt64
    ) throws {
        do {
            let (local, outcome) = try LocalStore.open(
                path: path, migrator: migrator, fallback: fallback, vfs: vfs,
                sink: CaptureClosing(randomBits: randomBits, now: now))
            try self.init(
                local: local, migration: outcome, path: path, vfs: vfs, hooks: hooks,
                generation: generation, randomBits: randomBits)
        } catch {
            throw StoreError.of(error)
        }
    }

    private init(
        local: LocalStore, migration: MigrationOutcome?, path: String, vfs: String?,
        hooks: WriteHooks, generation: SchemaGeneration, randomBits: @escaping () -> UInt64
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
                try local.setState("clientID", .text(newIdentity()))
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

    /// 128 random bits in hexadecimal.
    func newIdentity() -> String {
        CaptureClosing(randomBits: randomBits, now: nil).newIdentity()
    }

    /// The device's name, for its life.
    package var clientID: String {
        get throws { try applying.textState("clientID") ?? "" }
    }

    /// The newest revision whose entries are all applied.
    package var revision: Revision {
        get throws { try applying.counter("revision") }
    }

    /// The data set the device belongs to; before the first answer the one it is to belong to, nil for
    /// any.
    package var dataSet: String? {
        get throws { try applying.textState("dataSet") ?? expectedDataSet }
    }

    /// Takes in nothing but what is of this data set.
    package func expect(dataSet expected: String) throws {
        guard try dataSet ?? expected == expected else {
            throw SyncError(
                .wrongDataSet,
                "The file belongs to another data set than the app expects. Open another file, or expect"
                    + " the file's own.")
        }
        expectedDataSet = expected
    }

    /// The hash of the log at `revision`, as the server named it; nil where it did not.
    package var lineage: String? {
        get throws { try applying.textState("lineage") }
    }

    /// Milliseconds since 1970 of the last exchange that ended well; nil before the first.
    package var lastExchange: Int64? {
        get throws { try applying.integerState("lastExchange") }
    }

    /// Change sets not yet confirmed.
    package var outboxCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_outbox") ?? 0)
        }
    }

    /// Whether a change set waits that the tables do not show.
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

    /// The number of others' change sets, or their deltas, that arrived again and were passed over.
    /// A crash loses the newest.
    package var passedOverCount: Int64 {
        get throws { try (applying.integerState(Self.passedOver) ?? 0) + uncounted }
    }

    /// Adds to the count of changes passed over. The count stays in memory, because it needs no
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

    /// Refused change sets waiting for a decision.
    package var parkedCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_parked") ?? 0)
        }
    }

    /// Runs `body` as one local save: all it writes becomes one change set in the outbox, in the
    /// same transaction.
    ///
    /// What other connections wrote since is closed first, as change sets of its own.
    /// - Parameter now: Milliseconds since 1970, for the set's timestamp.
    /// - Throws: What `body` throws; `StoreError` `.tooLarge` when the set could never be sent.
    ///   The transaction is then rolled back.
    package func write<Result>(
        now: Int64, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try checkWritable()
        try session.checkPlace()
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

    /// Gives a withheld record up, within a save: it is again what it was before.
    package func drop(_ record: WithheldRecord) throws {
        try Withheld(store: local, now: 0).drop(record)
    }

    /// How many records were withheld since the last call.
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

    /// Makes a synchronised table that was used before it was there.
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
        // Another task may have met it as well.
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

    /// Turns what external connections wrote into change sets. Runs in the caller's transaction.
    /// - Throws: `StoreError` `.newer` where another process has changed the tables meanwhile.
    func closeExternalCapture(_ store: LocalStore, now: Int64) throws {
        try store.checkOrder()
        newlyWithheld += try CaptureClosing(randomBits: randomBits, now: now)
            .closeExternal(store, triesAgain: false)
    }
}
