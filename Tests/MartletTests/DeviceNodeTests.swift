import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Device node")
struct DeviceNodeTests {
    private func node(
        _ device: DeviceFixture, _ change: (inout DeviceNode.Options) -> Void = { _ in }
    ) -> DeviceNode {
        var options = DeviceNode.Options()
        change(&options)
        return DeviceNode(store: device.store, options: options)
    }

    private func sent(_ actions: [DeviceNode.Action]) throws -> (exchange: Int, SyncRequest)? {
        for action in actions {
            if case .send(let exchange, let body) = action {
                return (exchange, try SyncCoder.decodeRequest(body))
            }
        }
        return nil
    }

    private func timer(_ actions: [DeviceNode.Action]) -> (number: Int, milliseconds: Int64)? {
        for case .setTimer(let number, let milliseconds) in actions {
            return (number, milliseconds)
        }
        return nil
    }

    private func error(_ actions: [DeviceNode.Action]) -> SyncError? {
        for case .notify(.failed(let error, _)) in actions { return error }
        return nil
    }

    private func body(
        _ revision: Revision, more: Bool = false, _ sets: [ChangeSet] = []
    ) throws -> [UInt8] {
        var answer = SyncAnswer(maxRevision: revision, more: more, changeSets: sets)
        answer.dataSet = "d"
        answer.lineage = "l\(revision)"
        return try SyncCoder.encode(answer)
    }

    private func problem(_ status: Int, _ kind: String) -> [UInt8] {
        SyncCoder.encode(Problem(status: status, kind: kind, detail: "Because."))
    }

