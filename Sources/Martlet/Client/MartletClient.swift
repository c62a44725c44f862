public import Foundation
public import MartletDevice
public import MartletModel
internal import MartletProtocol
public import MartletStore
internal import SystemKit

/// A device: the app's data in a SQLite file, and what keeps it in step with the server.
///
/// Reading and writing never wait for the network. Every `write` is one change set, queued in the
/// same transaction; `sync()` exchanges once, `start()` keeps exchanging. Values go in and out;
/// the file's own connections stay inside.
public final class MartletClient: DatabaseAccess {
    let device: Confined<DeviceDriver>
    private let readers: ReaderPool
    private let path: String
    private let trace: StatementTrace?
    private let generation: SchemaGeneration
    private let listeners: EventListeners
    private let watch: ExternalWritesWatch
    /// Looks for writes to send while the client is started and the app observes nothing.
    private let sendWatch: ExternalWritesWatch
    private let sleep: @Sendable (Duration) async throws -> Void
    private let connectionState: ObservedState<ClientConnection>
    private let revisionState: ObservedState<Revision>
    public let _changes: ChangeHub
    /// How opening by versions ended; nil where the file was opened by a schema script. Where it
    /// says that the file can only be read, `write` and `sync` are refused.
    public let migration: MigrationOutcome?

    private init(
        path: String, device: Confined<DeviceDriver>, migration: MigrationOutcome?,
        readers: ReaderPool,
        observed: (ObservedState<ClientConnection>, ObservedState<Revision>),
        listeners: EventListeners, hub: ChangeHub, generation: SchemaGeneration,
        options: ClientOptions
    ) {
        (connectionState, revisionState) = observed
        sleep = options.sleep
        self.migration = migration
        self.path = path
        self.device = device
        self.readers = readers
        self.listeners = listeners
        trace = options.trace
        self.generation = generation
        _changes = hub
        watch = ExternalWritesWatch(period: options.externalWritesPeriod, sleep: options.sleep) {
            [weak device] in device?.post { $0.lookForExternalWrites() }
        }
        sendWatch = ExternalWritesWatch(
            period: max(options.externalWritesPeriod, Self.sendPeriod), sleep: options.sleep
        ) { [weak device] in device?.post { $0.lookForExternalWrites() } }
        let watch = watch
        hub.onDemand { watch.setWanted($0) }
    }

    /// The longest time until another process's write is sent.
    private static let sendPeriod = Duration.seconds(2)

    deinit {
        watch.setWanted(false)
        sendWatch.setWanted(false)
        _changes.finish()
    }

    /// Opens or creates a device's file.
    ///
    /// - Parameters:
    ///   - path: The SQLite file.
    ///   - schema: The app's tables as SQL DDL; nil to take them as they are in the file, and for
    ///     a new file as the server has them.
    ///   - server: The server's address; nil to work without one. https, or http to this machine.
    ///   - token: The bearer token; nil to ask `ClientOptions.tokenProvider`.
    ///   - options: How it keeps in step.
    /// - Throws: `StoreError` for a schema or file that cannot be used, `SyncError` for an address
    ///   that cannot.
    public static func open(
        path: String, schema: String?, server: URL? = nil, token: String? = nil,
        options: ClientOptions = ClientOptions()
    ) async throws -> MartletClient {
        let transport = try server.map {
            try URLSessionTransport(server: $0, token: token, provider: options.tokenProvider)
        }
        var (schema, options) = (schema, options)
        if schema == nil, let transport, try await !Self.hasTables(path) {
            let tables = try await transport.serverTables()
            if let named = tables.dataSet {
                guard options.dataSet ?? named == named else { throw DataSetProof.isOther }
                try await DataSetProof(transport: transport, randomBits: options.randomBits)
                    .demand(named, at: 0, lineage: nil)
                options.dataSet = named
            }
            schema = tables.ddl
        }
        return try await open(
            path: path, source: .script(schema), transport: transport, options: options)
    }

