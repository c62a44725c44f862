import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

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
        expectText(
            try world.device.text(),
            """
            at 3, lineage l3
            teams 1 @3: name "Hawks", city "Bergen"
            teams 2 @2: name "Ravens"
            """)
    }

    @Test("what an earlier stream brings is not taken")
    func staleStream() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let ended = world.handle(
            .streamEnded(stream, status: nil, message: "cut", retryAfter: nil))
        #expect(ended.isLive == false)
        let again = world.handle(.timer(try #require(ended.streamTimer).number))
        #expect(again.opened?.cursor.since == 2)
        let late = batch(2, 3, [.delete(3, "teams", "1")])
        let before = try world.device.text()
        #expect(world.handle(.streamed(stream, late)).isEmpty)
        expectText(try world.device.text(), before)
    }

    @Test("a gap is fetched by an exchange")
    func gap() throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        let told = world.handle(.streamed(stream, batch(5, 6, [.delete(6, "teams", "1")])))
        #expect(try told.sent?.request.maxRevision == 2)
    }

    @Test("a stream that says the device is behind makes it exchange, and then goes on")
    func behindOnStream() throws {
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
        expectText(
            try world.device.text(),
            """
            at 3, lineage l3
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            teams 30 @3: name "Owls"
            receipt 1: accepted at 3
            teams -2 is 30
            """)
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
