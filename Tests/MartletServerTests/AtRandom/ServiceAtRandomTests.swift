import Foundation
import MartletModel
import MartletProtocol
import MartletServerCore
import SocketTalk
import Synchronization
import Testing
import Waiting

@testable import MartletServer

/// Answers that are made and not handed over yet, and those that are.
private final class Answers: Sendable {
    private struct State {
        /// The claims of answers that are in memory.
        var held: [Int: AnswerClaim] = [:]
        var most = 0
        var ended: [Int: String] = [:]
    }

    private let state = Mutex(State())

    var heldCount: Int { state.withLock { $0.held.count } }
    var endedCount: Int { state.withLock { $0.ended.count } }
    /// The most answers that were in memory at a time.
    var most: Int { state.withLock { $0.most } }
    func end(of number: Int) -> String? { state.withLock { $0.ended[number] } }

    /// - Parameter isOfReader: Whether the answer is made for this request alone, and may be large.
    func note(
        _ number: Int, _ verdict: DataSetService.Response, _ claim: AnswerClaim, isOfReader: Bool
    ) {
        state.withLock { state in
            switch verdict {
            case .success:
                if isOfReader { state.held[number] = claim }
                state.ended[number] = "answered"
                state.most = max(state.most, state.held.count)
            case .failure(let problem): state.ended[number] = problem.kind
            }
        }
    }

    /// One of the clients takes its answer.
    func handOver(_ chance: inout Chance) {
        let claim = state.withLock { state in
            state.held.keys.sorted().randomElement(using: &chance).flatMap {
                state.held.removeValue(forKey: $0)
            }
        }
        claim?.giveBack()
    }
}

/// A data set that many ask, while comparisons take as long as the world lasts: by several parties, of whom
/// some go away, some read nothing, and some save.
private final class AskedService {
    private let service: DataSetService
    private let gate = HeldService.Gate()
    private let folder = TemporaryFolder()
    private let answers = Answers()
    private var chance: Chance
    private var saves = 0
    /// The saves before anybody asks.
    private var first = 0
    private var story: [String] = []
    private(set) var faults: [String] = []

    init(_ seed: UInt64) async throws {
        var chance = Chance(seed)
        // With little memory the log has to be read from the file.
        service = try await HeldService.make(folder, gate, cacheBytes: chance.pick([1, 1 << 20]))
        self.chance = chance
    }

    /// - Returns: What went wrong, with the story.
    func run() async throws -> [String] {
        for _ in 0..<chance.roll(1...30) {
            let verdict = await service.answer(try save(by: "first"), AnswerClaim(of: "first"))
            if case .failure(let problem) = verdict { faults.append("a save got \(problem.kind)") }
        }
        first = saves
        let compared = try await compare(chance.pick([0, 1, 3, 12]))
        try await ask(chance.roll(10...60), beside: compared.count)
        gate.open()
        for task in compared {
            if case .failure(let problem) = await task.value {
                faults.append("a comparison got \(problem.kind)")
            }
        }
        await service.stop()
        return faults.isEmpty ? [] : faults + story
    }

    // MARK: - Requests

    private func admitted(_ request: SyncRequest, by party: String) throws -> AdmittedRequest {
        let bytes = try SyncCoder.encode(request)
        return AdmittedRequest(
            principal: Principal(name: party, user: party),
            request: try SyncCoder.decodeRequest(bytes), source: bytes)
    }

    private func save(by party: String) throws -> AdmittedRequest {
        saves += 1
        let id = RecordID.integer(-Int64(saves))
        let name = Attributes(names: ["name"], values: [.text("team \(saves)")])
        var set = ChangeSet(types: [
            TypeChanges(
                name: "teams", create: [id], entries: [RecordEntry(id: id, attributes: name)])
        ])
        (set.identifier, set.sequence, set.seen) = ("set-\(saves)", Int64(saves), 0)
        var request = SyncRequest(maxRevision: 0, changeSets: [set])
        request.clientID = "saver \(party)"
        return try admitted(request, by: party)
    }

