import MartletModel
import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// A device that is told that it may have records of another view begins again.
@Suite("A device that gets another view")
struct OtherViewTests {
    private static let otherView = SyncCoder.encode(
        Problem(status: 409, kind: "view", detail: "The device may have records of another view."))

    /// Makes a difference with new players.
    private static func players(_ numbers: ClosedRange<Int64>) -> ChangeSet {
        let entries = numbers.map {
            RecordEntry(id: .integer($0), revision: 9, attributes: ["name": .text("P\($0)")])
        }
        return DeviceFixture.difference(
            9, TypeChanges(name: "players", update: entries.map(\.id), entries: entries))
    }

    @Test("keeps no row of the former one, if the first answer after that is lost")
    func lostAnswer() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(first.exchange, 9, [Self.players(1...9)])
        // It stops when some rows of its first answer are in its tables.
        #expect(try world.device.store.revision == 0)
        #expect(try world.device.rows("SELECT id FROM players") != [])
        _ = world.node.stop()

        let second = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let refused = world.handle(
            .answered(
                exchange: second.exchange, status: 409, body: Self.otherView, retryAfter: nil))
        let third = try #require(try refused.sent)
        _ = world.handle(.failed(exchange: third.exchange, SyncError(.offline, "lost")))

        let fourth = try #require(try world.handle(.wake(isUrgent: true)).sent)
        var told = try world.answer(fourth.exchange, 9, [Self.players(3...3)])
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            told = world.handle(.applyNext(exchange: fourth.exchange))
        }
        #expect(told.error == nil)
        #expect(try world.device.store.revision == 9)
        #expect(try world.device.rows("SELECT id, name FROM players") == [[3, "P3"]])
    }

    @Test("keeps no row of the former one, if it has slices beyond its revision and is stopped")
    func slicesBeyondRevision() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let team = ChangeSet.entry(2, .created("teams", 1, at: 2, ["name": "Falcons"]))
        _ = try world.answer(first.exchange, 2, [team])
        let second = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(second.exchange, 9, [Self.players(1...9)])
        #expect(try world.device.store.revision == 2 && world.device.store.slicedUpTo == 9)
        _ = world.node.stop()

        let third = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let refused = world.handle(
            .answered(
                exchange: third.exchange, status: 409, body: Self.otherView, retryAfter: nil))
        let lost = try #require(try refused.sent)
        _ = world.handle(.failed(exchange: lost.exchange, SyncError(.offline, "lost")))
        _ = world.node.stop()

        // It asks first whether the server still has its history.
        let probe = try #require(try world.handle(.wake(isUrgent: true)).sent)
        #expect(probe.request.maxRevision == 2 && probe.request.lineage == "l2")
        let next = try #require(try world.answer(probe.exchange, 9).sent)
        #expect(next.request.maxRevision == 0 && next.request.wantsRows)
        let standing = try world.device.store.standing
        #expect(standing.rejoining == 2 && standing.isForView)
        var told = try world.answer(next.exchange, 9, [Self.players(3...3)])
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            told = world.handle(.applyNext(exchange: next.exchange))
        }
        #expect(told.error == nil)
        #expect(try world.device.rows("SELECT id, name FROM players") == [[3, "P3"]])
        #expect(try world.device.rows("SELECT id FROM teams") == [])
    }

    private static let otherHistory = SyncCoder.encode(
        Problem(status: 409, kind: "lineage", detail: "The device has another history."))

    private static func team(_ number: Int64, at revision: Revision) -> ChangeSet {
        .entry(revision, .created("teams", number, at: revision, ["name": "Falcons"]))
    }

    private func refuse(
        _ world: NodeFixture, _ exchange: Int, _ body: [UInt8]
    ) throws -> (exchange: Int, request: SyncRequest) {
        let told = world.handle(
            .answered(exchange: exchange, status: 409, body: body, retryAfter: nil))
        return try #require(try told.sent)
    }

    /// Gives a device rows beyond its revision, tells it of another view, and stops it before the next
    /// answer.
    /// - Returns: Its next request.
    private func stopSliced(
        _ world: NodeFixture, _ verdicts: [ChangeSet] = []
    ) throws -> (exchange: Int, request: SyncRequest) {
        let asked = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(asked.exchange, 9, [Self.players(1...9)] + verdicts)
        #expect(try world.device.store.slicedUpTo == 9)
        _ = world.node.stop()
        let second = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let lost = try refuse(world, second.exchange, Self.otherView)
        #expect(lost.request.maxRevision == 0)
        _ = world.handle(.failed(exchange: lost.exchange, SyncError(.offline, "lost")))
        _ = world.node.stop()
        return try #require(try world.handle(.wake(isUrgent: true)).sent)
    }

    @Test(
        "keeps its history if it has an answer only in part, unless the server was restored",
        arguments: [false, true])
    func betweenEntries(isRestored: Bool) throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 1 }
        let store = world.device.store
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(first.exchange, 2, [Self.team(1, at: 2)])
        // It stops after the first of two entries, and its user changes that record.
        let second = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(second.exchange, 5, [Self.team(2, at: 3), Self.team(3, at: 5)])
        #expect(try store.revision == 3 && store.standing.lineage == nil)
        _ = world.node.stop()
        try world.device.write { try $0.update("teams", .integer(2), ["city": "Bergen"]) }
        let own = try store.queuedIdentifiers()
        let verdict = ChangeSet.entry(7, own: own[0])

        let probe = try stopSliced(world, [verdict])
        #expect(probe.request.maxRevision == 5 && probe.request.lineage == "l5")
        guard !isRestored else {
            let older = try refuse(world, probe.exchange, Self.otherHistory)
            #expect(older.request.maxRevision == 2 && older.request.lineage == "l2")
            _ = try refuse(world, older.exchange, Self.otherView)
            #expect(try store.standing.rejoining == 2 && !store.standing.isForView)
            return
        }
        let all = try refuse(world, probe.exchange, Self.otherView)
        #expect(all.request.maxRevision == 0 && all.request.goal == 3)
        #expect(try store.standing.rejoining == 3 && store.standing.isForView)
        let rest = try #require(
            try world.answer(all.exchange, 9, [Self.players(3...3)]).sent)
        #expect(rest.request.changeSets.map(\.identifier) == own)
        var told = try world.answer(rest.exchange, 9, [verdict])
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            told = world.handle(.applyNext(exchange: rest.exchange))
        }
        #expect(told.error == nil)
        #expect(try store.outboxCount == 0 && store.parked().isEmpty)
        #expect(try world.device.rows("SELECT id FROM players") == [[3]])
    }

    @Test("asks first for the newest revision of its history, also if the stream brought it there")
    func afterStream() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        let store = world.device.store
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(first.exchange, 2, [Self.team(1, at: 2)])
        let batch = DeltaBatch(from: 2, deltas: [], nextVersion: 4, dataSet: "d", lineage: "l4")
        _ = try store.apply(batch, now: 3_000)
        let probe = try stopSliced(world)
        #expect(probe.request.maxRevision == 4 && probe.request.lineage == "l4")
        _ = try refuse(world, probe.exchange, Self.otherView)
        #expect(try store.standing.rejoining == 4 && store.standing.isForView)
    }

    @Test("goes on with what it found out of a restored server, and of the view")
    func restoredMeanwhile() throws {
        let world = NodeFixture(try DeviceFixture())
        let store = world.device.store
        for revision: Revision in [2, 4] {
            let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
            _ = try world.answer(sent.exchange, revision, [Self.team(revision, at: revision)])
        }
        var sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        sent = try refuse(world, sent.exchange, Self.otherView)
        #expect(sent.request.maxRevision == 0 && sent.request.goal == 4)
        // This is not about the device's own revision, which the request does not name.
        sent = try refuse(world, sent.exchange, Self.otherHistory)
        #expect(sent.request.maxRevision == 4 && sent.request.lineage == "l4")
        sent = try refuse(world, sent.exchange, Self.otherHistory)
        #expect(sent.request.maxRevision == 2 && sent.request.lineage == "l2")
        sent = try #require(try world.answer(sent.exchange, 6).sent)
        #expect(try store.standing.rejoining == 2 && !store.standing.isForView)
        sent = try #require(
            try world.answer(sent.exchange, 9, more: true, [Self.players(1...2)]).sent)
        #expect(sent.request.maxRevision == 9)
        sent = try refuse(world, sent.exchange, Self.otherView)
        #expect(sent.request.maxRevision == 0 && sent.request.goal == 2)
        #expect(try store.standing.rejoining == 2 && !store.standing.isForView)
    }

    private struct Stopped: Error {}

    @Test("does not send sets again that the server has, if it was emptied between two revisions")
    func emptied() throws {
        let world = try SmallWorld("view-emptied")
        let mine = try world.device()
        try mine.write { try $0.insert("teams", ["name": "First"]) }
        try mine.sync(with: world.server)
        mine.pace.sliceRecords = 1
        mine.isAlone = true
        mine.close()
        try mine.open()
        for number in 2...3 {
            try mine.write { try $0.insert("teams", ["name": .text("Team \(number)")]) }
        }
        let own = try mine.store.queuedIdentifiers()
        #expect(own.count == 2)
        // The server confirms both. The device stops after the first, at a revision without a hash.
        #expect(throws: Stopped.self) {
            try mine.sync(with: world.server) {
                if try $0.revision == 2 { throw Stopped() }
            }
        }
        #expect(try mine.store.standing.lineage == nil)
        try mine.beginRefetching()
        #expect(try mine.store.standing.refetching?.goal == 2)
        #expect(try mine.store.standing.former?.revision == 3)

        var sent: [String] = []
        var isFirst = true
        try mine.sync { body in
            sent += try SyncCoder.decodeRequest(body).changeSets.compactMap(\.identifier)
            guard isFirst else { return try world.server.answer(body) }
            isFirst = false
            return (409, Self.otherView)
        }
        #expect(mine.errors.isEmpty)
        #expect(sent == [own[1]])
        #expect(try mine.store.outboxCount == 0 && mine.store.parked().isEmpty)
        let names = try mine.store.local.rows("SELECT name FROM teams ORDER BY id")
        #expect(names.map(\.values) == [["First"], ["Team 2"], ["Team 3"]])
    }

    @Test(
        "after a restore keeps no value of lost or hidden records, but its user's words",
        arguments: [0, 7])
    func restored(formerView: Int64) throws {
        let world = try SmallWorld("view-restored-\(formerView)")
        let (mine, other) = (try world.device(), try world.device())
        let backup = try world.restoredServer()
        try other.write { try $0.insert("teams", ["name": "Secret", "city": "Nuuk"]) }
        try other.sync(with: world.server)
        func sync(with server: SmallServer, in view: Int64) throws {
            try mine.sync { body in
                let (status, bytes) = try server.answer(body)
                guard status == 200 else { return (status, bytes) }
                var answer = try SyncCoder.decodeAnswer(bytes)
                answer.view = view
                return (status, try SyncCoder.encode(answer))
            }
        }
        try sync(with: world.server, in: formerView)
        // Somebody else changes the record first, so a person has to decide on the edit.
        try mine.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try other.write { try $0.update("teams", .integer(1), ["name": "Secret again"]) }
        try other.sync(with: world.server)
        try sync(with: world.server, in: formerView)
        #expect(try mine.store.parked().count == 1)
        let bases = "SELECT count(*) FROM martlet_parked_changes WHERE base IS NOT NULL"
        #expect(try mine.connection().integer(bases) == 1)
        try sync(with: backup, in: 7)
        #expect(mine.errors.isEmpty)
        #expect(try mine.connection().integer("SELECT count(*) FROM teams") == 0)
        #expect(try mine.connection().integer(bases) == 0)
        let kept = try mine.store.parked().map { "\($0)" }.joined()
        #expect(kept.contains("Mine") && !kept.contains("Secret") && !kept.contains("Nuuk"))
    }

    @Test("names the revision that it has to reach, until it may send")
    func goal() throws {
        let world = try SmallWorld("view-goal")
        let mine = try world.device()
        for number in 1...3 {
            try mine.write { try $0.insert("teams", ["name": .text("Team \(number)")]) }
            try mine.sync(with: world.server)
        }
        var goals: [Revision?] = []
        try mine.sync { body in
            goals.append(try SyncCoder.decodeRequest(body).goal)
            return goals.count == 1 ? (409, Self.otherView) : try world.server.answer(body)
        }
        try mine.write { try $0.insert("teams", ["name": "Last"]) }
        try mine.sync { body in
            goals.append(try SyncCoder.decodeRequest(body).goal)
            return try world.server.answer(body)
        }
        #expect(goals.first == .some(nil) && goals.dropFirst().first == .some(3))
        #expect(goals.last == .some(nil))
        #expect(mine.errors.isEmpty)
    }

    @Test("asks for the shared history again, after a wait, if the server was restored")
    func restoredAgain() throws {
        let world = NodeFixture(try DeviceFixture())
        for revision: Revision in 1...2 {
            let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
            let team = ChangeSet.entry(
                revision, .created("teams", revision, at: revision, ["name": "Falcons"]))
            _ = try world.answer(sent.exchange, revision, [team])
        }
        let asked = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let refused = world.handle(
            .answered(
                exchange: asked.exchange, status: 409, body: Self.otherView, retryAfter: nil))
        let next = try #require(try refused.sent)
        #expect(next.request.goal == 2)
        let told = try world.answer(next.exchange, 1, [Self.players(1...1)])
        #expect(told.error?.kind == .busy)
        #expect(try told.sent == nil)
        #expect(try world.device.rows("SELECT id FROM teams ORDER BY id") == [[1], [2]])
        // It asks first whether the server has its history.
        let again = try #require(try world.handle(.wake(isUrgent: true)).sent)
        #expect(again.request.maxRevision == 2 && again.request.lineage == "l2")
    }

    @Test("keeps the sets that are newer than the history it asks for, if it was emptied before")
    func wholeAgain() throws {
        let world = try SmallWorld("view-whole-again")
        let (mine, other) = (try world.device(), try world.device())
        try mine.write { try $0.insert("teams", ["name": "First"]) }
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        for number in 2...4 {
            try other.write { try $0.insert("teams", ["name": .text("Team \(number)")]) }
            try other.sync(with: world.server)
        }
        mine.isAlone = true
        try mine.beginRefetching()
        // It stops when it is whole again, before it asks for its former history once more.
        #expect(throws: Stopped.self) {
            try mine.sync { body in
                if try mine.store.revision == 2 { throw Stopped() }
                return try world.server.answer(body)
            }
        }
        mine.close()
        try mine.open()
        #expect(try mine.store.standing.former?.revision == 1)
        let found = try mine.connection().integer("SELECT id FROM teams WHERE name = 'Team 2'")
        let id = try #require(found)
        try mine.write {
            try $0.update("teams", .integer(id), ["city": "Bergen"])
            try $0.insert("players", ["name": "Kim", "team_id": .integer(id)])
        }

        var asked: [Revision] = []
        try mine.sync { body in
            asked.append(try SyncCoder.decodeRequest(body).maxRevision)
            return asked.count == 1 ? (409, Self.otherView) : try world.server.answer(body)
        }
        #expect(mine.errors.isEmpty)
        #expect(asked.prefix(2) == [1, 2])
        #expect(try mine.store.outboxCount == 0 && mine.store.parked().isEmpty)
        try other.sync(with: world.server)
        let cities = try other.store.local.rows("SELECT city FROM teams WHERE name = 'Team 2'")
        #expect(cities.map(\.values) == [["Bergen"]])
    }

    @Test("waits before it leaves a snapshot once more, if the rows in its place cannot be applied")
    func leavesSnapshot() throws {
        let lazy = try LazyWorld("view-part-gone")
        try lazy.sync()
        let store = try lazy.mine.store
        let node = DeviceNode(store: store)
        var listed = try #require(lazy.mine.snapshot?.manifest)
        listed.view = 7
        var events = [DeviceNode.Event.wake(isUrgent: true)]
        var (requests, waits) = (0, 0)
        // The server has no part of the snapshot any more, and its rows are not in order.
        while let event = events.popLast(), requests < 100 {
            for action in node.handle(event, now: 5_000) {
                switch action {
                case .send(let exchange, let body):
                    requests += 1
                    let asked = try SyncCoder.decodeRequest(body)
                    var answer = SyncAnswer(maxRevision: asked.goal ?? asked.maxRevision)
                    (answer.dataSet, answer.lineage) = (try store.dataSet, asked.lineage)
                    if asked.maxRevision == 0 {
                        answer.changeSets = [ChangeSet(), ChangeSet()].map {
                            var set = $0
                            set.revision = 9
                            return set
                        }
                    }
                    events.append(
                        .answered(
                            exchange: exchange, status: 200, body: try SyncCoder.encode(answer),
                            retryAfter: nil))
                case .applyNext(let exchange): events.append(.applyNext(exchange: exchange))
                case .fetchPart(let number, _, _):
                    events.append(.partGone(number, newest: listed))
                case .setPartTimer: waits += 1
                default: break
                }
            }
        }
        #expect(requests < 20)
        #expect(waits == 1)
        #expect(try store.isSeeding)
    }
}
