internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Performs the actions that the node (`DeviceNode`) decides on: it sends, sets timers and tells
/// the listeners.
///
/// It is confined to the device's queue (`Confined`), and decides nothing itself.
final class DeviceDriver {
    let node: DeviceNode
    /// The outcome of the migration; nil if the file was opened by a script.
    let migration: MigrationOutcome?
    /// The way in which the client receives changes, for followers.
    let connection = ObservedState(ClientConnection.offline)
    /// The newest revision applied, for followers.
    let revision: ObservedState<Revision>
    var traffic = ClientTraffic()
    var policy: PullPolicy
    let transport: (any Transport)?
    let now: @Sendable () -> Int64
    /// Posts an event to the queue, for work that ends later.
    private(set) var inbox: (@Sendable (DeviceNode.Event) -> Void)?
    /// Does the same, and returns when the node has taken the event.
    private(set) var deliver: (@Sendable (DeviceNode.Event) async -> Void)?
    var streams: [Int: Task<Void, Never>] = [:]
    /// Streams that were closed and have not ended yet.
    private var leaving: [Int: Task<Void, Never>] = [:]
    var downloads: SnapshotDownloads
    private let changes: DeviceChanges
    private let trace: StatementTrace?
    let log: ClientLog
    let publish: @Sendable (ClientEvent) -> Void
    /// The tasks that wait for an exchange to end, each with a flag that says it no longer waits.
    private var waiters:
        [(continuation: CheckedContinuation<Revision, any Error>, sign: CancellationFlag)] = []
    private var sends: [Int: Task<Void, Never>] = [:]
    private var timers: [Int: Task<Void, Never>] = [:]
    private var streamTimer: Task<Void, Never>?
    private(set) var isRunning = false
    private(set) var isClosed = false

    init(
        path: String, source: SchemaSource, client: String?, transport: (any Transport)?,
        options: ClientOptions, hub: ChangeHub, generation: SchemaGeneration,
        publish: @escaping @Sendable (ClientEvent) -> Void
    ) throws {
        let (store, outcome) = try source.open(
            path: path, options: options, generation: generation, client: client)
        migration = outcome
        if let dataSet = options.dataSet { try store.expect(dataSet: dataSet) }
        store.registry = options.models
        store.mostKeptBytes = options.mostKeptBytes
        // The tables may have changed since they refused these records.
        if outcome?.failure == nil { try store.retryQuarantined(now: options.now()) }
        trace = options.trace
        trace?.attach(to: store.session)
        changes = DeviceChanges(store: store, hub: hub, generation: generation)
        var nodeOptions = options.node
        nodeOptions.ownerPrefix = LeaseOwner.prefix
        nodeOptions.isOwnerGone = LeaseOwner.isGone
        // The policy has an effect only while the client is started.
        nodeOptions.pollInterval = nil
        nodeOptions.isLive = false
        nodeOptions.usesSnapshots = options.seeding == .server
        downloads = SnapshotDownloads(path: path, options: options)
        downloads.mayHaveFiles = try store.isSeeding
        if options.seeding != nil, !downloads.mayHaveFiles {
            // Removes the files of an installed part, and of parts that are no longer awaited.
            try? downloads.files.removeAll()
        }
        policy = options.pull
        revision = ObservedState(try store.revision)
        node = DeviceNode(
            store: store, options: nodeOptions, engine: options.engine(StoreEngine(store: store)))
        log = options.log
        self.transport = transport
        now = options.now
        self.publish = publish
    }

    deinit {
        for task in [sends, timers, streams].flatMap(\.values) { task.cancel() }
        streamTimer?.cancel()
        downloads.cancel()
    }

    /// Connects the driver to its queue.
    /// - Parameters:
    ///   - inbox: Brings an event to `receive` later, in the given order.
    ///   - deliver: Does the same, and returns when `receive` has returned.
    func connect(
        _ inbox: @escaping @Sendable (DeviceNode.Event) -> Void,
        deliver: @escaping @Sendable (DeviceNode.Event) async -> Void
    ) {
        self.inbox = inbox
        self.deliver = deliver
    }
}

