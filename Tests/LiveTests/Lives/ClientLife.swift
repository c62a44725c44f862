import Foundation
import Martlet
import MartletDevice
import MartletModel
import SocketTalk
import Synchronization
import Waiting

/// Two clients on one device's file, which start, stop, save, exchange, cancel, close and open again as a seed
/// says, while either's network may hold any request for as long as it likes.
///
/// What an app may rely on is judged at every step: each call returns, whatever the network does; who stops
/// holds nobody else up; a closed file is closed; and what anyone has saved is sent as long as one of the two
/// is started.
actor ClientLife {
    /// A call that somebody waits for.
    private struct Call {
        let name: String
        let client: Int
        let task: Task<Void, Never>
        let hasReturned: Flag
    }

    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock(\.self) }
        func set() { value.withLock { $0 = true } }
    }

    private struct Slot {
        var client: MartletClient?
        var way: LooseTransport
        var isStarted = false
    }

    /// The time that a call takes at most which waits for nobody.
    private static let bound = Duration.seconds(20)
    /// What the clients wait for requests that do not end: 5 seconds to an app, and less here.
    private static let closePatience = Duration.milliseconds(100)

    private let seed: UInt64
    private let server: LiveServer
    private let near: MartletClient
    private let path: String
    private var slots: [Slot] = []
    /// Ways of clients that were closed; some of their requests may still be held.
    private var leftWays: [LooseTransport] = []
    private var calls: [Call] = []
    private var chance: Chance
    private var saved: [String] = []
    private var story: [String] = []

    init(seed: UInt64) async throws {
        self.seed = seed
        chance = Chance(seed)
        server = try LiveServer()
        try await server.start()
        near = try await server.device("near")
        path = server.file("shared")
        for _ in 0..<2 {
            slots.append(Slot(client: nil, way: LooseTransport(try await server.transport())))
        }
    }

    func run() async throws {
        for _ in 0..<chance.roll(10...25) { try await step() }
        try await end()
    }

    func close() async {
        for way in slots.map(\.way) + leftWays { way.letGo() }
        for slot in slots { await slot.client?.close() }
        await near.close()
        await server.stop()
    }

    private func tell(_ what: String) { story.append(what) }

    private func failure(_ message: String) -> LifeFault {
        LifeFault(description: "seed \(seed): \(message)\n\(story.joined(separator: "\n"))")
    }

    // MARK: - Steps

    private func step() async throws {
        let number = chance.roll(0...1)
        guard slots[number].client != nil else { return try await open(number) }
        switch chance.roll(0...15) {
        case 0, 1: start(number)
        case 2, 3: try await stop(number)
        case 4: try await close(number)
        case 5, 6, 7: ask(number)
        case 8, 9: try await cancel()
        case 10, 11: try await save(number)
        case 12, 13:
            tell("\(number) is held")
            slots[number].way.hold()
        case 14:
            tell("\(number) is let go")
            slots[number].way.letGo()
        default: try await exchangeAlone(number)
        }
        if chance.percent(40) { try await Task.sleep(for: .milliseconds(chance.roll(1...60))) }
    }

    private func open(_ number: Int) async throws {
        tell("\(number) opens")
        var options = ClientOptions()
        options.node.backoff.first = 20
        options.node.backoff.longest = 300
        options.pull = .live(pollingEvery: nil)
        options.log = .silent
        options.sleep = { time in
            try await Task.sleep(for: time == .seconds(5) ? Self.closePatience : time)
        }
        leftWays.append(slots[number].way)
        let way = LooseTransport(try await server.transport())
        let client = try await MartletClient.open(
            path: path, schema: LiveServer.schema, transport: way, options: options)
        slots[number] = Slot(client: client, way: way)
    }

    private func start(_ number: Int) {
        tell("\(number) starts")
        slots[number].client?.start()
        slots[number].isStarted = true
    }

    private func stop(_ number: Int) async throws {
        guard let client = slots[number].client else { return }
        tell("\(number) stops")
        slots[number].isStarted = false
        try await returns("stop") { await client.stop() }
        try await haveReturned(calls.filter { $0.client == number }, after: "stop")
        if chance.percent(60) { try await exchangeAlone(1 - number) }
    }

    private func close(_ number: Int) async throws {
        guard let client = slots[number].client else { return }
        tell("\(number) closes")
        slots[number].client = nil
        slots[number].isStarted = false
        try await returns("close") { await client.close() }
        try await haveReturned(calls.filter { $0.client == number }, after: "close")
        if slots.allSatisfy({ $0.client == nil }) { try checkClosed() }
        if chance.percent(50) { try await exchangeAlone(1 - number) }
    }

    private func save(_ number: Int) async throws {
        guard let client = slots[number].client else { return }
        let name = "save \(saved.count)"
        tell("\(number) saves \(name)")
        try await returns("write") {
            _ = try await client.write { try $0.insert("teams", ["name": .text(name)]) }
        }
        saved.append(name)
    }

    private func ask(_ number: Int) {
        guard let client = slots[number].client else { return }
        let name = chance.percent(70) ? "sync" : "refresh"
        tell("\(number) asks: \(name) \(calls.count)")
        let hasReturned = Flag()
        let task = Task {
            _ =
                try? await name == "sync"
                ? client.sync() : client.refresh(ifOlderThan: .seconds(-1))
            hasReturned.set()
        }
        calls.append(
            Call(
                name: "\(name) \(calls.count)", client: number, task: task,
                hasReturned: hasReturned))
    }

    /// Cancels some of the tasks that wait.
    private func cancel() async throws {
        let waiting = calls.filter { !$0.hasReturned.isSet }.shuffled(using: &chance)
        let chosen = Array(waiting.prefix(chance.roll(1...3)))
        guard !chosen.isEmpty else { return }
        tell("cancelled: \(chosen.map(\.name))")
        for call in chosen { call.task.cancel() }
        try await haveReturned(chosen, after: "being cancelled")
        let number = chosen[0].client
        if chance.percent(50), !isBusy(number) { try await exchangeAlone(1 - number) }
    }

    /// Whether a client may have an exchange under way.
    private func isBusy(_ number: Int) -> Bool {
        slots[number].isStarted
            || calls.contains { $0.client == number && !$0.hasReturned.isSet }
    }

    /// Exchanges while the other client has nothing under way that anyone wants.
    private func exchangeAlone(_ number: Int) async throws {
        guard let client = slots[number].client, !isBusy(1 - number) else { return }
        tell("\(number) exchanges alone")
        slots[number].way.letGo()
        try await returns("sync, while nobody else exchanges,") {
            // An exchange of before may have failed as the way was let go.
            _ = try? await client.sync()
            _ = try await client.sync()
        }
    }

    // MARK: - The judgement

    private func returns(
        _ name: String, _ call: @escaping @Sendable () async throws -> Void
    ) async throws {
        let hasReturned = Flag()
        let shared = Shared()
        Task {
            do {
                try await call()
            } catch {
                shared.error.withLock { $0 = error }
            }
            hasReturned.set()
        }
        guard await holds(within: Self.bound, { hasReturned.isSet }) else {
            throw failure("\(name) does not return")
        }
        if let error = shared.error.withLock(\.self) { throw failure("\(name) throws: \(error)") }
    }

    private func haveReturned(_ some: [Call], after what: String) async throws {
        let isSo = await holds(within: Self.bound) { some.allSatisfy { $0.hasReturned.isSet } }
        guard isSo else {
            let left = some.filter { !$0.hasReturned.isSet }.map(\.name)
            throw failure("after \(what), nobody answers \(left)")
        }
    }

    /// Nothing of the process has the file open, and SQLite has removed its log.
    private func checkClosed() throws {
        tell("nobody has the file")
        guard !FileManager.default.fileExists(atPath: path + "-wal") else {
            throw failure("the file's log is there, though all clients are closed")
        }
        let folder = "/proc/self/fd"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names {
            let target = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "\(folder)/\(name)")
            guard target?.hasPrefix(path) != true else {
                throw failure("\(target ?? "") is open, though all clients are closed")
            }
        }
    }

    /// One of the two is started, and both may save: all of it is sent, without anything else.
    private func end() async throws {
        for number in 0...1 {
            slots[number].way.letGo()
            if slots[number].client == nil { try await open(number) }
        }
        let number = chance.roll(0...1)
        if !slots[number].isStarted { start(number) }
        guard let client = slots[number].client else { return }
        let isLive = try await holds(within: Self.bound) {
            try await client.status().connection == .live
        }
        guard isLive else { throw failure("\(number) was started and is not live") }
        // Its own exchanges of before are over by then.
        try await arrives("what was saved before")
        for _ in 0...chance.roll(0...2) { try await save(chance.percent(70) ? 1 - number : number) }
        try await arrives("what was saved while the stream stood")
        for number in [0, 1].shuffled(using: &chance) { try await close(number) }
    }

    private func arrives(_ what: String) async throws {
        let expected = saved.sorted()
        let near = near
        let isThere = try await holds(within: Self.bound) {
            try await near.sync()
            let rows = try await near.read { try $0.rows("SELECT name FROM teams") }
            return try rows.map { try $0.value("name", as: String.self) }.sorted() == expected
        }
        guard isThere else { throw failure("\(what) does not arrive") }
    }
}

/// An error that a task leaves for another.
private final class Shared: Sendable {
    let error = Mutex<(any Error)?>(nil)
}

struct LifeFault: Error, CustomStringConvertible {
    let description: String
}
