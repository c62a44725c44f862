import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("The stream, seen from the device")
struct StreamTests {
    private func batch(_ from: Revision, _ next: Revision, _ deltas: [Delta]) -> [UInt8] {
        SyncCoder.encode(.batch(from, next, deltas))
    }

    @Test("it is opened once the device is up to date, where it is, under its name")
    func opens() throws {
        let world = NodeFixture(try .withTeams())
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let told = try world.answer(sent.exchange, 2)
        let cursor = try #require(told.opened).cursor
        #expect(
            cursor
                == DeltaCursor(
                    since: 2, clientID: try world.device.store.clientID, dataSet: "d",
                    lineage: "l2"))
        #expect(world.handle(.streamOpened(try #require(told.opened).number)).isLive == true)
    }

    @Test("batches are applied as they come; nothing is asked for")
    func streams() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let told = world.handle(
            .streamed(stream, batch(2, 3, [.upsert(3, "teams", "1", #"{"name":"Hawks"}"#)])))
        #expect(told.streamed == 3)
        #expect(try told.sent == nil)
        #expect(try world.device.rows("SELECT name FROM teams WHERE id = 1") == [["Hawks"]])
    }

    @Test("what an earlier stream brings is not taken")
    func stale() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let ended = world.handle(
            .streamEnded(stream, status: nil, message: "cut", retryAfter: nil))
        #expect(ended.isLive == false)
        let again = world.handle(.timer(try #require(ended.streamTimer).number))
        #expect(again.opened?.cursor.since == 2)
        let late = batch(2, 3, [.delete(3, "teams", "1")])
        #expect(world.handle(.streamed(stream, late)).isEmpty)
        #expect(try world.device.store.revision == 2)
    }

    @Test("a gap is fetched by an exchange")
    func gap() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let told = world.handle(.streamed(stream, batch(5, 6, [.delete(6, "teams", "1")])))
        #expect(try told.sent?.request.maxRevision == 2)
    }

    @Test("a stream that says the device is behind makes it exchange, and then goes on")
    func behind() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        var told = DeltaBatch.batch(2, 2, [])
        told.isBehind = true
        let sent = try #require(
            try world.handle(.streamed(stream, SyncCoder.encode(told))).sent)
        #expect(sent.request.maxRevision == 2)
        let rows = DeviceFixture.difference(9, .updated("teams", 1, at: 8, ["name": "Hawks"]))
        #expect(try world.answer(sent.exchange, 9, [rows]).error == nil)
        let next = batch(9, 10, [.upsert(10, "teams", "1", #"{"name":"Kites"}"#)])
        #expect(world.handle(.streamed(stream, next)).streamed == 10)
    }

    @Test(
        "an exchange that does not get where the stream goes on is not the last: another server answered",
        arguments: [true, false])
    func goesOn(isGap: Bool) throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        var told = DeltaBatch.batch(2, 2, [])
        told.isBehind = true
        told.goesOn = 9
        let bytes = isGap ? batch(8, 9, [.delete(9, "teams", "7")]) : SyncCoder.encode(told)
        var sent = try #require(try world.handle(.streamed(stream, bytes)).sent)
        for reached: Revision in [2, 7] {
            let short = try world.answer(sent.exchange, reached)
            #expect(short.error == nil && short.closed == nil)
            let wait = try #require(short.timer)
            sent = try #require(try world.handle(.timer(wait.number)).sent)
            #expect(sent.request.maxRevision == reached)
        }
        let there = try world.answer(sent.exchange, 9)
        #expect(there.timer == nil && world.node.isIdle)
        let next = batch(9, 10, [.upsert(10, "teams", "1", #"{"name":"Kites"}"#)])
        #expect(world.handle(.streamed(stream, next)).streamed == 10)
    }

    @Test("who has what it is told to fetch asks for nothing")
    func isThere() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        var told = DeltaBatch.batch(1, 1, [])
        told.isBehind = true
        told.goesOn = 2
        #expect(world.handle(.streamed(stream, SyncCoder.encode(told))).isEmpty)
        #expect(world.node.isIdle)
    }

    private func isLate(_ told: NodeFixture.Told) -> Bool? {
        for case .notify(.late(let isLate)) in told.actions { return isLate }
        return nil
    }

    @Test("what a proxy holds back is asked for beside it, as long as signs of life come late")
    func heldBack() throws {
        let world = NodeFixture(try .withTeams())
        let begin = world.now
        let stream = try world.goLive()
        #expect(world.node.setPollInterval(60_000).isEmpty)
        // A slow beginning is no reason.
        world.now = begin + 19_000
        #expect(world.handle(.streamSign(stream, elapsed: 15_000)).isEmpty)
        world.now = begin + 60_000
        let late = world.handle(.streamSign(stream, elapsed: 30_000))
        #expect(isLate(late) == true)
        #expect(late.timer?.milliseconds == 60_000)
        #expect(!world.node.isStreaming)
        let poll = try #require(late.timer)
        #expect(try world.handle(.timer(poll.number)).sent != nil)
        // What comes is taken all the same.
        let next = batch(2, 3, [.upsert(3, "teams", "1", #"{"name":"Kites"}"#)])
        #expect(world.handle(.streamed(stream, next)).streamed == 3)
        var elapsed: Int64 = 60_000
        for isLast in [false, false, false, true] {
            elapsed += 15_000
            world.now = begin + elapsed + 1_000
            let sign = world.handle(.streamSign(stream, elapsed: elapsed))
            #expect(isLate(sign) == (isLast ? false : nil))
        }
        #expect(world.node.isStreaming)
    }

    @Test("a clock that was moved holds nothing back for long")
    func movedClock() throws {
        let world = NodeFixture(try .withTeams()) { $0.pollInterval = 60_000 }
        let begin = world.now
        let stream = try world.goLive()
        // An hour back: later signs are measured by that clock.
        world.now = begin - 3_600_000
        #expect(world.handle(.streamSign(stream, elapsed: 15_000)).isEmpty)
        // And an hour forth: another connection is tried ten minutes later.
        world.now = begin + 30_000
        #expect(isLate(world.handle(.streamSign(stream, elapsed: 30_000))) == true)
        world.now = begin + 630_000
        let again = world.handle(.streamSign(stream, elapsed: 630_000))
        #expect(again.closed == stream)
        let timer = try #require(again.streamTimer)
        #expect(world.handle(.timer(timer.number)).opened != nil)
    }

    @Test(
        "nothing is polled while the stream is open, and polling goes on when it ends; at once if it brought nothing",
        arguments: [true, false])
    func polling(hasSign: Bool) throws {
        let world = NodeFixture(try .withTeams()) { $0.pollInterval = 9_000 }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let told = try world.answer(sent.exchange, 2)
        let poll = try #require(told.timer)
        #expect(poll.milliseconds == 9_000)
        let stream = try #require(told.opened).number
        _ = world.handle(.streamOpened(stream))
        #expect(world.handle(.timer(poll.number)).isEmpty)
        if hasSign { _ = world.handle(.streamSign(stream, elapsed: 0)) }
        let ended = world.handle(
            .streamEnded(stream, status: nil, message: "cut", retryAfter: nil))
        guard hasSign else {
            #expect(try ended.sent != nil)
            return
        }
        #expect(ended.timer?.milliseconds == 9_000)
        let next = world.handle(.timer(try #require(ended.timer).number))
        #expect(try next.sent != nil)
    }

    @Test("a save between polls is sent at once")
    func saveBetweenPolls() throws {
        let world = NodeFixture(try .withTeams()) {
            $0.pollInterval = 9_000
            $0.isLive = false
        }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(sent.exchange, 2)
        try world.device.write { try $0.insert("teams", ["name": "Owls"]) }
        #expect(try world.handle(.wake(isUrgent: false)).sent?.request.changeSets.count == 1)
    }

    @Test("a receipt that came over the stream is not missed in the answer")
    func receipt() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        try world.device.write { try $0.insert("teams", ["name": "Owls"]) }
        let sent = try #require(try world.handle(.wake(isUrgent: false)).sent)
        let own = try #require(sent.request.changeSets[0].identifier)
        _ = world.handle(
            .streamed(
                stream,
                batch(
                    2, 3,
                    [.upsert(3, "teams", "30", #"{"name":"Owls"}"#, isNew: true, own: own, old: -2)]
                )))
        let told = try world.answer(sent.exchange, 3)
        #expect(told.error == nil)
        #expect(try world.device.store.outboxCount == 0)
        #expect(world.node.isIdle)
    }

    @Test("an unauthorised stream stops the device; one the server lacks is tried again much later")
    func ends() throws {
        let world = NodeFixture(try .withTeams())
        let first = try world.goLive()
        let lacking = world.handle(
            .streamEnded(first, status: 501, message: "none", retryAfter: nil))
        #expect(lacking.error == nil)
        #expect(try #require(lacking.streamTimer).milliseconds >= 600_000)
        let retry = try #require(lacking.streamTimer).number
        let second = try #require(world.handle(.timer(retry)).opened)
        let told = world.handle(
            .streamEnded(
                second.number, status: 401, message: "revoked",
                problem: Problem(status: 401, kind: "unauthorized", detail: "revoked"),
                retryAfter: nil))
        #expect(told.error?.kind == .unauthorized)
        #expect(told.streamTimer == nil)
        #expect(try world.handle(.wake(isUrgent: false)).sent == nil)
    }

    @Test("it can be turned off and on")
    func toggles() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        #expect(NodeFixture.Told(world.node.setLive(false, now: 1)).closed == stream)
        #expect(
            world.handle(.streamed(stream, batch(2, 3, [.delete(3, "teams", "1")]))).isEmpty)
        #expect(NodeFixture.Told(world.node.setLive(true, now: 1)).opened?.cursor.since == 2)
    }
}

@Suite("What cannot be applied")
struct PoisonTests {
    /// A team without a name, which the table refuses.
    private let poison = SyncCoder.encode(
        .batch(2, 3, [.upsert(3, "teams", "9", #"{"city":"Rome"}"#, isNew: true)]))

    private var entry: ChangeSet {
        .entry(3, .created("teams", 9, at: 3, ["city": "Rome"]))
    }

    @Test("is fetched once more, then as rows; the row is quarantined and the device goes on")
    func poisoned() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let first = world.handle(.streamed(stream, poison))
        #expect(first.error?.message.contains("teams 9 at revision 3") == true)
        let again = try #require(try first.sent)
        #expect(!again.request.wantsRows)
        let second = try world.answer(again.exchange, 3, [entry])
        let asRows = try #require(try second.sent)
        #expect(asRows.request.wantsRows)
        #expect(asRows.request.maxRevision == 2)
        let rows = DeviceFixture.difference(3, .updated("teams", 9, at: 3, ["city": "Rome"]))
        let third = try world.answer(asRows.exchange, 3, [rows])
        #expect(third.error == nil)
        #expect(try world.device.store.revision == 3)
        #expect(try world.device.store.quarantined().map(\.id) == [.integer(9)])
        // Then it is in step again, over the same stream.
        let next = SyncCoder.encode(
            .batch(3, 4, [.upsert(4, "teams", "1", #"{"name":"Hawks"}"#)]))
        #expect(world.handle(.streamed(stream, next)).streamed == 4)
        try world.device.write { try $0.insert("teams", ["name": "Owls"]) }
        #expect(try world.handle(.wake(isUrgent: false)).sent?.request.wantsRows == false)
    }

    @Test("an answer that cannot be read is fetched as rows as well")
    func defective() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        var sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let damaged = Array(
            """
            {"maxRevision":3,"dataSet":"d","lineage":"l3",
             "changeSets":[{"revision":3,"types":["teams"]}]}
            """.utf8)
        for _ in 0..<2 {
            let told = world.handle(
                .answered(exchange: sent.exchange, status: 200, body: damaged, retryAfter: nil))
            sent = try #require(try told.sent)
        }
        #expect(sent.request.wantsRows)
    }

    @Test("rows that cannot be read either are waited for")
    func hopeless() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        var sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let damaged = Array(
            #"{"maxRevision":3,"dataSet":"d","changeSets":[{"types":["teams"]}]}"#.utf8)
        var told = NodeFixture.Told([])
        for attempt in 0..<3 {
            told = world.handle(
                .answered(exchange: sent.exchange, status: 200, body: damaged, retryAfter: nil))
            if attempt < 2 { sent = try #require(try told.sent) }
        }
        #expect(try told.sent == nil)
        #expect(try #require(told.timer).milliseconds > 0)
        #expect(try world.device.store.revision == 2)
    }

    @Test("a difference in parts asks on from where it is, and for own fates with the last")
    func parts() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        try world.device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        let lost = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let own = try #require(lost.request.changeSets[0].identifier)
        // The answer says there is more: the device fetches first and sends afterwards.
        let part = DeviceFixture.difference(5, .updated("teams", 2, at: 5, ["name": "Owls"]))
        let more = try world.answer(lost.exchange, 5, more: true, [part])
        let second = try #require(try more.sent)
        #expect(second.request.maxRevision == 5)
        #expect(second.request.wantsRows)
        #expect(second.request.changeSets.isEmpty)
        let last = DeviceFixture.difference(8, .updated("teams", 1, at: 7, ["name": "Theirs"]))
        let asks = try #require(try world.answer(second.exchange, 8, [last]).sent)
        #expect(asks.request.maxRevision == 8)
        #expect(!asks.request.wantsRows)
        #expect(asks.request.changeSets.map(\.identifier) == [own])
        #expect(try world.device.store.revision == 2)
        var told = try world.answer(
            asks.exchange, 8, [.entry(4, own: own, .updated("teams", 1, at: 4, ["name": "Mine"]))])
        // One piece follows another, then the rest with the verdict.
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            #expect(try world.device.store.revision == 2)
            #expect(try world.device.store.outboxCount == 1)
            told = world.handle(.applyNext(exchange: asks.exchange))
        }
        #expect(told.error == nil)
        #expect(try world.device.store.revision == 8)
        #expect(try world.device.store.outboxCount == 0)
        #expect(
            try world.device.rows("SELECT name FROM teams ORDER BY id") == [["Theirs"], ["Owls"]])
    }

    @Test("a difference waits for the fates of all that was sent, asked for in several requests")
    func fates() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        try world.device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try world.device.write { try $0.insert("teams", ["name": "New"]) }
        let lost = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let own = lost.request.changeSets.compactMap(\.identifier)
        #expect(own.count == 2)
        _ = world.handle(.failed(exchange: lost.exchange, SyncError(.offline, "cut")))
        // From now on a request has room for one set.
        world.node.uploadBytes = 1
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        #expect(first.request.changeSets.map(\.identifier) == [own[0]])
        // Row 7 is what the second set made; the device does not know yet.
        let rows = DeviceFixture.difference(8, .updated("teams", 7, at: 6, ["name": "New"]))
        let told = try world.answer(
            first.exchange, 8, [rows, .refusal(own[0], .stale)])
        let second = try #require(try told.sent)
        #expect(try world.device.store.revision == 2)
        #expect(second.request.maxRevision == 8)
        #expect(second.request.changeSets.map(\.identifier) == [own[1]])
        let end = try world.answer(
            second.exchange, 8,
            [.entry(6, own: own[1], .created("teams", 7, old: -2, at: 6, ["name": "New"]))])
        #expect(end.error == nil)
        #expect(try world.device.store.revision == 8)
        #expect(try world.device.store.outboxCount == 0)
        #expect(try world.device.store.parked().map(\.identifier) == [own[0]])
        #expect(
            try world.device.rows("SELECT id, name FROM teams ORDER BY id")
                == [[1, "Falcons"], [2, "Ravens"], [7, "New"]])
    }

    @Test("a set the server says nothing of is not asked about at once, again and again")
    func silent() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        try world.device.write { try $0.update("teams", .integer(1), ["name": "Mine"]) }
        try world.device.write { try $0.update("teams", .integer(2), ["name": "Mine"]) }
        let lost = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = world.handle(.failed(exchange: lost.exchange, SyncError(.offline, "cut")))
        world.node.uploadBytes = 1
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let told = try world.answer(
            sent.exchange, 8,
            [DeviceFixture.difference(8, .updated("teams", 2, at: 8, ["name": "Owls"]))])
        #expect(told.error?.kind == .violation)
        #expect(try told.sent == nil)
        #expect(told.timer != nil)
    }
}

@Suite("Handlers of entity types")
struct EntityHandlerTests {
    /// Notes what it is told in a table of its own.
    private struct Noting: EntityHandler {
        func take(_ change: RemoteChange, in context: RemoteContext) throws {
            try context.rows(
                "INSERT INTO log VALUES (?, ?, ?)",
                [
                    .text(change.type), .text("\(change.id)"), .text(change.kind.rawValue),
                ])
            if change.attributes["name"] == .text("bad") { throw FixtureError.changed }
        }
    }

    private func device() throws -> DeviceFixture {
        let device = try DeviceFixture.withTeams()
        try device.shell("CREATE TABLE log(type TEXT, id TEXT, kind TEXT)")
        device.store.registry["teams"] = Noting()
        device.store.registry["weather"] = Noting()
        return device
    }

    @Test("hear of every change in its transaction, with and without a table")
    func told() throws {
        let device = try device()
        try device.take(
            .batch(
                2, 3,
                [
                    .upsert(3, "teams", "9", #"{"name":"Owls"}"#, isNew: true),
                    .upsert(3, "teams", "1", #"{"name":"Hawks"}"#),
                    .upsert(3, "weather", "oslo", #"{"sky":"clear"}"#, isNew: true),
                    .delete(3, "teams", "2"),
                ]))
        #expect(
            try device.rows("SELECT * FROM log ORDER BY type, id")
                == [
                    ["teams", "1", "part"], ["teams", "2", "deleted"], ["teams", "9", "whole"],
                    ["weather", "oslo", "whole"],
                ])
        #expect(try device.rows("SELECT count(*) FROM martlet_aside") == [[0]])
        #expect(try device.rows("SELECT name FROM teams ORDER BY id") == [["Hawks"], ["Owls"]])
    }

    @Test("one that fails rolls the batch back, and is named")
    func fails() throws {
        let device = try device()
        let error = #expect(throws: StoreError.self) {
            try device.take(.batch(2, 3, [.upsert(3, "teams", "1", #"{"name":"bad"}"#)]))
        }
        #expect(error?.message.contains("handler of teams") == true)
        #expect(try device.rows("SELECT count(*) FROM log") == [[0]])
        #expect(try device.store.revision == 2)
    }
}
