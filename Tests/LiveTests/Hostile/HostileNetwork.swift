import Foundation
import MartletModel
import SocketTalk
import Synchronization

/// What lies between the devices and the server, for a while as bad as a seed wants it.
///
/// Each device has a port of its own. What happens to its requests follows from the seed, the device
/// and the number of the request; how requests meet each other does not.
final class HostileNetwork: Sendable {
    struct Mail: Sendable {
        let request: Letter
        let answer: Letter
    }

    struct State {
        var isWell = false
        var story: [String] = []
        var open: Set<RawConnection> = []
        /// The requests of each device.
        var counts: [Int: Int] = [:]
        /// What came by, by kind.
        var mail: [String: [Mail]] = [:]
        /// The answers of each device that repeated the name of its request, and whether one must have been
        /// read: an exchange ended well after several.
        var named: [Int: Int] = [:]
        var acquainted: Set<Int> = []
        /// The refusals by a server that were answers to a device's own requests.
        var refusals: [Int: Int] = [:]
        /// The bytes of answers that a short line has carried, by kind.
        var carried: [String: Int] = [:]
        /// The exchanges in pieces of which something got through before the last piece.
        var pieced: Set<String> = []
    }

    /// What a network is like.
    enum Character {
        /// As the seed wants it.
        case any
        /// Connections are cut, and other programs answer; nobody asks to wait.
        case interrupted
        /// Every connection is cut after so many bytes.
        case short(Int)
        /// Nothing gets through, and after some requests always for the same reason.
        case away

        /// Whether the seed decides all.
        var isAny: Bool { if case .any = self { true } else { false } }

        /// Whether other programs ask nobody to wait.
        var isPrompt: Bool { if case .interrupted = self { true } else { false } }
    }

    let seed: UInt64
    private let devices: [RawServer]
    private let core: Core

    /// What connections need.
    final class Core: Sendable {
        let state = Mutex(State())
        let seed: UInt64
        let target: Int
        let other: Int
        /// The sorts of deeds in this world.
        let sorts: [Deed.Sort]
        /// So many requests in a hundred meet one.
        let part: Int
        /// The requests of each device that a server with other data answers.
        let elsewhere: Range<Int>
        let latency: Int
        let character: Character
        /// The device that would believe another server; only what it fetches comes from there.
        let believer: Int?
        /// As long as it has made fewer requests, all that it fetches comes from there.
        let misled: Int

        init(
            seed: UInt64, target: Int, other: Int, _ character: Character, believer: Int?
        ) {
            (self.seed, self.target, self.other) = (seed, target, other)
            self.believer = believer
            self.character = character
            var chance = Chance(seed, -1)
            let all = Deed.Sort.allCases.shuffled(using: &chance).prefix(chance.roll(1...6))
            let named = ProcessInfo.processInfo.environment["MARTLET_HOSTILE_SORTS"]
            let wanted = named?.split(separator: ",").compactMap { Deed.Sort(rawValue: String($0)) }
            sorts = wanted ?? (character.isAny ? Array(all) : [.stray, .cutUp, .cutDown])
            part = character.isAny ? chance.pick([20, 50, 50, 80]) : chance.roll(20...45)
            latency = character.isAny ? chance.pick([0, 5, 30, 120]) : 0
            let begin = chance.roll(5...60)
            var another = Chance(seed, -10)
            misled = another.pick([0, 0, 4, 12])
            elsewhere = begin..<begin + (sorts.contains(.elsewhere) ? chance.roll(1...8) : 0)
        }
    }

    /// - Parameters:
    ///   - target: The server's port.
    ///   - other: The port of a server with other data.
    ///   - believer: A device that would believe that server.
    init(
        seed: UInt64, devices: Int, target: Int, other: Int, character: Character = .any,
        believer: Int? = nil
    ) {
        self.seed = seed
        let core = Core(seed: seed, target: target, other: other, character, believer: believer)
        self.core = core
        self.devices = (0..<devices).map { device in
            RawServer { core.serve($0, device) }
        }
    }

