internal import Foundation
internal import MartletProtocol
internal import Synchronization

/// The data sets of a server, each opened once: at the start those that exist, later those that a
/// new token names; and again where the tables of one have changed.
final class DataSetDirectory: Sendable {
    /// Opens a data set.
    /// - Parameter changed: To be called, more than once, when its tables are others than those that
    ///   were opened.
    typealias Make =
        @Sendable (_ name: String, _ changed: @escaping @Sendable () -> Void) async throws ->
        DataSetService

    /// What operators learn.
    struct Telling: Sendable {
        var metrics: Metrics
        var log: ServerLog
        /// Runs what is to be done after a while.
        var later: Later
    }

    private struct State {
        var open: [String: DataSetService] = [:]
        var opening: [String: Task<DataSetService, any Error>] = [:]
        /// Those whose tables have changed, until they are open again.
        var changed: [String: TableChange] = [:]
        /// When they were opened again last.
        var renewed: [String: ContinuousClock.Instant] = [:]
        var isStopped = false
    }

    /// A data set on its way to its tables as they are now.
    private struct TableChange {
        /// How often it could not be opened.
        var failures = 0
        /// Why not, the last time.
        var reason: String?
        var task: Task<Void, Never>?
    }

    /// Between a failure and the next try: the longest pause, in seconds.
    private static let longestPause = 60
    /// Between two openings of a data set, however often its tables change: what says so says it
    /// again.
    private static let pause = Duration.seconds(1)

    private let state = Mutex(State())
    private let make: Make
    private let telling: Telling

    init(_ telling: Telling, make: @escaping Make) {
        self.telling = telling
        self.make = make
    }

    /// The names of the data sets that have a file in a folder.
    static func names(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory)
            .filter { $0.hasSuffix(".sqlite") }
            .map { String($0.dropLast(".sqlite".count)) }
            .filter(DataSetName.isValid)
            .sorted()
    }

    func service(_ name: String) async throws -> DataSetService {
        if let open = state.withLock({ $0.open[name] }) { return open }
        let task = try state.withLock { state -> Task<DataSetService, any Error> in
            guard !state.isStopped else { throw ConfinedValueIsGone() }
            if let running = state.opening[name] { return running }
            let task = Task { try await self.open(name) }
            state.opening[name] = task
            return task
        }
        let result = await task.result
        try state.withLock { state in
            state.opening[name] = nil
            state.open[name] = try result.get()
        }
        return try result.get()
    }

    /// Asks a data set, and asks again where it was opened again before it could answer.
    /// - Returns: Who answered, and the answer.
    func ask<Answer: Sendable>(
        _ name: String,
        _ question: @Sendable (DataSetService) async -> Result<Answer, Problem>
    ) async throws -> (service: DataSetService, answer: Result<Answer, Problem>) {
        var service = try await service(name)
        while true {
            let answer = await question(service)
            guard case .failure(let problem) = answer, problem == .stopping else {
                return (service, answer)
            }
            let next = try await self.service(name)
            guard next !== service else { return (service, answer) }
            service = next
        }
    }

    private func open(_ name: String) async throws -> DataSetService {
        try await make(name) { [weak self] in self?.tablesChanged(name) }
    }

    var queueDepths: [(dataSet: String, depth: Int)] {
        state.withLock { $0.open }.map { ($0.key, $0.value.queueDepth) }
            .sorted { $0.dataSet < $1.dataSet }
    }

    /// How many are open.
    var count: Int { state.withLock { $0.open.count } }

    /// Data sets that cannot be served just now, and why.
    func hindrances() -> [(dataSet: String, reason: String)] {
        var found: [(dataSet: String, reason: String)] = []
        for (name, service) in state.withLock({ $0.open }).sorted(by: { $0.key < $1.key }) {
            if let reason = change(of: name) ?? service.hindrance { found.append((name, reason)) }
        }
        return found
    }

    /// Those whose tables have changed, and that are not open again yet.
    var changed: Set<String> { Set(state.withLock { $0.changed }.keys) }

    private func change(of name: String) -> String? {
        state.withLock { $0.changed[name] }.map { change in
            guard let reason = change.reason else {
                return "its tables have changed, and are being taken up as they are now"
            }
            return "its tables have changed, and cannot be taken up as they are now: \(reason)"
        }
    }

    /// How those fare that others write to.
    func followingStates() async -> [DataSetService.FollowingState] {
        var states: [DataSetService.FollowingState] = []
        for (name, service) in state.withLock({ $0.open }).sorted(by: { $0.key < $1.key }) {
            states.append(await service.followingState(name))
        }
        return states
    }

    /// How many wait for something new.
    var waitingListeners: Int {
        state.withLock { $0.open }.values.reduce(0) { $0 + $1.signal.waiterCount }
    }

    /// Lets go all who wait for something new, so that the server can stop.
    func releaseListeners() {
        for service in state.withLock({ $0.open }).values { service.signal.stop() }
    }

    /// Finishes what was accepted and closes every file.
    func stop() async {
        let (opening, changes) = state.withLock { state in
            state.isStopped = true
            return (Array(state.opening.values), state.changed.values.compactMap(\.task))
        }
        for change in changes { await change.value }
        let open = state.withLock { Array($0.open.values) }
        for service in open { await service.stop() }
        for task in opening {
            if let service = try? await task.value { await service.stop() }
        }
    }
}

// MARK: - Tables that change

extension DataSetDirectory {
    /// The tables of a data set are others than those that were opened: opens it again beside what
    /// is open, which answers until then what it can, and then takes the new one.
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
            guard !state.isStopped, let service = state.open[name] else { return }
            state.changed[name]?.task = Task { await self.replace(service, name) }
        }
    }

    private func replace(_ old: DataSetService, _ name: String) async {
        // Both would keep one folder in order.
        await old.snapshots.stop()
        do {
            let new = try await open(name)
            let isWanted = state.withLock { state in
                guard !state.isStopped else { return false }
                state.open[name] = new
                return true
            }
            guard isWanted else { return await new.stop() }
            // Those who listen come again, as after a restart.
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
        let failures = state.withLock { state in
            state.changed[name]?.failures += 1
            state.changed[name]?.reason = String(describing: error)
            return state.changed[name]?.failures ?? 1
        }
        let pause = min(Self.longestPause, 1 << min(failures - 1, 6))
        telling.metrics.countTakenUp(isDone: false)
        telling.log.log(
            .error, "tables",
            [
                ("dataSet", .text(name)), ("reason", .text(String(describing: error))),
                ("remedy", .text("Correct the tables; until then changes may be put off.")),
                ("nextInSeconds", .number(pause)),
            ])
        telling.later(.seconds(pause)) { [weak self] in self?.takeUp(name) }
    }
}