    /// Opens or creates a device's file, and leads it through the versions it has not seen.
    ///
    /// - Parameters:
    ///   - path: The SQLite file.
    ///   - migrations: All versions of the app's tables.
    ///   - fallback: What to do when a version cannot be run; see `migration`. With `fetchAnew` the
    ///     tables are made anew, empty, and the exchanges that follow fill them; what was not sent
    ///     is kept.
    ///   - server: The server's address; nil to work without one. https, or http to this machine.
    ///   - token: The bearer token; nil to ask `ClientOptions.tokenProvider`.
    ///   - options: How it keeps in step.
    ///   - progress: Told before and after each version, on the queue that opens the file.
    /// - Throws: `StoreError`: `.newer` for the file of a newer app, what a version fails of, what
    ///   the file fails of. `SyncError` for an address that cannot be used.
    public static func open(
        path: String, migrations: Migrations, fallback: MigrationFallback = .fail,
        server: URL? = nil, token: String? = nil, options: ClientOptions = ClientOptions(),
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) async throws -> MartletClient {
        let transport = try server.map {
            try URLSessionTransport(server: $0, token: token, provider: options.tokenProvider)
        }
        return try await open(
            path: path, source: .versions(migrations, fallback, progress: progress),
            transport: transport, options: options)
    }

    /// Opens or creates a device's file by versions, to exchange over the given transport.
    public static func open(
        path: String, migrations: Migrations, fallback: MigrationFallback = .fail,
        transport: (any Transport)?, options: ClientOptions = ClientOptions(),
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) async throws -> MartletClient {
        try await open(
            path: path, source: .versions(migrations, fallback, progress: progress),
            transport: transport, options: options)
    }

    /// Opens or creates a device's file that exchanges over the given transport.
    public static func open(
        path: String, schema: String?, transport: (any Transport)?,
        options: ClientOptions = ClientOptions()
    ) async throws -> MartletClient {
        try await open(
            path: path, source: .script(schema), transport: transport, options: options)
    }

    private static func open(
        path: String, source: SchemaSource, transport: (any Transport)?, options: ClientOptions
    ) async throws -> MartletClient {
        guard !path.isEmpty, path != ":memory:", !path.hasPrefix("file:") else {
            throw StoreError(
                .file,
                "“\(path)” is no path of a file. A client has several connections to its data and keeps"
                    + " what is not sent, so give it a file, in a temporary folder if need be.")
        }
        if let seeding = options.seeding {
            try await Seeder(path: path, schema: source, options: options)
                .run(seeding, from: transport as? any SnapshotSource, proof: transport)
        }
        let listeners = EventListeners()
        let hub = ChangeHub()
        let generation = SchemaGeneration()
        // Opening blocks (it may migrate), so it happens on a queue as well.
        let opener = Confined(label: "martlet.open", ())
        let device = try await opener.run { _ in
            do {
                let driver = try DeviceDriver(
                    path: path, source: source, transport: transport, options: options, hub: hub,
                    generation: generation, publish: { listeners.publish($0) })
                return Confined(label: "martlet.device", driver)
            } catch {
                throw StoreError.of(error)
            }
        }
        device.post { driver in
            driver.connect { [weak device] event in
                device?.post { $0.receive(event) }
            } deliver: { [weak device] event in
                try? await device?.run { $0.receive(event) }
            }
        }
        let readers = try await opener.run { _ in
            try ReaderPool(count: options.readers) {
                try Self.reader(path: path, trace: options.trace, generation: generation)
            }
        }
        let (migration, connection, revision) = try await device.run {
            ($0.migration, $0.connection, $0.revision)
        }
        return MartletClient(
            path: path, device: device, migration: migration, readers: readers,
            observed: (connection, revision), listeners: listeners, hub: hub,
            generation: generation, options: options)
    }

    /// Returns whether the file has tables of the app's; an interrupted opening may have left none.
    /// A file that cannot be read counts as having some, because opening it reports the reason.
    private static func hasTables(_ path: String) async throws -> Bool {
        guard FileManager.default.fileExists(atPath: path) else { return false }
        return try await Confined(label: "martlet.open", ()).run { _ in
            (try? LocalStore.hasTables(path: path)) ?? true
        }
    }

