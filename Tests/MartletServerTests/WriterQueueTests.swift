import Dispatch
import MartletModel
import MartletProtocol
import Synchronization
import Testing
import Waiting

@testable import MartletServer

/// A request of the queue's tests: it carries sets and may depend on others.
struct QueuedItem: QueuedRequest {
    var name: String
    var sets = 1
    var needs: [String] = []
    var party = "somebody"

    var setCount: Int { sets }
    var identifiers: [String] { [name] }
    var dependencies: [String] { needs }
}

/// A writer that notes its batches, and can be held up in the first, or in that with a request of a name.
final class NotingWriter: BatchWriter {
    let batches = Mutex<[[String]]>([])
    let decided = Mutex<Set<String>>([])
    let hold = DispatchSemaphore(value: 0)
    let isHeld: Mutex<Bool>
    let heldAt = Mutex<String?>(nil)
    /// What is done in the background; returns whether there is more.
    private let step: @Sendable (NotingWriter) -> Bool

    init(isHeld: Bool = false, step: @escaping @Sendable (NotingWriter) -> Bool = { _ in false }) {
        self.isHeld = Mutex(isHeld)
        self.step = step
    }

    func undecided(_ identifiers: [String]) -> [String] {
        let decided = decided.withLock { $0 }
        return identifiers.filter { !decided.contains($0) }
    }

    func stepInBackground() -> Bool { step(self) }

    func write(_ items: [QueuedItem]) -> [Result<String, Problem>] {
        batches.withLock { $0.append(items.map(\.name)) }
        let waits = isHeld.withLock { held in
            defer { held = false }
            return held
        }
        let name = heldAt.withLock(\.self)
        if waits || items.contains(where: { $0.name == name }) { hold.wait() }
        decided.withLock { $0.formUnion(items.map(\.name)) }
        return items.map { .success($0.name) }
    }

    func queue(_ limits: WriterQueue<NotingWriter>.Limits = .init()) -> WriterQueue<NotingWriter> {
        WriterQueue(to: self, on: DispatchQueue(label: "writer"), limits: limits)
    }
}

private typealias Item = QueuedItem
private typealias Writer = NotingWriter

@Suite("Writer queue", .timeLimit(.minutes(5)))
struct WriterQueueTests {
    private func name(_ verdict: WriterQueue<Writer>.Response) -> String {
        switch verdict {
        case .success(let name): name
        case .failure(let problem): problem.kind
        }
    }

    /// Submits one after the other, so that their order is known, while the writer is held up.
    private func submit(
        _ items: [Item], to queue: WriterQueue<Writer>, of writer: Writer
    ) async throws -> [Task<String, Never>] {
        var tasks: [Task<String, Never>] = []
        for item in items {
            let depth = queue.depth
            tasks.append(Task { name(await queue.submit(item)) })
            let isFirst = tasks.count == 1
            try await waitUntil("“\(item.name)” is in the queue") {
                isFirst ? writer.batches.withLock { !$0.isEmpty } : queue.depth != depth
            }
        }
        return tasks
    }

