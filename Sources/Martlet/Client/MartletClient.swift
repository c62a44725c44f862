public import Foundation
public import MartletDevice
public import MartletModel
internal import MartletProtocol
public import MartletStore
internal import SystemKit

/// A device: the app's data in a SQLite file, and its synchronisation with the server.
///
/// Reading and writing never wait for the network. Every `write` is one change set, which is queued
/// in the same transaction. `sync()` exchanges once, and `start()` keeps exchanging.
///
/// ```swift
/// let client = try await MartletClient.open(
///     path: "team.sqlite", schema: "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT)",
///     server: URL(string: "https://sync.example.org"), token: token)
/// client.start()
/// try await client.write { try $0.insert("teams", ["name": "Falcons"]) }
/// let teams = try await client.read { try $0.rows("SELECT id, name FROM teams") }
/// ```
public final class MartletClient: DatabaseAccess {
    let device: Confined<DeviceDriver>
    private let readers: ReaderPool
    private let path: String
    private let options: ClientOptions
    private let generation: SchemaGeneration
    private let listeners: EventListeners
    private let watch: ExternalWritesWatch
    /// Checks for writes to send while the client is started and the app observes nothing.
    private let sendWatch: ExternalWritesWatch
    private let sleep: @Sendable (Duration) async throws -> Void
    private let connectionState: ObservedState<ClientConnection>
    private let revisionState: ObservedState<Revision>
    public let _changes: ChangeHub
    /// The outcome of the migration; nil if the file was opened by a schema script. If it is
    /// `readOnly` or `restored`, the client refuses `write` and `sync`.
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
        self.options = options
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

    /// The interval of the checks for writes to send, unless `externalWritesPeriod` is longer.
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
    ///   - schema: The app's tables as SQL DDL; nil takes the tables that the file has, or the
    ///     server's for a new file.
    ///   - server: The server's address; nil works without a server. It is https, or http to this
    ///     machine.
    ///   - token: The bearer token; nil asks `ClientOptions.tokenProvider`.
    ///   - options: The options of the client.
    /// - Throws: `StoreError` if the schema or the file cannot be used; `SyncError` if the address
    ///   cannot be used, or the tables or the snapshot to begin with cannot be fetched.
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

    /// Opens or creates a device's file, and runs the versions that it has not seen.
    ///
    /// - Parameters:
    ///   - path: The SQLite file.
    ///   - migrations: All versions of the app's tables.
    ///   - fallback: The action if a version cannot be run; see `migration`. With `refetch`, the
    ///     tables are recreated empty, and the following exchanges fill them; unsent changes are
    ///     kept.
    ///   - server: The server's address; nil works without a server. It is https, or http to this
    ///     machine.
    ///   - token: The bearer token; nil asks `ClientOptions.tokenProvider`.
    ///   - options: The options of the client.
    ///   - progress: Called before and after each version, on the queue that opens the file.
    /// - Throws: `StoreError`: `.newer` if a newer version of the app wrote the file, and the
    ///   failure of a version or of the file. `SyncError` if the address cannot be used, or the
    ///   snapshot to begin with cannot be fetched.
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

    /// Opens or creates a device's file by versions. The client exchanges over the given transport.
    /// - Throws: `StoreError` and `SyncError`, as the other `open` with migrations.
    package static func open(
        path: String, migrations: Migrations, fallback: MigrationFallback = .fail,
        transport: (any Transport)?, options: ClientOptions = ClientOptions(),
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) async throws -> MartletClient {
        try await open(
            path: path, source: .versions(migrations, fallback, progress: progress),
            transport: transport, options: options)
    }