// MARK: - Work on the data

extension DeviceDriver {
    /// Runs a local save.
    /// - Parameter sign: It is checked before the commit; the save is rolled back if it is no
    ///   longer wanted.
    func write<Result>(
        _ sign: CancellationFlag, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try checkOpen()
        changes.begin()
        let result: Result
        do {
            result = try node.store.session.stopping(by: sign) {
                try node.store.write(now: now()) { context in
                    let result = try body(context)
                    try sign.check()
                    return result
                }
            }
        } catch {
            changes.rolledBack()
            throw StoreError.of(error)
        }
        changes.saved()
        publish(.saved)
        announceWithheld()
        wakeIfRunning()
        return result
    }

    /// Gives up a withheld record.
    func drop(_ record: WithheldRecord, _ sign: CancellationFlag) throws {
        try write(sign) { _ in try node.store.drop(record) }
    }

    /// Creates a table on its first use.
    func make(_ missing: MissingTable) throws {
        try checkOpen()
        do {
            try node.store.make(missing)
        } catch {
            throw StoreError.of(error, table: missing.name)
        }
        changes.reattach()
        trace?.attach(to: node.store.session)
    }

    /// Checks for commits of another process and, while the client is started, sends its writes.
    /// Another process's exchanges are commits too, but leave nothing to send.
    func lookForExternalWrites() {
        guard !isClosed, changes.lookForExternalWrites(), isRunning else { return }
        if (try? node.store.hasUnsent) == true { wakeIfRunning() }
    }

    func withStore<Result>(_ body: (DeviceStore) throws -> Result) throws -> Result {
        try checkOpen()
        do {
            return try body(node.store)
        } catch {
            throw StoreError.of(error)
        }
    }

    /// Runs a decision about a refused set. If the client is started, it sends the sets that the
    /// decision queues.
    func decide<Result>(_ body: (DeviceStore, Int64) throws -> Result) throws -> Result {
        try checkOpen()
        changes.begin()
        do {
            let result = try body(node.store, now())
            changes.decided()
            wakeIfRunning()
            return result
        } catch {
            changes.rolledBack()
            throw StoreError.of(error)
        }
    }

    private func wakeIfRunning() {
        if isRunning { perform(handle(.wake(isUrgent: false))) }
    }

    private func checkOpen() throws {
        guard !isClosed else { throw StoreError(.misuse, "The client was closed; open it again.") }
    }
}

// MARK: - Synchronisation

extension DeviceDriver {
    func start() {
        guard transport != nil, !isClosed,
            isWritable(orTold: { publish(.failed($0, retryIn: nil)) })
        else { return }
        isRunning = true
        perform(handle(.wake(isUrgent: true)))
        // This comes last, so that the live connection begins where the exchange ends.
        perform(follow(policy))
    }

    /// Returns whether the file can be written; if not, `told` receives the reason.
    private func isWritable(orTold told: (SyncError) -> Void) -> Bool {
        do {
            try node.store.checkWritable()
            return true
        } catch {
            told(SyncError(.file, "\(error)"))
            return false
        }
    }

    /// Ends the current exchange. After it returns, the exchange writes nothing more to the file.
    /// - Parameter reason: The error for tasks that wait for an exchange.
    /// - Returns: The requests that have been cancelled and are about to end.
    func stop(
        _ reason: SyncError = SyncError(
            .cancelled, "The client was stopped before the exchange ended.")
    ) -> [Task<Void, Never>] {
        isRunning = false
        perform(node.stop())
        connection.value = .offline
        for task in sends.values { task.cancel() }
        for task in timers.values { task.cancel() }
        timers.removeAll()
        streamTimer?.cancel()
        downloads.cancel()
        resumeWaiters(throwing: reason)
        return Array(sends.values) + Array(leaving.values)
            + [downloads.first, downloads.part].compactMap(\.self)
    }