    func url(of device: Int) throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(devices[device].port)") else {
            throw URLError(.badURL)
        }
        return url
    }

    /// From now on everything passes. Connections that stand are cut: they may be in any state.
    func becomeWell() {
        let open = core.state.withLock { state in
            state.isWell = true
            return state.open
        }
        for connection in open { connection.end() }
    }

    func close() {
        becomeWell()
        for device in devices { device.stop() }
    }

    /// The refusals by the server that a device has got.
    func refusals(_ device: Int) -> Int { core.state.withLock { $0.refusals[device] ?? 0 } }

    /// The exchanges in pieces that had got somewhere.
    var pieced: Set<String> { core.state.withLock(\.pieced) }

    /// The requests that a device has made.
    func requests(_ device: Int) -> Int { core.state.withLock { $0.counts[device] ?? 0 } }

    /// The bytes of answers of a kind that a short line has carried.
    func carried(_ kind: String) -> Int { core.state.withLock { $0.carried[kind] ?? 0 } }

    /// Adds to the story.
    func tell(_ what: String) { core.tell(what) }

    /// Notes that an exchange of a device ended well.
    func noteSuccess(of device: Int) {
        core.state.withLock { state in
            if state.named[device, default: 0] > 2 { state.acquainted.insert(device) }
        }
    }

    /// What happened, to be printed if a world fails.
    var story: String {
        let lines = core.state.withLock(\.story)
        return
            "seed \(seed), sorts \(core.sorts.map(\.rawValue)), \(core.part) %, latency"
            + " \(core.latency) ms\n" + lines.suffix(400).joined(separator: "\n")
    }
}

extension HostileNetwork.Core {
    func tell(_ what: String) {
        state.withLock { $0.story.append(what) }
    }

    /// Serves a connection of a device.
    func serve(_ connection: RawConnection, _ device: Int) {
        state.withLock { _ = $0.open.insert(connection) }
        defer { state.withLock { _ = $0.open.remove(connection) } }
        let reader = LetterReader(connection)
        while let request = reader.request() {
            let (deed, line, number) = plan(request, device)
            let way = HostileWay(
                core: self, device: device, number: number, connection: connection, line: line)
            if case .stale(let cut) = deed {
                guard way.pass(request) else { return }
                _ = reader.request()
                return way.end(cut)
            }
            guard way.perform(deed, request) else { return }
        }
    }

    /// What becomes of a request where the server is away.
    private func away(_ number: Int) -> Deed {
        var chance = Chance(seed, -7)
        guard number >= chance.roll(0...3) else { return .short(200, .end) }
        switch chance.roll(0...3) {
        case 0: return .cutUp(0, .end)
        case 1: return .cutUp(0, .reset)
        case 2: return .cutDown(Chance(seed, -8), .end)
        default:
            var page = Letter.stray(&chance)
            page.remove("retry-after")
            return .stray(page)
        }
    }

    private func plan(_ request: Letter, _ device: Int) -> (Deed, Line, Int) {
        let (number, isWell) = state.withLock { state in
            defer { state.counts[device, default: 0] += 1 }
            if let upload = request.upload, upload.hasProgress { state.pieced.insert(upload.name) }
            return (state.counts[device] ?? 0, state.isWell)
        }
        guard !isWell else { return (.pass, .well, number) }
        if case .short(let most) = character {
            var chance = Chance(seed, device, number)
            return (.short(most, chance.pick(Deed.Cut.allCases)), .well, number)
        }
        if case .away = character { return (away(number), .well, number) }
        var chance = Chance(seed, device, number)
        var line = Line(
            latency: chance.roll(0...latency), bytesPerSecond: nil,
            piece: chance.pick([1 << 20, 1_400, chance.roll(1...300)]))
        // 2.9 kB/s, twenty times as fast, and faster ones.
        if chance.percent(15) { line.bytesPerSecond = chance.pick([58_000, 200_000, 1_000_000]) }
        if device == believer {
            // A cache, or a proxy that leads some requests to another server.
            let isFetched = request.lines[0].hasPrefix("GET") && request.path != "/deltas"
            if isFetched, number < misled || chance.percent(30) {
                return (.elsewhere, line, number)
            }
        } else if elsewhere.contains(number) {
            return (.elsewhere, line, number)
        }
        guard chance.percent(part) else { return (.pass, line, number) }
        var deed = Deed(chance.pick(sorts), request, &chance)
        // Edits of the believer's always go to its server; else nobody could tell the two apart.
        if device == believer, case .elsewhere = deed { deed = .pass }
        if case .stray = deed, ["/sync", "/deltas"].contains(request.path),
            state.withLock({ $0.acquainted.contains(device) }), chance.percent(30)
        {
            deed = .stray(.refusal(&chance))
        }
        if character.isPrompt, case .stray(var answer) = deed {
            answer.remove("retry-after")
            deed = .stray(answer)
        }
        return (deed, line, number)
    }
}
