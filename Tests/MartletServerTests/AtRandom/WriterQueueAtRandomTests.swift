import Foundation
import MartletModel
import MartletProtocol
import SocketTalk
import Synchronization
import Testing
import Waiting

@testable import MartletServer

/// What became of each request, by its name.
private final class Verdicts: Sendable {
    private let all = Mutex<[String: [String]]>([:])

    subscript(name: String) -> [String] { all.withLock { $0[name] ?? [] } }

    func note(_ name: String, _ verdict: String) {
        all.withLock { $0[name, default: []].append(verdict) }
    }
}

/// A writer's queue with small limits: parties who submit whatever they like, and an honest one that stays
/// within its share.
private final class CrowdedQueue {
    private typealias Queue = WriterQueue<NotingWriter>

    private let verdicts = Verdicts()
    private let writer = NotingWriter()
    private let queue: Queue
    private let limits: Queue.Limits
    private let others: Int
    private var chance: Chance
    private var count = 0
    private var tasks: [Task<Void, Never>] = []
    private var names: [String] = []
    private var story: [String] = []
    private(set) var faults: [String] = []

    /// What one request may hold.
    private static let mostSets = 6

    init(_ seed: UInt64) {
        chance = Chance(seed)
        others = chance.roll(1...4)
        var limits = Queue.Limits()
        limits.batchSets = chance.roll(1...8)
        (limits.deferredRequestsOfParty, limits.waitingRequestsOfParty) = (
            chance.roll(1...5), chance.roll(2...8)
        )
        limits.waitingSetsOfParty = limits.waitingRequestsOfParty * Self.mostSets
        // Everybody's share fits, so that nobody needs to be refused for what others do.
        let parties = others + 1
        limits.deferredRequests = parties * limits.deferredRequestsOfParty
        limits.waitingRequests = parties * limits.waitingRequestsOfParty
        limits.waitingSets = parties * (limits.waitingSetsOfParty + Self.mostSets)
        limits.dependencyWait = .seconds(3_600)
        self.limits = limits
        queue = writer.queue(limits)
    }

    /// - Returns: What went wrong, with the story.
    func run(rounds: Int) async throws -> [String] {
        for _ in 0..<rounds where faults.isEmpty { try await round() }
        await queue.stop()
        for task in tasks { await task.value }
        let order = self.written
        for name in names {
            let (all, times) = (verdicts[name], order.count { $0 == name })
            if all != (times == 1 ? [name] : ["busy"]) || times > 1 {
                faults.append("“\(name)” was written \(times) times, and was told \(all)")
            }
        }
        return faults.isEmpty ? [] : faults + ["\(limits)"] + story.suffix(40)
    }

    /// The names of what was written, in its order.
    private var written: [String] { writer.batches.withLock { $0.flatMap(\.self) } }

    // MARK: - A round

    /// Others and the honest party submit while the writer is busy; then the honest party submits what its
    /// other requests wait for.
    private func round() async throws {
        let first = item("honest")
        writer.heldAt.withLock { $0 = first.name }
        submit(first)
        try await waitUntil("the writer is busy") { written.contains(first.name) }
        let begin = written.count
        // All of them may wait for the writer at a time.
        let pairs = chance.roll(
            0...min(limits.deferredRequestsOfParty, limits.waitingRequestsOfParty / 2))
        var late: [(late: String, early: QueuedItem)] = []
        for _ in 0..<pairs {
            let early = item("honest")
            late.append((name(of: "honest"), early))
        }
        let plain = chance.roll(0...limits.waitingRequestsOfParty - 2 * pairs)
        var items = (0..<plain).map { _ in item("honest") }
        items += late.map {
            QueuedItem(name: $0.late, sets: 1, needs: [$0.early.name], party: "honest")
        }
        for number in 1...others {
            for _ in 0..<chance.roll(0...3 * limits.waitingRequestsOfParty) {
                items.append(greedy("other \(number)", late.map(\.early.name)))
            }
        }
        items.shuffle(using: &chance)
        for item in items { try await enter(item) }
        writer.hold.signal()
        let own = items.filter { $0.party == "honest" && $0.needs.isEmpty }.map(\.name)
        await decided(own)
        judgeTurns(since: begin, items.filter { $0.party == "honest" }.map(\.name))
        for (_, early) in late.shuffled(using: &chance) { try await enter(early) }
        await decided(late.flatMap { [$0.early.name, $0.late] })
        let order = self.written
        for (late, early) in late {
            guard let first = order.firstIndex(of: early.name),
                let second = order.firstIndex(of: late)
            else {
                faults.append("“\(late)” or “\(early.name)” of the honest party was not written")
                continue
            }
            if second < first {
                faults.append("“\(late)” was written before “\(early.name)”, which it waits for")
            }
        }
    }