    @Test("an exchange carries who it is, how far it is, and what is queued")
    func request() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let sent = try sent(node(device).handle(.wake(isUrgent: true), now: 5))
        let request = try #require(sent).1
        #expect(request.clientID == (try device.store.clientID))
        #expect(request.maxRevision == 0)
        #expect(request.acknowledged == 0)
        #expect(request.changeSets.map(\.sequence) == [1])
        #expect(request.schema == device.store.local.schema.fingerprint)
    }

    @Test("one exchange at a time: waking during it means another afterwards")
    func oneAtATime() throws {
        let device = try DeviceFixture()
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        #expect(node.handle(.wake(isUrgent: true), now: 6).isEmpty)
        let next = node.handle(
            .answered(exchange: first.exchange, status: 200, body: try body(0), retryAfter: nil),
            now: 7)
        #expect(try sent(next) != nil)
    }

    @Test("a lost answer is followed by the same bytes, after a growing wait")
    func lostAnswer() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let node = node(device) { $0.backoff.first = 1_000 }
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let failed = node.handle(
            .failed(exchange: first.exchange, SyncError(.offline, "cut")), now: 6)
        #expect(error(failed)?.kind == .offline)
        let wait = try #require(timer(failed))
        #expect((250...1_000).contains(wait.milliseconds))
        #expect(node.handle(.wake(isUrgent: false), now: 7).isEmpty)
        let second = try #require(try sent(node.handle(.timer(wait.number), now: 2_000)))
        #expect(second.1.changeSets == first.1.changeSets)
        // The answer to the first try is nobody's any more.
        #expect(
            node.handle(
                .answered(
                    exchange: first.exchange, status: 200, body: try body(0), retryAfter: nil),
                now: 2_001
            ).isEmpty)
    }

    @Test("an exchange without an answer fails by its own timer")
    func timeout() throws {
        let device = try DeviceFixture()
        let node = node(device)
        let actions = node.handle(.wake(isUrgent: true), now: 5)
        let failed = node.handle(.timer(try #require(timer(actions)).number), now: 200_000)
        #expect(error(failed)?.kind == .offline)
    }

    @Test(
        "errors that waiting does not mend stop the exchanges until someone acts",
        arguments: [
            (401, "unauthorized", SyncError.Kind.unauthorized),
            (409, "wrongDataSet", .wrongDataSet), (409, "lineage", .wrongDataSet),
            (400, "versionUnsupported", .versionUnsupported), (400, "malformed", .rejected),
            (403, "tooManyDevices", .tooManyDevices), (403, "clientBound", .wrongUser),
        ])
    func halted(status: Int, kind: String, expected: SyncError.Kind) throws {
        let device = try DeviceFixture()
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let actions = node.handle(
            .answered(
                exchange: first.exchange, status: status, body: problem(status, kind),
                retryAfter: nil), now: 6)
        #expect(error(actions)?.kind == expected)
        for case .notify(.failed(_, let wait)) in actions { #expect(wait == nil) }
        if status == 403 { #expect(error(actions)?.remedy == .signIn) }
        #expect(try sent(node.handle(.wake(isUrgent: false), now: 7)) == nil)
        #expect(try sent(node.handle(.wake(isUrgent: true), now: 8)) != nil)
    }

    @Test("a busy server is given the time it asks for")
    func busyServerSetsTime() throws {
        let device = try DeviceFixture()
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let actions = node.handle(
            .answered(
                exchange: first.exchange, status: 503, body: problem(503, "busy"), retryAfter: 30),
            now: 6)
        #expect(try #require(timer(actions)).milliseconds >= 30_000)
    }

    @Test(
        "the wait for a part of a snapshot is another program's for ten minutes at most",
        arguments: [(.offline, 600_000), (.busy, 86_400_000)] as [(SyncError.Kind, Int64)])
    func waitForPart(kind: SyncError.Kind, milliseconds: Int64) throws {
        let node = node(try DeviceFixture())
        node.parts = .fetching(1)
        let actions = node.handle(
            .partFailed(1, SyncError(kind, "No."), retryAfter: 90_000), now: 5)
        guard case .setPartTimer(_, milliseconds)? = actions.last else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test("a file whose name another file uses takes a new name and goes on")
    func renewed() throws {
        let device = try DeviceFixture()
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let actions = node.handle(
            .answered(
                exchange: first.exchange, status: 409, body: problem(409, "identityReused"),
                retryAfter: nil), now: 6)
        let second = try #require(try sent(actions))
        #expect(second.1.clientID != first.1.clientID)
    }

    @Test("a new name confirms once more what the device has removed, if its user sees a part")
    func renewedReceipt() throws {
        let device = try DeviceFixture()
        for view: Int64? in [nil, 7] {
            try device.store.changeStanding { $0.view = view }
            try device.store.renewIdentity()
            #expect(try (device.store.standing.receipt?.view) == view)
        }
    }

    @Test(
        "a device that is told for ever to start over waits between its tries",
        arguments: ["identityReused", "revisionAhead", "lineage"])
    func beginnings(kind: String) throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))], reaching: 1)
        let node = node(device)
        var actions = node.handle(.wake(isUrgent: true), now: 5)
        var count = 0
        while let next = try sent(actions), count < 50 {
            count += 1
            actions = node.handle(
                .answered(
                    exchange: next.exchange, status: 409, body: problem(409, kind), retryAfter: nil),
                now: 6)
        }
        #expect(count < 20)
        #expect(error(actions)?.kind == (count == 1 ? .wrongDataSet : .offline))
        let pause = try #require(timer(actions))
        #expect(pause.milliseconds > 0)
        // The server itself may say so afterwards: the device starts over once more.
        guard kind == "identityReused" else { return }
        let name = try device.store.clientID
        let again = try #require(
            try sent(node.handle(.timer(pause.number), now: pause.milliseconds + 7)))
        let next = node.handle(
            .answered(
                exchange: again.exchange, status: 409, body: problem(409, kind), retryAfter: nil),
            now: pause.milliseconds + 8)
        #expect(try sent(next) != nil)
        #expect(try device.store.clientID != name)
    }

    @Test("an object of another program is no answer, and what is queued stays")
    func otherObject() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let actions = node.handle(
            .answered(
                exchange: first.exchange, status: 200, body: Array(#"{"error":"login"}"#.utf8),
                retryAfter: nil), now: 6)
        #expect(error(actions)?.kind == .offline)
        #expect(try device.store.outboxCount == 1)
    }

    @Test("while there is more, nothing is sent up; then the queue goes")
    func more() throws {
        let device = try DeviceFixture()
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let second = try #require(
            try sent(
                node.handle(
                    .answered(
                        exchange: first.exchange, status: 200,
                        body: try body(
                            1, more: true, [.entry(1, .created("teams", 9, at: 1, ["name": "A"]))]),
                        retryAfter: nil), now: 6)))
        #expect(second.1.maxRevision == 1)
        #expect(second.1.lineage == "l1")
        #expect(second.1.changeSets.isEmpty)
        let third = try #require(
            try sent(
                node.handle(
                    .answered(
                        exchange: second.exchange, status: 200, body: try body(1), retryAfter: nil),
                    now: 7)))
        #expect(third.1.changeSets.count == 1)
    }

    @Test("a big answer is applied in slices, each at its own revision")
    func slices() throws {
        let device = try DeviceFixture()
        let node = node(device) { $0.sliceRecords = 2 }
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let sets = (1...5).map { revision in
            ChangeSet.entry(
                revision, .created("teams", 10 + revision, at: revision, ["name": "T"]))
        }
        var actions = node.handle(
            .answered(
                exchange: first.exchange, status: 200, body: try body(5, sets), retryAfter: nil),
            now: 6)
        var revisions: [Revision] = []
        while true {
            for case .notify(.applied(_, let revision)) in actions { revisions.append(revision) }
            // A person's save goes in between.
            try device.write { try $0.insert("teams", ["name": "Mine \(revisions.count)"]) }
            guard
                actions.contains(where: { if case .applyNext = $0 { true } else { false } })
            else { break }
            actions = node.handle(.applyNext(exchange: first.exchange), now: 7)
        }
        #expect(revisions == [2, 4, 5])
        #expect(try device.store.outboxCount == 3)
        #expect(try device.rows("SELECT count(*) FROM teams WHERE id > 0") == [[5]])
    }

    @Test("a server that leaves a set without a verdict is not asked again at once")
    func unanswered() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let actions = node.handle(
            .answered(exchange: first.exchange, status: 200, body: try body(0), retryAfter: nil),
            now: 6)
        #expect(error(actions)?.kind == .violation)
        #expect(try sent(actions) == nil)
        #expect(timer(actions) != nil)
        #expect(try device.store.outboxCount == 1)
    }

    @Test("an answer of another data set changes nothing")
    func otherDataSet() throws {
        let device = try DeviceFixture()
        let node = node(device)
        try device.apply([], reaching: 0)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 3_000)))
        var answer = SyncAnswer(
            maxRevision: 1, changeSets: [.entry(1, .created("teams", 9, at: 1, ["name": "A"]))])
        answer.dataSet = "other"
        let actions = node.handle(
            .answered(
                exchange: first.exchange, status: 200, body: try SyncCoder.encode(answer),
                retryAfter: nil), now: 3_001)
        #expect(error(actions)?.kind == .wrongDataSet)
        #expect(try device.store.revision == 0)
    }

    @Test("another process on the same file waits for its turn")
    func lease() throws {
        let device = try DeviceFixture()
        let other = try DeviceStore(path: device.path, script: nil, randomBits: { 7 })
        let first = node(device)
        let second = DeviceNode(store: other)
        #expect(try sent(first.handle(.wake(isUrgent: true), now: 5)) != nil)
        let actions = second.handle(.wake(isUrgent: true), now: 6)
        #expect(try sent(actions) == nil)
        #expect(timer(actions) != nil)
        // The first process died; its lease ends.
        let later = second.handle(.timer(try #require(timer(actions)).number), now: 1_000_000)
        #expect(try sent(later) != nil)
        // Should the first come back, its answer is not applied.
        let late = first.handle(
            .answered(
                exchange: 1, status: 200,
                body: try body(1, [.entry(1, .created("teams", 9, at: 1, ["name": "A"]))]),
                retryAfter: nil), now: 1_000_001)
        #expect(error(late)?.kind == .busy)
        #expect(try device.store.revision == 0)
    }

    @Test("a process that died in mid-exchange holds nobody up")
    func leaseOfTheDead() throws {
        let device = try DeviceFixture()
        let first = node(device) { $0.ownerPrefix = "dead-" }
        #expect(try sent(first.handle(.wake(isUrgent: true), now: 5)) != nil)
        let other = try DeviceStore(path: device.path, script: nil, randomBits: { 7 })
        var options = DeviceNode.Options()
        options.isOwnerGone = { $0.hasPrefix("dead-") }
        #expect(
            try sent(
                DeviceNode(store: other, options: options).handle(.wake(isUrgent: true), now: 6))
                != nil)
    }

    @Test("this process lives, its earlier life and a number without a process do not")
    func ownersOfLeases() {
        let own = LeaseOwner.prefix + "x"
        #expect(!LeaseOwner.isGone(own))
        let number = own.split(separator: "-")[1]
        #expect(LeaseOwner.isGone("process-\(number)-1-x"))
        #expect(LeaseOwner.isGone("process-2147483646-1-x"))
        #expect(!LeaseOwner.isGone("process-1-1-x") || number == "1")
        #expect(!LeaseOwner.isGone("anything else"))
    }

    @Test("a failed exchange lets another process have its turn at once", arguments: [401, 503])
    func leaseEnds(status: Int) throws {
        let device = try DeviceFixture()
        let other = try DeviceStore(path: device.path, script: nil, randomBits: { 7 })
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        _ = node.handle(
            .answered(
                exchange: first.exchange, status: status, body: problem(status, "busy"),
                retryAfter: nil), now: 6)
        let second = DeviceNode(store: other)
        #expect(try sent(second.handle(.wake(isUrgent: true), now: 7)) != nil)
    }

    @Test("an answer that is not JSON is not applied and asked for again")
    func garbage() throws {
        let device = try DeviceFixture()
        let node = node(device)
        let first = try #require(try sent(node.handle(.wake(isUrgent: true), now: 5)))
        let actions = node.handle(
            .answered(
                exchange: first.exchange, status: 200, body: Array("<html>".utf8), retryAfter: nil),
            now: 6)
        #expect(error(actions)?.kind == .offline)
        #expect(timer(actions) != nil)
    }

    @Test("the wait grows to its bound and keeps its jitter")
    func backoff() {
        let backoff = Backoff()
        #expect((1...40).allSatisfy { backoff.wait(failures: $0, random: .max) <= 900_000 })
        #expect(backoff.wait(failures: 1, random: 0) == 125)
        #expect(backoff.wait(failures: 4, random: 0) == 125)
        // A device that has waited long does not ask after a short wait.
        #expect(backoff.wait(failures: 40, random: 0) == 300_000)
        #expect(Backoff.milliseconds(askedFor: 99_999_999_999) == 86_400_000)
        #expect(Backoff.milliseconds(askedFor: 86_400, byServer: false) == 600_000)
        #expect(Backoff.milliseconds(askedFor: -5, byServer: false) == 0)
        #expect(Set((0..<50).map { backoff.wait(failures: 9, random: $0 * 977) }).count > 40)
    }

    @Test(
        "timestamps",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ])
    func timestamps(milliseconds: Int64, text: String) {
        #expect(Timestamp.rfc3339(milliseconds: milliseconds) == text)
    }
}
