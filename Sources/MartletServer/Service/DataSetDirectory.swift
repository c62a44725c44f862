internal import Foundation
internal import MartletModel
internal import MartletProtocol
internal import Synchronization
internal import SystemKit

/// Holds the data sets of a server.
///
/// It opens a data set in a file at its first use, and closes it after a time without use, so that
/// descriptors and memory follow the data sets in use. Data sets in databases stay open. The
/// directory reopens a data set whose tables have changed.
///
/// A request, a stream or a waiting poll keeps its data set open with `use`.
final class DataSetDirectory: Sendable {
    /// Opens a data set.
    ///
    /// - Parameter changed: The data set calls it, perhaps more than once, when its tables differ
    ///   from those that were opened.
    typealias Make =
        @Sendable (_ name: String, _ changed: @escaping @Sendable () -> Void) async throws ->
        DataSetService

    /// The ways in which the directory informs operators.
    struct Telling: Sendable {
        var metrics: Metrics
        var log: ServerLog
        /// Runs a retry after a pause.
        var later: Scheduler
    }

    /// The limits on open data sets.
    struct Limits: Sendable {
        /// True if each data set is a file, which the directory opens when it is needed.
        var areFiles = false
        /// The time after which an unused data set is closed; nil closes none.
        var idle: Duration?
        /// Returns the number of data sets that may be open now. To open one more, the directory
        /// first closes the one that has been unused for longest.
        var open: @Sendable () async -> Int = { .max }
    }

    private struct Open {
        let service: DataSetService
        /// The number of current uses.
        var users = 0
        /// The time of the last use.
        var used = ContinuousClock.now
    }

    /// A failure to open a data set.
    private struct Failure {
        var count: Int
        /// The time before which it is not tried again.
        var until: ContinuousClock.Instant
        var reason: String
    }

    private struct State {
        /// The names of the data sets listed at the start, or opened since.
        var known: Set<String> = []
        var open: [String: Open] = [:]
        var opening: [String: Task<Void, any Error>] = [:]
        var closing: [String: Task<Void, Never>] = [:]
        var failed: [String: Failure] = [:]
        /// The data sets whose tables have changed and that are not yet reopened.
        var changed: [String: TableChange] = [:]
        /// The times at which data sets were last reopened.
        var renewed: [String: ContinuousClock.Instant] = [:]
        var sweeping: Task<Void, Never>?
        var isStopped = false

        /// The number of data sets that are open, opening or closing.
        var occupied: Int { open.count + opening.count + closing.count }
    }

    /// The state of a data set that is being reopened with its changed tables.
    private struct TableChange {
        /// The number of times that it could not be opened.
        var failures = 0
        /// The reason for the last failure.
        var reason: String?
        var task: Task<Void, Never>?
    }

    /// The longest pause between a failure and the next try, in seconds.
    private static let longestPause = 60
    /// The shortest time between two reopenings of a data set, however often its tables change. A
    /// change that is ignored meanwhile is reported again.
    private static let pause = Duration.seconds(1)

    private let state = Mutex(State())
    private let make: Make
    private let limits: Limits
    private let telling: Telling

    init(_ telling: Telling, limits: Limits = Limits(), make: @escaping Make) {
        self.telling = telling
        self.limits = limits
        self.make = make
    }