    private func name(of party: String) -> String {
        count += 1
        return "\(party), \(count)"
    }

    private func item(_ party: String) -> QueuedItem {
        QueuedItem(name: name(of: party), sets: chance.roll(0...Self.mostSets), party: party)
    }

    /// A request of somebody else, which may wait for one that never comes, or for the honest party's.
    private func greedy(_ party: String, _ honest: [String]) -> QueuedItem {
        var item = item(party)
        switch chance.roll(0...9) {
        case 0..<5: item.needs = (0..<chance.roll(1...3)).map { _ in "never \(chance.roll(0...9))" }
        case 5 where !honest.isEmpty: item.needs = [chance.pick(honest)]
        case 6 where !names.isEmpty: item.needs = [chance.pick(names)]
        default: break
        }
        return item
    }

    /// Submits a request, and returns when it is in the queue, or has its verdict.
    private func enter(_ item: QueuedItem) async throws {
        let depth = queue.depth
        submit(item)
        try await waitUntil("“\(item.name)” is in the queue") {
            queue.depth != depth || !verdicts[item.name].isEmpty
        }
    }

    private func submit(_ item: QueuedItem) {
        names.append(item.name)
        story.append("\(item.name): \(item.sets) sets, waits for \(item.needs)")
        tasks.append(
            Task { [queue, verdicts] in
                switch await queue.submit(item) {
                case .success(let name): verdicts.note(item.name, name)
                case .failure(let problem): verdicts.note(item.name, problem.kind)
                }
            })
    }

    private func decided(_ names: [String]) async {
        let areDecided = await holds {
            names.allSatisfy { !verdicts[$0].isEmpty }
        }
        if !areDecided {
            faults.append("never decided: \(names.filter { verdicts[$0].isEmpty })")
            return
        }
        for name in names where verdicts[name] != [name] {
            faults.append("“\(name)” was refused, though its party stays within its share")
        }
    }

    /// Before the turn of the honest party's second request, say, each other party has had its turn twice at
    /// most. A turn may lead to a wait for another set.
    /// - Parameter own: The honest party's requests, as they were submitted.
    private func judgeTurns(since begin: Int, _ own: [String]) {
        var turns: [String: Int] = [:]
        for name in written.dropFirst(begin) {
            guard let index = own.firstIndex(of: name) else {
                turns[String(name.prefix { $0 != "," }), default: 0] += 1
                continue
            }
            turns["honest"] = nil
            if let most = turns.values.max(), most > index + 1 {
                faults.append("“\(name)” waited while another party had its turn \(most) times")
            }
        }
    }
}

@Suite("The writer's queue at random", .timeLimit(.minutes(10)))
struct WriterQueueAtRandomTests {
    /// MARTLET_QUEUE_WORLDS=20 tries so many times as many worlds.
    private static let times = number("MARTLET_QUEUE_WORLDS") ?? 1
    /// MARTLET_QUEUE_SEED=146 runs the world of this seed alone.
    private static let only = number("MARTLET_QUEUE_SEED")

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    @Test(
        "each party has its turns and its places, whatever others submit", arguments: UInt64(0)..<4)
    func worldsOfQueue(part: UInt64) async throws {
        let worlds = 5 * Self.times
        for seed in part * worlds..<(part + 1) * worlds where Self.only.map({ $0 == seed }) ?? true
        {
            let story = try await CrowdedQueue(seed).run(rounds: 3)
            #expect(story.isEmpty, "seed \(seed): \(story.joined(separator: "\n"))")
        }
    }
}