    /// So many comparisons, each for another device. They are under way or wait until the gate is opened.
    private func compare(
        _ count: Int
    ) async throws -> [Task<DataSetService.Response, Never>] {
        var comparisons: [(user: String, request: AdmittedRequest)] = []
        for number in 0..<count {
            let user = "user \(number % 3)"
            var request = SyncRequest(maxRevision: 0)
            request.clientID = "device \(number)"
            request.wantsRows = true
            // A device is met before anything is compared with it.
            _ = await service.answer(try admitted(request, by: user), AnswerClaim(of: user))
            request.wantsRows = false
            request.check = CheckRequest(revision: 0, types: [])
            comparisons.append((user, try admitted(request, by: user)))
        }
        var tasks: [Task<DataSetService.Response, Never>] = []
        for (user, comparison) in comparisons {
            tasks.append(
                Task { [service] in await service.answer(comparison, AnswerClaim(of: user)) })
        }
        if count > 0 { try await waitUntil("one is compared") { gate.count > 0 } }
        return tasks
    }

    /// Everybody is answered while comparisons go on, few at a time.
    private func ask(_ count: Int, beside compared: Int) async throws {
        story.append("\(count) ask beside \(compared) comparisons")
        var tasks: [Task<Void, Never>] = []
        var left: Set<Int> = []
        for number in 0..<count {
            let party = "user \(chance.roll(0...4))"
            let request = try request(by: party)
            // The writer answers those who save, and those who come for the first time, one after the other.
            let isOfReader = request.request.changeSets.isEmpty && request.request.clientID == nil
            tasks.append(
                Task { [service, answers] in
                    let claim = AnswerClaim(of: party)
                    let verdict = await service.answer(request, claim)
                    answers.note(number, verdict, claim, isOfReader: isOfReader)
                })
            if chance.percent(15), let gone = tasks.indices.randomElement(using: &chance) {
                tasks[gone].cancel()
                left.insert(gone)
            }
        }
        while answers.endedCount < count {
            let isMoving = await holds {
                answers.heldCount > 0 || answers.endedCount == count
            }
            guard isMoving else {
                let waiting = count - answers.endedCount
                faults.append("\(waiting) of \(count) wait for ever beside \(compared) comparisons")
                break
            }
            answers.handOver(&chance)
        }
        // Some from memory, some from the log.
        if answers.most > 2 * AnswerRoom.capacity {
            faults.append("\(answers.most) answers were in memory at a time")
        }
        for number in 0..<count {
            let end = answers.end(of: number) ?? "no answer"
            if end != "answered", !(left.contains(number) && end == "gone") {
                faults.append("request \(number): \(end)")
            }
        }
    }

    private func request(by party: String) throws -> AdmittedRequest {
        if chance.percent(15) { return try save(by: party) }
        var request = SyncRequest(maxRevision: Int64(chance.roll(0...first)))
        if chance.percent(40) { request.clientID = "reader \(party) \(chance.roll(0...9))" }
        if chance.percent(30) { (request.maxRevision, request.wantsRows) = (0, true) }
        return try admitted(request, by: party)
    }
}

@Suite("A data set that many ask at a time", .timeLimit(.minutes(10)))
struct ServiceAtRandomTests {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    /// MARTLET_ASKED_WORLDS=20 tries so many times as many worlds; MARTLET_ASKED_SEED=146 runs one again.
    private static let seeds: [UInt64] = {
        if let seed = number("MARTLET_ASKED_SEED") { return [seed] }
        return (0..<10 * (number("MARTLET_ASKED_WORLDS") ?? 1)).map { _ in
            UInt64.random(in: 0 ... .max)
        }
    }()

    @Test("answers everybody, few at a time, however long comparisons take", arguments: seeds)
    func worldOfService(seed: UInt64) async throws {
        let story = try await AskedService(seed).run()
        #expect(story.isEmpty, "seed \(seed): \(story.joined(separator: "\n"))")
    }
}
