import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests how a device treats answers of other programs, and a slow line.
@Suite("A device at the end of a bad network")
struct NetworkTests {
    private func answered(
        _ world: NodeFixture, _ exchange: Int, _ status: Int, _ body: String,
        retryAfter: Int64? = nil
    ) -> NodeFixture.Told {
        world.handle(
            .answered(
                exchange: exchange, status: status, body: [UInt8](body.utf8),
                retryAfter: retryAfter))
    }

    private func retryIn(_ told: NodeFixture.Told) -> Int64? {
        for case .notify(.failed(_, let wait)) in told.actions { return wait }
        return nil
    }

    @Test(
        "is not stopped by what somebody between says, whatever it is",
        arguments: [
            200, 202, 204, 206, 301, 302, 303, 304, 307, 400, 401, 402, 403, 404, 405, 407, 408,
            409,
            410, 413, 421, 425, 429, 451, 500, 502, 503, 504, 511, 599,
        ],
        ["", "<html>", "{}", #"{"kind":"portal","detail":"Log in."}"#, #"{"kind":7}"#, "[1"])
    func strangers(status: Int, body: String) throws {
        let world = NodeFixture(try .withTeams())
        let stream = try world.goLive()
        try world.device.write { try $0.insert("teams", ["name": "Owls"]) }
        let sent = try #require(try world.handle(.wake(isUrgent: false)).sent)
        let told = answered(world, sent.exchange, status, body)
        // A JSON object in an answer with status 200 counts as the server's, and as wrong.
        if status != 200 || body != "{}" && !body.hasSuffix("}") {
            #expect(told.error?.kind == .offline && told.error?.remedy == .wait)
        }
        #expect(try #require(retryIn(told)) > 0)
        #expect(told.closed == nil && told.isLive == nil)
        // The stream does not stop it either.
        let ended = world.handle(
            .streamEnded(
                stream, status: status, message: "", problem: .unrecognized(status: status),
                retryAfter: nil))
        #expect(ended.error == nil)
        #expect(ended.streamTimer != nil)
        let timer = try #require(told.timer)
        let again = try #require(try world.handle(.timer(timer.number)).sent)
        let own = try #require(again.request.changeSets.first?.identifier)
        let fine = try world.answer(
            again.exchange, 3,
            [.entry(3, own: own, .created("teams", 9, old: -2, at: 3, ["name": "Owls"]))])
        #expect(fine.error == nil)
    }

    @Test("that was stopped comes back by itself, and a minute later at a save")
    func stopped() throws {
        for isSaved in [false, true] {
            let world = NodeFixture(try .withTeams()) { $0.isLive = false }
            let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
            let told = answered(
                world, sent.exchange, 401, #"{"kind":"unauthorized","detail":"A token."}"#)
            #expect(told.error?.kind == .unauthorized && retryIn(told) == nil)
            var timer = try #require(told.timer)
            #expect(timer.milliseconds == 900_000)
            if isSaved {
                world.now += 20_000
                timer = try #require(world.handle(.wake(isUrgent: false)).timer)
                #expect(timer.milliseconds == 40_000)
                // Many saves in a row neither delay the next try nor bring more of them.
                world.now += 1_000
                #expect(world.handle(.wake(isUrgent: false)).isEmpty)
            }
            #expect(try world.handle(.timer(timer.number)).sent != nil)
        }
    }

    @Test("waits ten minutes at most because a stranger asks for it, and a save waits a minute")
    func asked() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let told = answered(world, sent.exchange, 503, "<html>", retryAfter: 86_400)
        #expect(told.timer?.milliseconds == 600_000)
        let sooner = try #require(world.handle(.wake(isUrgent: false)).timer)
        #expect(15_000...60_000 ~= sooner.milliseconds)
        // This also ends the longer wait.
        #expect(world.handle(.timer(try #require(told.timer).number)).isEmpty)
        let again = try #require(try world.handle(.timer(sooner.number)).sent)
        // The device believes the server itself.
        let busy = answered(
            world, again.exchange, 503, #"{"kind":"busy","detail":"Scheduler.","retryAfter":7200}"#)
        #expect(busy.timer?.milliseconds == 7_200_000)
    }

    @Test("in the end asks an absent server no more often than it polls one that answers")
    func absentServer() throws {
        let world = NodeFixture(try .withTeams()) {
            $0.isLive = false
            $0.pollInterval = 3_600_000
        }
        var told = world.handle(.wake(isUrgent: true))
        var waits: [Int64] = []
        for _ in 0..<40 {
            let sent = try #require(try told.sent)
            told = world.handle(.failed(exchange: sent.exchange, SyncError(.offline, "away")))
            let timer = try #require(told.timer)
            waits.append(timer.milliseconds)
            world.now += timer.milliseconds
            told = world.handle(.timer(timer.number))
        }
        #expect(waits.suffix(20).allSatisfy { 1_200_000...3_600_000 ~= $0 })
    }

    @Test("takes no answer that was meant for another request")
    func swappedAnswers() throws {
        for change: (inout SyncAnswer) -> Void in [
            { $0.request = "another" }, { $0.clientID = "another" }, { $0.from = 1 },
        ] {
            let world = NodeFixture(try .withTeams()) { $0.isLive = false }
            let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
            var answer = SyncAnswer(maxRevision: 9)
            (answer.dataSet, answer.lineage) = ("d", "l9")
            answer.clientID = sent.request.clientID
            answer.from = sent.request.maxRevision
            #expect(sent.request.request != nil)
            answer.request = sent.request.request
            let own = answer
            change(&answer)
            let told = answered(
                world, sent.exchange, 200,
                String(decoding: try SyncCoder.encode(answer), as: UTF8.self))
            #expect(told.error?.kind == .offline)
            #expect(try world.device.store.revision == 2)
            let timer = try #require(told.timer)
            let again = try #require(try world.handle(.timer(timer.number)).sent)
            #expect(again.request.request != sent.request.request)
            var right = own
            right.request = again.request.request
            let fine = answered(
                world, again.exchange, 200,
                String(decoding: try SyncCoder.encode(right), as: UTF8.self))
            #expect(fine.error == nil)
            #expect(try world.device.store.revision == 9)
        }
    }

    @Test("asks for less and sends less after each failure, and for more once it goes quickly")
    func smaller() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        for number in 0..<40 {
            try world.device.write {
                try $0.insert(
                    "teams", ["name": .text("\(number)" + String(repeating: "x", count: 9_000))])
            }
        }
        var told = world.handle(.wake(isUrgent: true))
        var sizes: [Int] = []
        var asked: [Int64] = []
        var pulls = 0
        for _ in 0..<14 {
            let sent = try #require(try told.sent)
            if sent.request.changeSets.isEmpty {
                pulls += 1
            } else {
                sizes.append(sent.request.changeSets.count)
            }
            asked.append(sent.request.answerBytes ?? Int64(Limits.answerBytes))
            told = world.handle(.failed(exchange: sent.exchange, SyncError(.offline, "cut")))
            told = world.handle(.timer(try #require(told.timer).number))
        }
        #expect(sizes.first == 40 && sizes.last == 1)
        #expect(sizes == sizes.sorted(by: >))
        #expect(asked.first == 8 << 20 && asked.last == 16 << 10)
        #expect(asked == asked.sorted(by: >))
        // Between these tries, others' changes arrive without the queue.
        #expect(pulls > 3)
        let sent = try #require(try told.sent)
        // The queue is not empty, so the next request follows at once.
        let next = try #require(try world.answer(sent.exchange, 2).sent)
        #expect(next.request.answerBytes == 32 << 10)
    }

    @Test(
        "waits for an exchange as long as bytes move, holds its lease, and ends one that is silent")
    func progress() throws {
        let world = NodeFixture(try .withTeams()) { $0.isLive = false }
        var told = world.handle(.wake(isUrgent: true))
        let sent = try #require(try told.sent)
        for _ in 0..<5 {
            let before = try #require(told.timer)
            world.now += 100_000
            told = world.handle(.progress(exchange: sent.exchange))
            #expect(told.timer?.milliseconds == 120_000)
            #expect(world.handle(.timer(before.number)).isEmpty)
        }
        // Another process on the file does not take over, although the exchange has lasted for
        // long.
        let other = DeviceNode(store: world.device.store)
        #expect(
            try NodeFixture.Told(other.handle(.wake(isUrgent: true), now: world.now)).sent == nil)
        let silent = world.handle(.timer(try #require(told.timer).number))
        #expect(silent.error?.kind == .offline)
        let isCancelled = silent.actions.contains {
            if case .cancel(sent.exchange) = $0 { true } else { false }
        }
        #expect(isCancelled)
        #expect(world.handle(.progress(exchange: sent.exchange)).isEmpty)
    }
}