    /// Stops exchanging and refuses further work.
    /// - Returns: The requests that have been cancelled and are about to end.
    func close() -> [Task<Void, Never>] {
        guard !isClosed else { return [] }
        let ending = stop(
            SyncError(.offline, "The client was closed before the exchange ended."))
        sends.removeAll()
        isClosed = true
        connection.finish()
        revision.finish()
        return ending
    }

    /// Closes the file; call it after `close`, and after all readers are closed. The last
    /// connection to close must be one that can write, or SQLite leaves its log behind.
    func closeFile() {
        guard isClosed else { return }
        node.store.close()
    }

    /// Exchanges now, with the further exchanges that the first one requires.
    /// - Parameter sign: Set when the task no longer waits; see `lookForCancellation`.
    func sync(_ waiter: CheckedContinuation<Revision, any Error>, _ sign: CancellationFlag) {
        guard !sign.isSet else { return waiter.resume(throwing: Self.isCancelled) }
        guard !isClosed, transport != nil else {
            waiter.resume(
                throwing: SyncError(
                    .rejected, "The client is closed, or was opened without a server."))
            return
        }
        guard isWritable(orTold: { waiter.resume(throwing: $0) }) else { return }
        waiters.append((waiter, sign))
        perform(handle(.wake(isUrgent: true)))
    }

    /// Resumes the tasks that no longer wait. If only they wanted the exchange, it ends.
    func lookForCancellation() {
        let gone = waiters.filter(\.sign.isSet)
        guard !gone.isEmpty else { return }
        waiters.removeAll(where: \.sign.isSet)
        for waiter in gone { waiter.continuation.resume(throwing: Self.isCancelled) }
        if !isRunning, waiters.isEmpty { _ = stop() }
    }

    private static var isCancelled: SyncError {
        SyncError(.cancelled, "The task that waited for the exchange was cancelled.")
    }

    /// Exchanges at once, with the new token, if the client is started.
    func tokenChanged() {
        guard isRunning, !isClosed else { return }
        perform(handle(.wake(isUrgent: true)))
    }

    func receive(_ event: DeviceNode.Event) {
        switch event {
        case .timer(let number): timers[number] = nil
        case .answered(let exchange, _, _, _), .failed(let exchange, _): sends[exchange] = nil
        case .streamEnded(let number, _, _, _, _, _):
            streams[number] = nil
            leaving[number] = nil
        case .wake, .applyNext, .progress, .tidy, .streamOpened, .streamSign, .streamed,
            .snapshotFetched,
            .snapshotFailed,
            .partFetched, .partGone, .partFailed:
            break
        }
        guard !isClosed else { return }
        perform(handle(event))
    }

    private func handle(_ event: DeviceNode.Event) -> [DeviceNode.Action] {
        changes.begin()
        return node.handle(event, now: now())
    }

    func perform(_ actions: [DeviceNode.Action]) {
        announceWithheld()
        var isBusy = false
        var ended: Revision?
        for action in actions {
            switch action {
            case .send(let exchange, let body):
                isBusy = true
                send(exchange, body: body)
            case .cancel(let exchange): sends[exchange]?.cancel()
            case .setTimer(let number, let milliseconds):
                setTimer(number, milliseconds: milliseconds)
            case .applyNext(let exchange):
                isBusy = true
                inbox?(.applyNext(exchange: exchange))
            case .tidy: inbox?(.tidy)
            case .setStreamTimer(let number, let milliseconds):
                setStreamTimer(number, milliseconds: milliseconds)
            case .openStream(let number, let cursor): openStream(number, cursor)
            case .closeStream(let number):
                guard let stream = streams.removeValue(forKey: number) else { continue }
                stream.cancel()
                leaving[number] = stream
            case .fetchSnapshot(let number):
                isBusy = true
                fetchSnapshot(number)
            case .fetchPart(let number, let part, let manifest):
                fetchPart(number, part, of: manifest)
            case .setPartTimer(let number, let milliseconds):
                setPartTimer(number, milliseconds: milliseconds)
            case .notify(let notice):
                if let revision = announce(notice) { ended = revision }
            }
        }
        if let ended, !isBusy {
            for waiter in waiters { waiter.continuation.resume(returning: ended) }
            waiters.removeAll()
        }
    }

