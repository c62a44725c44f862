import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// A server is restored while a device has applied some slices of a difference, and so has rows of the lost
/// history beyond its own revision.
@Suite("Coming back to a restored server between two slices")
struct SlicedHistoryTests {
    private static let isAhead = SyncCoder.encode(
        Problem(status: 409, kind: "revisionAhead", detail: "The device is ahead."))

    /// Makes a difference with players.
    private static func players(
        _ numbers: ClosedRange<Int64>, at revision: Revision
    ) -> ChangeSet {
        let entries = numbers.map {
            RecordEntry(
                id: .integer($0), revision: revision, attributes: ["name": .text("P\($0)")])
        }
        return DeviceFixture.difference(
            revision, TypeChanges(name: "players", update: entries.map(\.id), entries: entries))
    }

    /// Stops a device when some of the players 1 to 9 of revision 9 are in its tables.
    private static func slice(_ world: NodeFixture) throws {
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(sent.exchange, 9, [players(1...9, at: 9)])
        #expect(try world.device.rows("SELECT id FROM players") != [])
        #expect(try world.device.store.slicedUpTo == 9)
        _ = world.node.stop()
    }

    /// Starts an exchange after the staged rows, which the server does not have any more.
    /// - Returns: The next request.
    private static func refuse(_ world: NodeFixture) throws -> (exchange: Int, request: SyncRequest)
    {
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        #expect(sent.request.maxRevision == 9)
        let told = world.handle(
            .answered(exchange: sent.exchange, status: 409, body: isAhead, retryAfter: nil))
        return try #require(try told.sent)
    }

    /// Answers with the state of the restored server, which has player 3.
    private static func expectRestored(_ world: NodeFixture, _ exchange: Int) throws {
        var told = try world.answer(exchange, 5, [players(3...3, at: 5)])
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            told = world.handle(.applyNext(exchange: exchange))
        }
        #expect(told.error == nil)
        #expect(try world.device.store.revision == 5)
        #expect(try world.device.store.slicedUpTo == nil)
        #expect(try world.device.store.standing.rejoining == nil)
        #expect(try world.device.rows("SELECT id, name FROM players") == [[3, "P3"]])
    }

    @Test("a new device keeps no row of the lost history")
    func newDevice() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        try Self.slice(world)
        let next = try Self.refuse(world)
        #expect(next.request.maxRevision == 0 && next.request.wantsRows)
        try Self.expectRestored(world, next.exchange)
    }

    @Test(
        "a new device keeps no row of the lost history, if the next answer is lost and it starts again"
    )
    func lostAnswer() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        try Self.slice(world)
        let lost = try Self.refuse(world)
        _ = world.handle(.failed(exchange: lost.exchange, SyncError(.offline, "lost")))
        _ = world.node.stop()
        try world.device.reopen()
        let again = NodeFixture(world.device) {
            $0.sliceRecords = 2
            $0.usesSnapshots = true
        }
        let next = try #require(try again.handle(.wake(isUrgent: true)).sent)
        #expect(next.request.maxRevision == 0 && next.request.wantsRows)
        try Self.expectRestored(again, next.exchange)
    }

    @Test("a device between two entries of an answer goes back no further than these")
    func betweenEntries() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 1 }
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let teams: [ChangeSet] = [2, 3, 4].map {
            .entry($0, .created("teams", $0, at: $0, ["name": "Falcons"]))
        }
        _ = try world.answer(first.exchange, 4, teams)
        #expect(try world.device.store.revision == 2)
        _ = world.node.stop()
        try Self.slice(world)
        let probe = try Self.refuse(world)
        #expect(probe.request.maxRevision == 4 && probe.request.lineage == "l4")
        let next = try #require(try world.answer(probe.exchange, 5).sent)
        #expect(next.request.maxRevision == 0 && next.request.goal == 2)
        try Self.expectRestored(world, next.exchange)
    }

    @Test("a device at a revision that both histories share keeps no row of the lost one")
    func sharedRevision() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        let first = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(
            first.exchange, 2,
            [.entry(2, .created("teams", 1, at: 2, ["name": "Falcons"]))])
        #expect(try world.device.store.revision == 2)
        try Self.slice(world)
        let probe = try Self.refuse(world)
        #expect(probe.request.maxRevision == 2 && probe.request.lineage == "l2")
        let told = try world.answer(probe.exchange, 5)
        let next = try #require(try told.sent)
        #expect(next.request.maxRevision == 0 && next.request.wantsRows)
        #expect(try world.device.store.standing.rejoining == 2)
        try Self.expectRestored(world, next.exchange)
        #expect(try world.device.rows("SELECT id FROM teams") == [])
    }
}
