public import Foundation
public import MartletProtocol
public import MartletStore

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
    private let watch: ForeignWritesWatch
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
        watch = ForeignWritesWatch(period: options.foreignWritesPeriod, sleep: options.sleep) {
            [weak device] in device?.post { $0.lookForForeignWrites() }
        }
        let watch = watch
        hub.onDemand { watch.setWanted($0) }
    }

    deinit {
        watch.setWanted(false)
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
        var schema = schema
        if schema == nil, let transport, !FileManager.default.fileExists(atPath: path) {
            schema = try await transport.schema()
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
        if let seeding = options.seeding {
            try await Seeder(path: path, schema: source, options: options)
                .run(seeding, from: transport as? any SnapshotSource)
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
    /// - Throws: `SyncError`; what was written stays queued.
    @discardableResult
    public func sync() async throws -> Revision {
        let device = device
        return try await withCheckedThrowingContinuation { waiter in
            device.post { $0.sync(waiter) }
        }
    }

    /// Exchanges if what is here may be old: for an app that enters a screen.
    ///
    /// Does nothing while the live connection is open, or where the last exchange that ended well
    /// was no longer ago than `age`.
    /// - Returns: The revision reached, or the one that is recent enough.
    /// - Throws: `SyncError`; what was written stays queued.
    @discardableResult
    public func refresh(ifOlderThan age: Duration) async throws -> Revision {
        let device = device
        return try await withCheckedThrowingContinuation { waiter in
            device.post { $0.refresh(ifOlderThan: age, waiter) }
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
    }

    /// Stops exchanging. Writing and reading go on.
    public func stop() {
        device.post { $0.stop() }
    }

    /// How long `close` waits for connections that do not end.
    private static let closePatience = Duration.seconds(5)

    /// Stops exchanging, ends observations, and refuses further reading and writing. Returns when
    /// the connections to the server have ended, within five seconds.
    public func close() async {
        watch.setWanted(false)
        let ending = (try? await device.run { $0.close() }) ?? []
        await readers.close()
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
                    parked: try store.parkedCount, lastExchange: try store.lastExchange,
                    connection: connection, traffic: traffic)
            }
        }
    }

    /// Refused change sets, oldest first.
    public func parked() async throws -> [ParkedSet] {
        try await onStore { try $0.parked() }
    }

    /// Remote records this device's tables refuse, with the reason, by type and key. All else goes
    /// on without them.
    public func quarantined() async throws -> [QuarantinedRecord] {
        try await onStore { try $0.quarantined() }
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