    /// Opens or creates a device's file by a schema script. The client exchanges over the given
    /// transport.
    /// - Throws: `StoreError` if the schema or the file cannot be used; `SyncError` if the snapshot
    ///   to begin with cannot be fetched.
    package static func open(
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
        let client: String? =
            if let seeding = options.seeding {
                try await Seeder(path: path, schema: source, options: options)
                    .run(seeding, from: transport as? any SnapshotSource, proof: transport)
            } else { nil }
        let listeners = EventListeners()
        let hub = ChangeHub()
        let generation = SchemaGeneration()
        // Opening blocks (it may migrate), so it runs on a queue too.
        let opener = Confined(label: "martlet.open", ())
        let device = try await opener.run { _ in
            do {
                let driver = try DeviceDriver(
                    path: path, source: source, client: client, transport: transport,
                    options: options, hub: hub, generation: generation,
                    publish: { listeners.publish($0) })
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
                try Self.reader(path: path, options: options, generation: generation)
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

    /// Returns whether the file has tables of the app; an interrupted opening may have left none. A
    /// file that cannot be read counts as having some, because opening it reports the reason.
    private static func hasTables(_ path: String) async throws -> Bool {
        guard FileManager.default.fileExists(atPath: path) else { return false }
        return try await Confined(label: "martlet.open", ()).run { _ in
            (try? LocalStore.hasTables(path: path)) ?? true
        }
    }

    private static func reader(
        path: String, options: ClientOptions, generation: SchemaGeneration
    ) throws -> sending Session {
        let store: LocalStore
        do {
            store = try LocalStore(readingFrom: path)
        } catch {
            throw StoreError.of(error)
        }
        store.now = options.now
        let session = Session(store: store, generation: generation)
        options.trace?.attach(to: session)
        return session
    }

    /// Runs `body` as one local save: one transaction, one change set.
    /// - Throws: The error of `body`, and `StoreError`; nothing was written then.
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

    /// Runs `body` on the data of one moment.
    /// - Throws: The error of `body`; `StoreError` if the client was closed, the task is cancelled,
    ///   or the file fails.
    public func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await makingTables { try await self.readers.read(body) }
    }

    /// Reads, and also returns which part of the database was read.
    /// - Throws: The errors of `read`.
    public func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        try await makingTables { try await self.readers.observedRead(willRead: willRead, body) }
    }

    /// Runs `work`. If it needs a table that does not exist yet, creates the table and runs it
    /// again.
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
                let (path, options, generation) = (path, options, generation)
                try await readers.reopen {
                    try Self.reader(path: path, options: options, generation: generation)
                }
            }
        }
    }

    /// Exchanges until the device and the server each have the changes that the other had at the
    /// time of the call.
    /// - Returns: The revision reached.
    /// - Throws: `SyncError`; `.cancelled` if the task is cancelled or the client is stopped.
    ///   Queued sets stay queued.
    @discardableResult
    public func sync() async throws -> Revision {
        try await waiting { $0.sync($1, $2) }
    }

    /// Exchanges if the data may be out of date, such as when the app shows a screen.
    ///
    /// Does nothing while the live connection is open, or if the last successful exchange is at
    /// most `age` old.
    /// - Returns: The revision reached, or the present one if it is recent enough.
    /// - Throws: The errors of `sync`.
    @discardableResult
    public func refresh(ifOlderThan age: Duration) async throws -> Revision {
        try await waiting { $0.refresh(ifOlderThan: age, $1, $2) }
    }

    /// Waits until an exchange ends, or the task is cancelled.
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

    /// Changes when the client asks for changes; see `PullPolicy`. It takes effect at once if the
    /// client is started, otherwise at `start()`.
    public func setPullPolicy(_ policy: PullPolicy) {
        device.post { $0.setPolicy(policy) }
    }

    /// Starts to exchange: now, after every save, as the pull policy says, and again after
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

    /// Continues with another token: after signing in again, or before the old one expires. If a
    /// started client has stopped because the server refused its token, it exchanges at once and
    /// opens the live connection again.
    ///
    /// It has an effect if the client was opened with a server's address or a `TokenTransport`. If
    /// tokens expire regularly, set `ClientOptions.tokenProvider` instead.
    public func setToken(_ token: String?) async {
        let transport = try? await device.run { $0.transport as? any TokenTransport }
        await transport?.setToken(token)
        device.post { $0.tokenChanged() }
    }

    /// The events from now on. A listener that does not keep up loses the oldest events.
    public var events: AsyncStream<ClientEvent> {
        listeners.add()
    }

    /// The way in which the client receives changes from the server: the one now, then each new
    /// one. A slow reader sees only the newest.
    public var connection: AsyncStream<ClientConnection> {
        connectionState.follow()
    }

    /// The newest revision applied: the one now, then each one that the device reaches. A slow
    /// reader sees only the newest.
    public var revisions: AsyncStream<Revision> {
        revisionState.follow()
    }

    /// Returns the state of this device.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func status() async throws -> ClientStatus {
        try await device.run { driver in
            let (connection, traffic) = (driver.connection.value, driver.traffic)
            return try driver.withStore { store in
                ClientStatus(
                    clientID: try store.clientID, dataSet: try store.dataSet,
                    revision: try store.revision, outbox: try store.outboxCount,
                    awaitingTable: try store.awaitingTableCount,
                    parked: try store.parkedCount, keptAside: try store.keptAsideCount,
                    quarantined: try store.quarantinedCount, withheld: try store.withheldCount,
                    unremovedReason: try store.unremovedReason,
                    unappliedReason: try store.unappliedReason,
                    passedOver: try store.passedOverCount, lastExchange: try store.lastExchange,
                    connection: connection, traffic: traffic)
            }
        }
    }

    /// Returns the refused change sets, oldest first.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func parked() async throws -> [ParkedSet] {
        try await onStore { try $0.parked() }
    }

    /// Returns the remote values that no column or table can hold yet, by type. The client puts
    /// them into the tables once these have a place.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func keptAside() async throws -> [KeptAside] {
        try await onStore { try $0.keptAside() }
    }

    /// Returns the remote records that this device's tables refuse, with the reason, by type and
    /// key. They block no other record.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func quarantined() async throws -> [QuarantinedRecord] {
        try await onStore { try $0.quarantined() }
    }

    /// Returns the records to which other programs gave values that cannot be sent, with the
    /// reason, by type and key. They block no other record. The client sends each one once it has
    /// other values; `drop` gives it up.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func withheld() async throws -> [WithheldRecord] {
        try await onStore { try $0.withheld() }
    }

    /// Gives up a withheld record: the table shows its earlier values again.
    /// - Throws: `StoreError`: `.unknown` if the record is no longer withheld; `.constraint` if
    ///   another record refers to it, or has taken a unique value that it had before.
    public func drop(_ record: WithheldRecord) async throws {
        try await device.runUnlessCancelled { driver, sign in try driver.drop(record, sign) }
    }

    /// Gives up a refused change set.
    /// - Throws: `StoreError` `.unknown` if no refused set has this identifier.
    public func drop(_ identifier: String) async throws {
        try await device.run { driver in
            try driver.decide { store, now in try store.drop(identifier, now: now) }
        }
    }

    /// Makes the edits of a refused change set again, on top of the server's newest state.
    /// - Returns: The new set's identifier.
    /// - Throws: `StoreError`: `.unknown` if no refused set has this identifier, `.value` if the
    ///   edits do not fit that state.
    @discardableResult
    public func retry(_ identifier: String) async throws -> String {
        try await device.run { driver in
            try driver.decide { store, now in try store.retry(identifier, now: now) }
        }
    }

    /// Returns the verdicts on the newest change sets, newest first.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func receipts(limit: Int = 100) async throws -> [Receipt] {
        try await onStore { try $0.receipts(limit: limit) }
    }

    private func onStore<Result: Sendable>(
        _ body: @escaping @Sendable (DeviceStore) throws -> Result
    ) async throws -> Result {
        try await device.run { try $0.withStore(body) }
    }
}
