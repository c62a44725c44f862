internal import Foundation
internal import Synchronization

/// The data sets of a server, each opened once: at the start those that exist, later those that a
/// new token names.
final class DataSetDirectory: Sendable {
    private struct State {
        var open: [String: DataSetService] = [:]
        var opening: [String: Task<DataSetService, any Error>] = [:]
        var isStopped = false
    }

    private let state = Mutex(State())
    private let make: @Sendable (_ name: String) async throws -> DataSetService

    init(make: @escaping @Sendable (_ name: String) async throws -> DataSetService) {
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
            let task = Task { [make] in try await make(name) }
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

    var queueDepths: [(dataSet: String, depth: Int)] {
        state.withLock { $0.open }.map { ($0.key, $0.value.queueDepth) }
            .sorted { $0.dataSet < $1.dataSet }
    }

    /// How many are open.
    var count: Int { state.withLock { $0.open.count } }

    /// Data sets that cannot be served just now, and why.
    func hindrances() async -> [(dataSet: String, reason: String)] {
        var found: [(dataSet: String, reason: String)] = []
        for (name, service) in state.withLock({ $0.open }).sorted(by: { $0.key < $1.key }) {
            if let reason = await service.hindrance() { found.append((name, reason)) }
        }
        return found
    }

    /// How those fare that others write to.
    func followingStates() async -> [DataSetService.FollowingState] {
        var states: [DataSetService.FollowingState] = []
        for (name, service) in state.withLock({ $0.open }).sorted(by: { $0.key < $1.key }) {
            if let state = await service.followingState(name) { states.append(state) }
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
        let (open, opening) = state.withLock { state in
            state.isStopped = true
            return (Array(state.open.values), Array(state.opening.values))
        }
        for service in open { await service.stop() }
        for task in opening {
            if let service = try? await task.value { await service.stop() }
        }
    }
}
