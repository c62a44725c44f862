import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests requests that the server, or a proxy in front of it, refuses for their size.
@Suite("Answered 413")
struct TooLargeRequestTests {
    private static func refuse(_ world: NodeFixture, _ exchange: Int) -> NodeFixture.Told {
        let problem = Problem(status: 413, kind: "tooLarge", detail: "The body is too large.")
        return world.handle(
            .answered(
                exchange: exchange, status: 413, body: SyncCoder.encode(problem), retryAfter: nil))
    }

    @Test("a set that is too large alone is parked once the server is known not to have it")
    func parked() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "large"]) }
        try device.write { try $0.update("teams", .integer(1), ["city": "on top"]) }
        try device.write { try $0.update("teams", .integer(2), ["name": "other"]) }
        let world = NodeFixture(device) { $0.isLive = false }
        var sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        // The request is halved until one set goes alone.
        while sent.request.changeSets.count > 1 {
            sent = try #require(try Self.refuse(world, sent.exchange).sent)
        }
        let large = try #require(sent.request.changeSets.first?.identifier)
        sent = try #require(try Self.refuse(world, sent.exchange).sent)
        #expect(sent.request.changeSets.isEmpty)
        sent = try #require(try world.answer(sent.exchange, 2).sent)
        #expect(sent.request.changeSets.map(\.identifier) == [large])
        let told = Self.refuse(world, sent.exchange)
        #expect(told.error == nil)
        let parked = try device.store.parked()
        #expect(parked.map(\.reason) == [.invalid])
        #expect(parked[0].message.contains("as large as this save"))
        #expect(
            try device.rows("SELECT name, city FROM teams WHERE id = 1") == [["Falcons", "Bergen"]])
        // The rest continues: the sets that were sent get verdicts of their own.
        sent = try #require(try told.sent)
        let next = try #require(sent.request.changeSets.first)
        #expect(next.types[0].entries[0].attributes == ["city": "on top"])
        let answered = try world.answer(
            sent.exchange, 3,
            [.entry(3, own: next.identifier, .updated("teams", 1, at: 3, ["city": "on top"]))])
        #expect(
            try answered.sent?.request.changeSets.map { $0.types[0].update } == [[.integer(2)]])
    }

    @Test("a set that the server has after all is settled by the pull, and not parked")
    func accepted() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.update("teams", .integer(1), ["name": "large"]) }
        let world = NodeFixture(device) { $0.isLive = false }
        var sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let set = try #require(sent.request.changeSets.first)
        sent = try #require(try Self.refuse(world, sent.exchange).sent)
        _ = try world.answer(
            sent.exchange, 3,
            [.entry(3, own: set.identifier, .updated("teams", 1, at: 3, ["name": "large"]))])
        #expect(try device.store.parkedCount == 0)
        #expect(try device.store.outboxCount == 0)
    }

    @Test("a request without sets that is too large stops the device: it cannot get smaller")
    func pull() throws {
        let world = NodeFixture(try DeviceFixture.withTeams()) { $0.isLive = false }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        #expect(Self.refuse(world, sent.exchange).error?.kind == .rejected)
    }

    @Test("what may be saved can be sent: a set of the largest size fits into a request's body")
    func limitsOfSavedSets() {
        #expect(Limits.savedSetBytes < Limits.requestBytes)
        #expect(Limits.requestBytes - Limits.savedSetBytes >= 64 << 10)
        #expect(Limits.uploadBytes <= Limits.savedSetBytes)
    }
}