    /// Returns the names of the data sets that have a file in a folder.
    static func names(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory)
            .filter { $0.hasSuffix(".sqlite") }
            .map { String($0.dropLast(".sqlite".count)) }
            .filter(DataSetName.isValid)
            .sorted()
    }

    // MARK: - Using

    /// Calls `body` with a data set, and opens the data set first if it is closed. It stays open
    /// during the call.
    /// - Throws: `DataSetCannotBeOpened`, `DataSetNotServed`, `OwnerStopped`, a `Problem`
    ///   if too many are in use or its tables cannot be taken up, and errors of `body`.
    func use<Answer>(
        _ name: String, _ body: (DataSetService) async throws -> Answer
    ) async throws -> Answer {
        let service = try await take(name)
        defer { giveBack(name) }
        return try await body(service)
    }

    /// Asks a data set. If the data set was reopened before it could answer, this asks the new one.
    func ask<Answer: Sendable>(
        _ name: String,
        _ body: @Sendable (DataSetService) async -> Result<Answer, Problem>
    ) async throws -> Result<Answer, Problem> {
        var asked: DataSetService?
        while true {
            let (service, answer) = try await use(name) { service in
                (service, service === asked ? nil : await body(service))
            }
            guard let answer else { return .failure(.stopping) }
            guard case .failure(let problem) = answer, problem == .stopping else { return answer }
            asked = service
        }
    }

    private func take(_ name: String) async throws -> DataSetService {
        enum Step {
            case use(DataSetService)
            case awaitOpening(Task<Void, any Error>)
            case awaitClosing(Task<Void, Never>)
        }
        while true {
            let step = try state.withLock { state -> Step in
                guard !state.isStopped else { throw OwnerStopped() }
                if let open = state.open[name] {
                    // Policies cannot judge by other tables than those that were opened.
                    if open.service.hasPolicies, state.changed[name]?.reason != nil {
                        throw Problem.tablesNotTakenUp
                    }
                    state.open[name]?.users += 1
                    return .use(open.service)
                }
                if let closing = state.closing[name] { return .awaitClosing(closing) }
                if let opening = state.opening[name] { return .awaitOpening(opening) }
                if let failure = state.failed[name], failure.until > .now {
                    throw DataSetCannotBeOpened(reason: failure.reason)
                }
                let task = Task { try await self.open(name) }
                state.opening[name] = task
                return .awaitOpening(task)
            }
            switch step {
            case .use(let service): return service
            case .awaitOpening(let task): try await task.value
            case .awaitClosing(let task): await task.value
            }
        }
    }

    private func giveBack(_ name: String) {
        state.withLock { state in
            state.open[name]?.users -= 1
            state.open[name]?.used = .now
        }
    }

    // MARK: - Opening

    /// The most data sets in files that are all opened at the start, so that faults show at once.
    private static let openedAtStart = 16

    /// Registers the existing data sets.
    ///
    /// It opens all of them if they are in databases or few. If there are many files, it opens one,
    /// to check that the schema fits.
    ///
    /// - Throws: `ServerFailure` if one in a database cannot be opened, or none of the files that
    ///   it tries.
    func begin(with names: [String]) async throws {
        state.withLock { $0.known.formUnion(names) }
        let isAll = !limits.areFiles || names.count <= Self.openedAtStart
        var failure: DataSetCannotBeOpened?
        var isOneOpen = false
        for name in isAll ? names[...] : names.prefix(3) where isAll || !isOneOpen {
            do {
                try await use(name) { _ in }
                isOneOpen = true
            } catch let error as DataSetCannotBeOpened {
                failure = failure ?? error
                guard limits.areFiles else { throw ServerFailure(error.reason) }
            }
        }
        if let failure, !isOneOpen { throw ServerFailure(failure.reason) }
        guard limits.areFiles, let idle = limits.idle else { return }
        state.withLock { state in
            state.sweeping = Task { [weak self] in
                while (try? await Task.sleep(for: idle / 4)) != nil {
                    guard let self else { return }
                    closeIdle(for: idle)
                }
            }
        }
    }

    private func open(_ name: String) async throws {
        do {
            try await makeRoom()
            let service = try await made(name)
            let isWanted = state.withLock { state in
                state.opening[name] = nil
                guard !state.isStopped else { return false }
                state.known.insert(name)
                state.open[name] = Open(service: service)
                return true
            }
            guard isWanted else {
                await service.stop()
                throw OwnerStopped()
            }
            telling.metrics.countDataSet(isOpened: true)
            if state.withLock({ $0.failed.removeValue(forKey: name) }) != nil {
                telling.log.log(
                    .info, "storage",
                    [("dataSet", .text(name)), ("reason", .text("it can be opened again"))])
            }
        } catch {
            state.withLock { $0.opening[name] = nil }
            switch error {
            case is OwnerStopped, is DataSetNotServed, is Problem: throw error
            default: throw cannotOpen(name, error)
            }
        }
    }

    private func made(_ name: String) async throws -> DataSetService {
        try await make(name) { [weak self] in self?.tablesChanged(name) }
    }

    /// Notes and logs why a data set cannot be opened. A later request tries again after a pause.
    private func cannotOpen(_ name: String, _ error: any Error) -> DataSetCannotBeOpened {
        let reason = String(describing: error)
        let pause = state.withLock { state in
            let count = (state.failed[name]?.count ?? 0) + 1
            let pause = min(Self.longestPause, 1 << min(count - 1, 6))
            state.failed[name] = Failure(
                count: count, until: .now + .seconds(pause), reason: reason)
            return pause
        }
        telling.log.log(
            .error, "storage",
            [
                ("dataSet", .text(name)), ("reason", .text(reason)),
                (
                    "remedy",
                    .text("Other data sets are served. See what martlet doctor says of it.")
                ),
                ("nextInSeconds", .number(pause)),
            ])
        return DataSetCannotBeOpened(reason: reason)
    }

    // MARK: - Closing

    /// Closes unused data sets until there is room for one more.
    private func makeRoom() async throws {
        while true {
            let limit = await limits.open()
            let (isFull, closing) = state.withLock { state -> (Bool, Task<Void, Never>?) in
                // `occupied` already includes the data set that is being opened.
                guard state.occupied > limit else {
                    return (false, nil)
                }
                if let closing = state.closing.values.first { return (true, closing) }
                let oldest = state.open.filter { $0.value.users == 0 }
                    .min { $0.value.used < $1.value.used }
                return (true, oldest.flatMap { close($0.key, &state) })
            }
            guard isFull else { return }
            guard let closing else {
                throw Problem.busy("Too many data sets are in use at the moment; try again.")
            }
            await closing.value
        }
    }

    /// Closes the data sets that have been unused for at least `idle`.
    func closeIdle(for idle: Duration) {
        state.withLock { state in
            let now = ContinuousClock.now
            for (name, open) in state.open where open.users == 0 && now - open.used >= idle {
                if !open.service.isAtWork { _ = close(name, &state) }
            }
        }
    }

    private func close(_ name: String, _ state: inout State) -> Task<Void, Never>? {
        guard limits.areFiles, state.changed[name] == nil, !state.isStopped,
            let service = state.open.removeValue(forKey: name)?.service
        else { return nil }
        let task = Task {
            await service.stop()
            self.state.withLock { $0.closing[name] = nil }
            self.telling.metrics.countDataSet(isOpened: false)
        }
        state.closing[name] = task
        return task
    }

    /// Finishes accepted work and closes every file.
    func stop() async {
        let (sweeping, opening, closing, changes) = state.withLock { state in
            state.isStopped = true
            return (
                state.sweeping, Array(state.opening.values), Array(state.closing.values),
                state.changed.values.compactMap(\.task)
            )
        }
        sweeping?.cancel()
        for change in changes { await change.value }
        for task in opening { _ = await task.result }
        for task in closing { await task.value }
        let open = state.withLock { $0.open.values.map(\.service) }
        await withTaskGroup { group in
            for service in open { group.addTask { await service.stop() } }
        }
    }

    // MARK: - For operators

    /// The numbers of data sets.
    struct Counts: Hashable, Sendable {
        var known = 0
        var open = 0
        /// The number of data sets whose last opening failed.
        var failed = 0
    }

    var counts: Counts {
        state.withLock { state in
            Counts(
                known: state.known.count, open: state.occupied,
                failed: state.failed.count)
        }
    }

    private var open: [(name: String, service: DataSetService)] {
        state.withLock { $0.open }.map { ($0.key, $0.value.service) }.sorted { $0.name < $1.name }
    }

    /// The depth of the writer's queue of each open data set.
    var queueDepths: [(dataSet: String, depth: Int)] {
        open.map { ($0.name, $0.service.queueDepth) }
    }

    /// The time in seconds for which all batches of an open data set have failed.
    var blockedWriters: [(dataSet: String, seconds: Double)] {
        open.map { ($0.name, $0.service.writerBlocked) }
    }

    /// The number of tables that other programs keep locked, by data set.
    var lockedTables: [(dataSet: String, count: Int)] {
        open.map { ($0.name, $0.service.lockedTables) }
    }

    /// The number of data sets that can be served only in part.
    var limitedCount: Int { open.count { $0.service.isLimited } }

    /// Returns the open data sets that cannot be served now, with the reasons.
    ///
    /// A data set that cannot be opened is not among them: the server can serve the others, and
    /// would otherwise be taken out of service for all of them.
    func hindrances() -> [(dataSet: String, reason: String)] {
        open.compactMap { name, service in
            (change(of: name) ?? service.unreadyReason).map { (name, $0) }
        }
    }

    /// The data sets whose tables have changed and that are not yet reopened.
    var changed: Set<String> { Set(state.withLock { $0.changed }.keys) }

    private func change(of name: String) -> String? {
        state.withLock { $0.changed[name] }.map { change in
            guard let reason = change.reason else {
                return "its tables have changed, and are being taken up as they are now"
            }
            return "its tables have changed, and cannot be taken up as they are now: \(reason)"
        }
    }

    /// Returns the state of the open data sets.
    func followingStates() async -> [Watcher.FollowingState] {
        var states: [Watcher.FollowingState] = []
        for (_, service) in open { states.append(await service.followingState()) }
        return states
    }

    /// The number of requests that wait for a change.
    var waitingListeners: Int { open.reduce(0) { $0 + $1.service.signal.waiterCount } }

    /// Releases all requests that wait for a change, so that the server can stop.
    func releaseListeners() {
        for (_, service) in open { service.signal.stop() }
    }
}