    private static func reader(
        path: String, trace: StatementTrace?, generation: SchemaGeneration
    ) throws -> sending Session {
        let store: LocalStore
        do {
            store = try LocalStore(readingFrom: path)
        } catch {
            throw StoreError.of(error)
        }
        let session = Session(store: store, generation: generation)
        trace?.attach(to: session)
        return session
    }

    /// Runs `body` as one local save: one transaction, one change set.
    /// - Throws: What `body` throws, and then nothing was written; `StoreError`.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await makingTables {
            try await self.device.runUnlessCancelled { driver, sign in
                try driver.write(sign, body)
            }
        }
    }

    /// Runs `body` on one moment's data.
    public func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await makingTables { try await self.readers.read(body) }
    }

    /// Reads, and tells what part of the database was read.
    public func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        try await makingTables { try await self.readers.observedRead(willRead: willRead, body) }
    }

    /// Runs work again after making a table it met for the first time.
    private func makingTables<Result: Sendable>(
        _ work: () async throws -> Result
    ) async throws -> Result {
        var made = 0
        while true {
            do {
                return try await work()
            } catch let missing as MissingTable where made < MissingTable.limit {
                made += 1
                try await device.run { try $0.make(missing) }
                let (path, trace, generation) = (path, trace, generation)
                try await readers.reopen {
                    try Self.reader(path: path, trace: trace, generation: generation)
                }
            }
        }
    }

    /// Exchanges until both sides have what the other had when this was called.
    /// - Returns: The revision reached.
    /// - Throws: `SyncError`; `.cancelled` if the task is cancelled or the client is stopped.
    ///   Queued sets stay queued.
    @discardableResult
    public func sync() async throws -> Revision {
        try await waiting { $0.sync($1, $2) }
    }

    /// Exchanges if what is here may be old: for an app that enters a screen.
    ///
    /// Does nothing while the live connection is open, or where the last exchange that ended well
    /// was no longer ago than `age`.
    /// - Returns: The revision reached, or the one that is recent enough.
    /// - Throws: As `sync`.
    @discardableResult
    public func refresh(ifOlderThan age: Duration) async throws -> Revision {
        try await waiting { $0.refresh(ifOlderThan: age, $1, $2) }
    }

    /// Waits for an exchange to end, or for the task to be cancelled.
    private func waiting(
        _ ask:
            @escaping @Sendable (
                DeviceDriver, CheckedContinuation<Revision, any Error>, CancellationFlag
            ) -> Void
    ) async throws -> Revision {
        let device = device
        let sign = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                device.post { ask($0, waiter, sign) }
            }
        } onCancel: {
            sign.set()
            device.post { $0.lookForCancellation() }
        }
    }

    /// Changes when others' changes are asked for; see `PullPolicy`. Counts from now on where the
    /// client was started, else from its start.
    public func setPullPolicy(_ policy: PullPolicy) {
        device.post { $0.setPolicy(policy) }
    }

    /// Keeps in step: exchanges now, after every save, as the pull policy says, and again after
    /// failures.
    public func start() {
        device.post { $0.start() }
        sendWatch.setWanted(true)
    }

    /// Stops exchanging. Writing and reading continue. Tasks that wait for an exchange get a
    /// `SyncError` of kind `cancelled`.
    ///
    /// When it returns, the client writes nothing more to the file automatically and holds no lock
    /// on it. If an answer was being applied, the client stops between two transactions and asks
    /// for the rest again after `start` or `sync`. The connections to the server have ended, or
    /// five seconds have passed.
    public func stop() async {
        sendWatch.setWanted(false)
        await ended((try? await device.run { $0.stop() }) ?? [])
    }

    /// The time that `stop` and `close` wait for connections that do not end.
    private static let closePatience = Duration.seconds(5)

    /// Stops exchanging, ends observations, closes the file, and refuses further reading and
    /// writing. Returns when the connections to the server have ended, within five seconds. The
    /// file may then be copied or replaced, even if the client is still referenced.
    public func close() async {
        watch.setWanted(false)
        sendWatch.setWanted(false)
        let ending = (try? await device.run { $0.close() }) ?? []
        await readers.close()
        try? await device.run { $0.closeFile() }
        _changes.finish()
        listeners.finish()
        await ended(ending)
    }

    private func ended(_ tasks: [Task<Void, Never>]) async {
        guard !tasks.isEmpty else { return }
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        Task {
            for task in tasks { await task.value }
            end.finish()
        }
        let limit = Task { [sleep] in
            try? await sleep(Self.closePatience)
            end.finish()
        }
        for await _ in ends {}
        limit.cancel()
    }

    /// Goes on with another token: after signing in again, or before the old one ends. A client that
    /// was started and had stopped because its token was refused exchanges at once, and opens the
    /// live connection again.
    ///
    /// For clients that were opened with a server's address, or a `TokenTransport`. Where tokens
    /// end by themselves, `ClientOptions.tokenProvider` saves the call.
    public func setToken(_ token: String?) async {
        let transport = try? await device.run { $0.transport as? any TokenTransport }
        await transport?.setToken(token)
        device.post { $0.tokenChanged() }
    }

    /// What happens from now on. A listener that does not keep up loses the oldest events.
    public var events: AsyncStream<ClientEvent> {
        listeners.add()
    }

    /// Whether others' changes come by themselves, and how: the state now, then each change. Who
    /// is slow to look sees the newest.
    public var connection: AsyncStream<ClientConnection> {
        connectionState.follow()
    }

    /// The newest revision applied: the one now, then each that was reached. Who is slow to look
    /// sees the newest.
    public var revisions: AsyncStream<Revision> {
        revisionState.follow()
    }

    /// How this device stands.
    public func status() async throws -> ClientStatus {
        try await device.run { driver in
            let (connection, traffic) = (driver.connection.value, driver.traffic)
            return try driver.withStore { store in
                ClientStatus(
                    clientID: try store.clientID, dataSet: try store.dataSet,
                    revision: try store.revision, outbox: try store.outboxCount,
                    awaitingTable: try store.awaitingTableCount,
                    parked: try store.parkedCount, keptAside: try store.keptAsideCount,
                    quarantined: try store.quarantinedCount,
                    withheld: try store.withheldCount,
                    passedOver: try store.passedOverCount, lastExchange: try store.lastExchange,
                    connection: connection, traffic: traffic)
            }
        }
    }

    /// Refused change sets, oldest first.
    public func parked() async throws -> [ParkedSet] {
        try await onStore { try $0.parked() }
    }

    /// Returns others' values for which this device's tables have no place, by type. The client
    /// puts them into the tables once these have a place.
    public func keptAside() async throws -> [KeptAside] {
        try await onStore { try $0.keptAside() }
    }

    /// Remote records this device's tables refuse, with the reason, by type and key. All else goes
    /// on without them.
    public func quarantined() async throws -> [QuarantinedRecord] {
        try await onStore { try $0.quarantined() }
    }

    /// Records that other programs gave what cannot be sent, with the reason, by type and key. All
    /// else goes on without them; each goes out once it is given something else, or is given up (`drop`).
    public func withheld() async throws -> [WithheldRecord] {
        try await onStore { try $0.withheld() }
    }

    /// Gives a withheld record up: the table shows again what was there before.
    /// - Throws: `StoreError` `.unknown` if the record is not withheld any more; `.constraint` if another record refers
    ///   to it, or has taken a unique value that it had before.
    public func drop(_ record: WithheldRecord) async throws {
        try await device.runUnlessCancelled { driver, sign in try driver.drop(record, sign) }
    }

    /// Gives a refused change set up.
    public func drop(_ identifier: String) async throws {
        try await device.run { driver in
            try driver.decide { store, now in try store.drop(identifier, now: now) }
        }
    }

    /// Makes a refused change set's edits again, on top of what the server has now.
    /// - Returns: The new set's identifier.
    @discardableResult
    public func retry(_ identifier: String) async throws -> String {
        try await device.run { driver in
            try driver.decide { store, now in try store.retry(identifier, now: now) }
        }
    }

    /// The fates of the newest change sets, newest first.
    public func receipts(limit: Int = 100) async throws -> [Receipt] {
        try await onStore { try $0.receipts(limit: limit) }
    }

    private func onStore<Result: Sendable>(
        _ body: @escaping @Sendable (DeviceStore) throws -> Result
    ) async throws -> Result {
        try await device.run { try $0.withStore(body) }
    }
}
