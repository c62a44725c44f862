import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("How a stream ends, and what is done before the next")
struct StreamEndTests {
    private let world: NodeFixture

    init() throws {
        world = NodeFixture(try .withTeams()) {
            $0.backoff.first = 1_000
            $0.backoff.longest = .max
        }
    }

    private func batch(_ from: Revision, _ next: Revision) -> [UInt8] {
        SyncCoder.encode(
            .batch(from, next, [.upsert(next, "teams", "1", #"{"name":"Hawks"}"#)]))
    }

    /// Ends a stream, and lets the pause after it run out.
    private func end(_ stream: Int, inBatch: Bool) throws -> NodeFixture.Told {
        let told = world.handle(
            .streamEnded(
                stream, status: nil, message: "cut", retryAfter: nil, inBatch: inBatch))
        return world.handle(.timer(try #require(told.streamTimer).number))
    }

    @Test("a batch that does not get through is fetched by an exchange, behind which it goes on")
    func stuck() throws {
        let told = try end(try world.goLive(), inBatch: true)
        #expect(told.opened == nil)
        let sent = try #require(try told.sent)
        #expect(sent.request.maxRevision == 2)
        let answer = try world.answer(
            sent.exchange, 3, [.entry(3, .updated("teams", 1, at: 3, ["name": "Hawks"]))])
        #expect(answer.opened?.cursor.since == 3)
    }

    @Test("where a batch came whole before, or none had begun, the stream is opened again at once")
    func cutBetweenBatches() throws {
        let first = try world.goLive()
        _ = world.handle(.streamed(first, batch(2, 3)))
        let again = try end(first, inBatch: true)
        #expect(try again.sent == nil)
        let second = try #require(again.opened)
        #expect(second.cursor.since == 3)
        _ = world.handle(.streamOpened(second.number))
        let third = try end(second.number, inBatch: false)
        #expect(try third.sent == nil)
        #expect(third.opened?.cursor.since == 3)
    }

    @Test("a stream whose pause ends during an exchange is opened behind it, once")
    func during() throws {
        let stream = try world.goLive()
        let ended = world.handle(
            .streamEnded(stream, status: nil, message: "cut", retryAfter: nil))
        let sent = try #require(try world.handle(.wake(isUrgent: false)).sent)
        #expect(world.handle(.timer(try #require(ended.streamTimer).number)).isEmpty)
        let answer = try world.answer(
            sent.exchange, 3, [.entry(3, .updated("teams", 1, at: 3, ["name": "Hawks"]))])
        #expect(answer.opened?.cursor.since == 3)
    }

    @Test("one that was there for a while and brought nothing is no failure in a row")
    func steady() throws {
        var stream = try world.goLive()
        // The waits by now are of days; that one is short by chance is out of the question.
        for _ in 0..<21 { stream = try reopened(stream, after: 59_999) }
        let last = world.handle(
            .streamEnded(stream, status: nil, message: "cut", retryAfter: nil))
        #expect(try #require(last.streamTimer).milliseconds > 1_000)
        let pause = try #require(last.streamTimer).number
        stream = try #require(world.handle(.timer(pause)).opened).number
        _ = world.handle(.streamOpened(stream))
        world.now += 60_000
        let ended = world.handle(
            .streamEnded(stream, status: nil, message: "cut", retryAfter: nil))
        #expect(try #require(ended.streamTimer).milliseconds <= 1_000)
    }

    /// The stream after the one that ended some milliseconds after it came about.
    private func reopened(_ stream: Int, after age: Int64) throws -> Int {
        world.now += age
        let told = try end(stream, inBatch: false)
        let next = try #require(told.opened).number
        _ = world.handle(.streamOpened(next))
        return next
    }

    @Test(
        "a server that has no such stream, or no word the device asks with, is asked much later",
        arguments: [400, 404, 405, 406, 501])
    func lacking(status: Int) throws {
        let stream = try world.goLive()
        let told = world.handle(
            .streamEnded(stream, status: status, message: "no", retryAfter: nil))
        #expect(try #require(told.streamTimer).milliseconds >= 600_000)
        #expect(told.error == nil)
    }

    @Test(
        "only the server's own 403 or 409 has a device ask by an exchange why",
        arguments: [403, 409])
    func forbidden(status: Int) throws {
        for problem in [
            Problem.unrecognized(status: status),
            Problem(status: status, kind: "clientBound", detail: "another's"),
        ] {
            let world = NodeFixture(try .withTeams())
            let told = world.handle(
                .streamEnded(
                    try world.goLive(), status: status, message: "no", problem: problem,
                    retryAfter: nil))
            #expect((try told.sent != nil) == problem.isOfServer)
            #expect(told.streamTimer != nil)
        }
    }

    @Test("a device that takes a new name listens under it")
    func renamedDevice() throws {
        let stream = try world.goLive()
        let old = try world.device.store.clientID
        try world.device.write { try $0.insert("teams", ["name": "Owls"]) }
        let sent = try #require(try world.handle(.wake(isUrgent: false)).sent)
        let told = world.handle(
            .answered(
                exchange: sent.exchange, status: 409,
                body: SyncCoder.encode(
                    Problem(status: 409, kind: "identityReused", detail: "a copy")),
                retryAfter: nil))
        #expect(told.closed == stream)
        let again = try #require(try told.sent)
        #expect(again.request.clientID != old)
        let own = try #require(again.request.changeSets[0].identifier)
        let answer = try world.answer(
            again.exchange, 3,
            [
                .entry(
                    3, own: own,
                    .created("teams", 9, old: -2, at: 3, ["name": "Owls"]))
            ])
        #expect(answer.opened?.cursor.clientID == again.request.clientID)
    }
}