// MARK: - Tables that change

extension DataSetDirectory {
    /// Reopens a data set whose tables have changed. Until the new service takes its place, the old
    /// one answers the requests that it can, or none if there are policies and the tables cannot be taken up.
    private func tablesChanged(_ name: String) {
        let isNews = state.withLock { state in
            guard !state.isStopped, state.open[name] != nil, state.changed[name] == nil,
                state.renewed[name].map({ .now - $0 > Self.pause }) ?? true
            else { return false }
            state.changed[name] = TableChange()
            return true
        }
        guard isNews else { return }
        telling.log.log(
            .warning, "tables",
            [
                ("dataSet", .text(name)),
                ("note", .text("The tables have changed; they are taken up as they are now.")),
            ])
        takeUp(name)
    }

    private func takeUp(_ name: String) {
        state.withLock { state in
            guard !state.isStopped, let service = state.open[name]?.service else { return }
            state.changed[name]?.task = Task { await self.replace(service, name) }
        }
    }

    private func replace(_ old: DataSetService, _ name: String) async {
        // Both services would tidy the same folder.
        await old.stopSnapshots()
        do {
            let new = try await made(name)
            let isWanted = state.withLock { state in
                guard !state.isStopped, let users = state.open[name]?.users else { return false }
                state.open[name] = Open(service: new, users: users)
                return true
            }
            guard isWanted else { return await new.stop() }
            // Listeners reconnect, as after a restart.
            old.signal.stop()
            await old.stop()
            telling.metrics.countTakenUp(isDone: true)
            telling.log.log(
                .info, "tables",
                [("dataSet", .text(name)), ("note", .text("The tables were taken up."))])
            state.withLock { state in
                state.changed[name] = nil
                state.renewed[name] = .now
            }
        } catch {
            failed(name, error)
        }
    }

    private func failed(_ name: String, _ error: any Error) {
        let (failures, old) = state.withLock { state in
            state.changed[name]?.failures += 1
            state.changed[name]?.reason = String(describing: error)
            return (state.changed[name]?.failures ?? 1, state.open[name]?.service)
        }
        // Listeners are answered no more, either.
        if let old, old.hasPolicies { old.signal.stop() }
        let pause = min(Self.longestPause, 1 << min(failures - 1, 6))
        telling.metrics.countTakenUp(isDone: false)
        telling.log.log(
            .error, "tables",
            [
                ("dataSet", .text(name)), ("reason", .text(String(describing: error))),
                ("remedy", .text("Correct the tables; until then requests may get 503.")),
                ("nextInSeconds", .number(pause)),
            ])
        telling.later(.seconds(pause)) { [weak self] in self?.takeUp(name) }
    }
}
