import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

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
        expectText(
            try world.device.text(),
            """
            at 3, lineage l3
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            quarantine teams 9 @3: city "Rome"
            """)
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
    func partsOfDifferenceAskOn() throws {
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
        expectText(
            try world.device.text(),
            """
            at 2, lineage l2
            staged up to 8
            staged parts: 2
            teams 1 @1: name "Mine", city "Bergen"
            teams 2 @2: name "Ravens"
            base teams 1 @1: name "Falcons", city "Bergen"
            queued 1 (sent) update teams 1 @1: name "Mine"
            """)
        var told = try world.answer(
            asks.exchange, 8, [.entry(4, own: own, .updated("teams", 1, at: 4, ["name": "Mine"]))])
        // One piece follows another, then the rest with the verdict.
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            #expect(try world.device.store.revision == 2)
            #expect(try world.device.store.outboxCount == 1)
            told = world.handle(.applyNext(exchange: asks.exchange))
        }
        #expect(told.error == nil)
        expectText(
            try world.device.text(),
            """
            at 8, lineage l8
            teams 1 @7: name "Theirs"
            teams 2 @5: name "Owls"
            receipt 1: accepted at 4
            """)
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
        expectText(
            try world.device.text(),
            """
            at 2, lineage l2
            staged up to 8
            staged parts: 2
            teams -2: name "New", city "Oslo"
            teams 1 @1: name "Mine", city "Bergen"
            teams 2 @2: name "Ravens"
            base teams -2 @0
            base teams 1 @1: name "Falcons", city "Bergen"
            queued 1 (sent) update teams 1 @1: name "Mine"
            queued 2 (sent) create teams -2 @0: name "New", city "Oslo"
            """)
        #expect(second.request.maxRevision == 8)
        #expect(second.request.changeSets.map(\.identifier) == [own[1]])
        let end = try world.answer(
            second.exchange, 8,
            [.entry(6, own: own[1], .created("teams", 7, old: -2, at: 6, ["name": "New"]))])
        #expect(end.error == nil)
        expectText(
            try world.device.text(),
            """
            at 8, lineage l8
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            teams 7 @6: name "New"
            parked 1: stale
            parked 1: update teams 1 @1: name "Mine"
            parked 1: base of teams 1: name "Falcons", city "Bergen"
            parked 1: theirs of teams 1: name "Falcons", city "Bergen"
            receipt 1: refused, stale
            receipt 2: accepted at 6
            teams -2 is 7
            """)
    }

    @Test("a set the server says nothing of is not asked about at once, again and again")
    func silentServerOnSet() throws {
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