    @Test("commits in one batch what came while the writer was busy, up to 32 sets")
    func grouping() async throws {
        let writer = Writer(isHeld: true)
        let queue = writer.queue()
        let items = (0..<40).map { Item(name: "\($0)") }
        let tasks = try await submit(items, to: queue, of: writer)
        writer.hold.signal()
        for (task, item) in zip(tasks, items) { #expect(await task.value == item.name) }
        let batches = writer.batches.withLock { $0 }
        #expect(batches.map(\.count) == [1, 32, 7])
        #expect(batches.flatMap { $0 } == items.map(\.name))
    }

    @Test("keeps the sets of one request together, however many")
    func together() async throws {
        let writer = Writer(isHeld: true)
        let queue = writer.queue()
        let tasks = try await submit(
            [
                Item(name: "first"), Item(name: "a", sets: 30), Item(name: "b", sets: 3),
                Item(name: "c", sets: 100), Item(name: "d", sets: 0),
            ], to: queue, of: writer)
        writer.hold.signal()
        for task in tasks { _ = await task.value }
        #expect(writer.batches.withLock { $0 } == [["first"], ["a"], ["b"], ["c"], ["d"]])
    }

    @Test("has parties take turns, and gives none of them the whole queue")
    func turns() async throws {
        let writer = Writer(isHeld: true)
        var limits = WriterQueue<Writer>.Limits()
        limits.waitingRequestsOfParty = 4
        limits.waitingSetsOfParty = 100
        let queue = writer.queue(limits)
        let greedy = ["first", "a", "b", "c", "d"].map { Item(name: $0, sets: 20) }
        let others = [
            Item(name: "e", sets: 20, party: "another"), Item(name: "f", sets: 20, party: "third"),
            Item(name: "g", sets: 20, party: "another"),
        ]
        let tasks = try await submit(greedy + others, to: queue, of: writer)
        #expect(name(await queue.submit(Item(name: "h"))) == "busy")
        let large = Task {
            name(await queue.submit(Item(name: "i", sets: 101, party: "fourth")))
        }
        try await waitUntil("“i” is in the queue") { queue.depth == 8 }
        let refused = name(await queue.submit(Item(name: "j", party: "fourth")))
        #expect(refused == "busy")
        writer.hold.signal()
        for task in tasks + [large] { #expect(await task.value != "busy") }
        #expect(
            writer.batches.withLock { $0.flatMap(\.self) } == [
                "first", "a", "e", "f", "i", "b", "g", "c", "d",
            ])
    }

    @Test("lets go of each request as its turn comes, while others of its party wait")
    func release() {
        final class Body {}
        var turns = PartyTurns<Body>()
        weak var first: Body?
        do {
            let body = Body()
            first = body
            turns.append(body, of: "a")
        }
        turns.append(Body(), of: "a")
        #expect(first != nil && turns.count == 2)
        turns.removeFirst()
        #expect(first == nil && turns.count == 1 && turns.first != nil)
    }

    @Test("refuses with busy what would wait behind too much, and takes more later")
    func bound() async throws {
        let writer = Writer(isHeld: true)
        var limits = WriterQueue<Writer>.Limits()
        limits.waitingRequests = 2
        let queue = writer.queue(limits)
        let tasks = try await submit(
            [Item(name: "a"), Item(name: "b"), Item(name: "c")], to: queue, of: writer)
        #expect(name(await queue.submit(Item(name: "d"))) == "busy")
        writer.hold.signal()
        for task in tasks { _ = await task.value }
        #expect(name(await queue.submit(Item(name: "e"))) == "e")
    }

    @Test("lets a request wait for the set it depends on, and nothing else wait for it")
    func dependencyWaitsAlone() async throws {
        let writer = Writer()
        var limits = WriterQueue<Writer>.Limits()
        limits.dependencyWait = .seconds(600)
        let queue = writer.queue(limits)
        let late = Task { name(await queue.submit(Item(name: "late", needs: ["early"]))) }
        try await waitUntil("the late one waits") { queue.depth == 1 }
        #expect(name(await queue.submit(Item(name: "other"))) == "other")
        #expect(name(await queue.submit(Item(name: "early"))) == "early")
        #expect(await late.value == "late")
        #expect(writer.batches.withLock { $0 } == [["other"], ["early"], ["late"]])
        // Decided already: no wait at all.
        #expect(name(await queue.submit(Item(name: "later", needs: ["early"]))) == "later")
    }

    @Test("a set that never comes is waited for so long and no longer")
    func dependencyThatNeverComes() async {
        let writer = Writer()
        var limits = WriterQueue<Writer>.Limits()
        limits.dependencyWait = .milliseconds(30)
        let queue = writer.queue(limits)
        #expect(name(await queue.submit(Item(name: "a", needs: ["never"]))) == "a")
        #expect(queue.depth == 0)
    }

    @Test("in one batch a later request may depend on an earlier one")
    func dependencyInBatch() async throws {
        let writer = Writer(isHeld: true)
        var limits = WriterQueue<Writer>.Limits()
        limits.dependencyWait = .seconds(600)
        let queue = writer.queue(limits)
        let tasks = try await submit(
            [
                Item(name: "first"), Item(name: "before", needs: ["base"]), Item(name: "base"),
                Item(name: "after", needs: ["base"]),
            ], to: queue, of: writer)
        writer.hold.signal()
        for task in tasks { _ = await task.value }
        #expect(writer.batches.withLock { $0 } == [["first"], ["base", "after"], ["before"]])
    }

    @Test("what waits for other sets keeps out nobody, and nobody waits with too many")
    func tooManyParked() async throws {
        let writer = Writer()
        var limits = WriterQueue<Writer>.Limits()
        limits.waitingRequests = 2
        limits.deferredRequests = 4
        limits.deferredRequestsOfParty = 3
        limits.dependencyWait = .seconds(600)
        let queue = writer.queue(limits)
        var parked: [Task<String, Never>] = []
        for (name, party) in [("a", "mallory"), ("b", "mallory"), ("c", "mallory"), ("d", "eve")] {
            parked.append(
                Task { self.name(await queue.submit(Item(name: name, needs: ["x"], party: party))) }
            )
            let count = parked.count
            try await waitUntil("“\(name)” is deferred") { queue.depth == count }
        }
        // Four requests wait, more than may wait for the writer; others are written all the same.
        #expect(name(await queue.submit(Item(name: "e"))) == "e")
        // A fourth request of the same party does not wait, and neither does a fifth in all.
        #expect(name(await queue.submit(Item(name: "f", needs: ["x"], party: "mallory"))) == "f")
        #expect(name(await queue.submit(Item(name: "g", needs: ["x"], party: "bob"))) == "g")
        #expect(name(await queue.submit(Item(name: "x"))) == "x")
        for (task, expected) in zip(parked, ["a", "b", "c", "d"]) {
            #expect(await task.value == expected)
        }
        // Requests that have waited no longer count.
        let again = Task {
            name(await queue.submit(Item(name: "h", needs: ["y"], party: "mallory")))
        }
        try await waitUntil("“h” is deferred") { queue.depth == 1 }
        #expect(name(await queue.submit(Item(name: "y"))) == "y")
        #expect(await again.value == "h")
        await queue.stop()
    }

    @Test("stop gives everything accepted its verdict and refuses the rest")
    func stop() async throws {
        let writer = Writer(isHeld: true)
        let queue = writer.queue()
        let tasks = try await submit(
            [Item(name: "a"), Item(name: "b"), Item(name: "c", needs: ["never"])], to: queue,
            of: writer)
        async let stopped: Void = queue.stop()
        writer.hold.signal()
        await stopped
        for (task, expected) in zip(tasks, ["a", "b", "c"]) {
            #expect(await task.value == expected)
        }
        #expect(name(await queue.submit(Item(name: "d"))) == "busy")
        await queue.stop()
    }

    @Test("what nobody waits for is done in steps once all is done, one before the next request")
    func rest() async {
        let steps = Mutex<[Int]>([])
        let (done, finish) = AsyncStream<Void>.makeStream()
        let writer = Writer { writer in
            // How many batches were before each step.
            let count = steps.withLock { steps in
                steps.append(writer.batches.withLock { $0.count })
                return steps.count
            }
            if count == 3 { finish.finish() }
            return count < 3
        }
        let queue = writer.queue()
        #expect(steps.withLock { $0.isEmpty })
        _ = await queue.submit(Item(name: "a"))
        for await _ in done {}
        #expect(steps.withLock { $0 } == [1, 1, 1])
        await queue.stop()
    }
}