    private func send(_ exchange: Int, body: [UInt8]) {
        guard let transport, let inbox else { return }
        traffic.exchanges += 1
        let pace = ProgressPace(
            every: max(1, node.options.exchangeTimeout / 16), now: now,
            tell: { inbox(.progress(exchange: exchange)) })
        sends[exchange] = Task {
            do throws(TransportFailure) {
                let answer = try await transport.exchange(body, progress: pace.moved)
                inbox(
                    .answered(
                        exchange: exchange, status: answer.status, body: answer.body,
                        retryAfter: answer.retryAfter))
            } catch {
                inbox(.failed(exchange: exchange, SyncError(error)))
            }
        }
    }

    private func setTimer(_ number: Int, milliseconds: Int64) {
        guard let inbox else { return }
        // Only the newest timer matters to the node.
        for task in timers.values { task.cancel() }
        timers.removeAll()
        timers[number] = Task {
            guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
            inbox(.timer(number))
        }
    }

    private func setStreamTimer(_ number: Int, milliseconds: Int64) {
        guard let inbox else { return }
        streamTimer?.cancel()
        streamTimer = Task {
            guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
            inbox(.timer(number))
        }
    }

    /// Tells the listeners about a notice. Returns the revision if an exchange succeeded.
    private func announce(_ notice: DeviceNode.Notice) -> Revision? {
        switch notice {
        case .applied(let report, let revision): announce(report, revision)
        case .streamed(let report, let revision):
            traffic.batches += 1
            announce(report, revision)
            publish(.reached(revision))
        case .passedOver(let count): tellPassedOver(count)
        case .live(let isLive): connectionChanged(isLive: isLive)
        case .late(let isLate): connection.value = isLate ? .polling : .live
        case .seeded(let installed):
            announce(installed.report, revision.value)
            seeded(installed)
            publish(.seeded(class: installed.name))
        case .seedingFailed(let error, let retryIn): publish(.failed(error, retryIn: retryIn))
        case .exchanged(let revision, _):
            self.revision.value = revision
            removeUnneededDownloads()
            if isRunning, connection.value == .offline { connection.value = .polling }
            publish(.reached(revision))
            return revision
        case .failed(let error, let retryIn):
            // An exchange that is repeated at once has not failed yet.
            let isFinal = retryIn != 0
            if isFinal, connection.value != .live { connection.value = .offline }
            publish(.failed(error, retryIn: retryIn))
            if isFinal { resumeWaiters(throwing: error) }
        }
        return nil
    }

    private func announceWithheld() {
        let count = node.store.takeNewlyWithheld()
        if count > 0 { publish(.withheld(count)) }
    }

    /// Tells the listeners about the changes that were applied.
    private func announce(_ report: RebaseReport, _ revision: Revision) {
        changes.applied(report)
        self.revision.value = revision
        if !report.changedTypes.isEmpty {
            publish(.changed(types: report.changedTypes, remoteRecords: report.remoteRecords))
        }
        if let rejoined = report.rejoined { publish(.rejoined(rejoined)) }
        tellUnapplied(report)
        if report.assignedIDs > 0 { publish(.idsAssigned(report.assignedIDs)) }
        for receipt in report.receipts { publish(.receipt(receipt)) }
    }

    private func resumeWaiters(throwing error: SyncError) {
        for waiter in waiters { waiter.continuation.resume(throwing: error) }
        waiters.removeAll()
    }
}
