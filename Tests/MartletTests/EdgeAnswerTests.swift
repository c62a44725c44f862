import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// A server that is wrong, or whatever stands between, may send any number that can be written.
@Suite("Answers with numbers at the edge")
struct EdgeAnswerTests {
    private static let most = Int64.max

    /// The exchange asked for, and the identifier of the set in it.
    private func asked(_ actions: [DeviceNode.Action]) throws -> (number: Int, set: String?)? {
        for case .send(let exchange, let body) in actions {
            return (exchange, try SyncCoder.decodeRequest(body).changeSets.first?.identifier)
        }
        return nil
    }

    private func waits(_ actions: [DeviceNode.Action]) -> [Int64] {
        actions.compactMap { action in
            if case .setTimer(_, let milliseconds) = action { return milliseconds }
            return nil
        }
    }

    private static func set(_ members: String) -> String {
        #"{"maxRevision":1,"dataSet":"d","lineage":"l","changeSets":[{\#(members)}]}"#
    }

    @Test(
        "cost no unsent work, and stop the device for a day at most",
        arguments: [
            #"{"maxRevision":\#(most),"dataSet":"d","lineage":"l","changeSets":[]}"#,
            #"{"maxRevision":\#(most),"more":true,"dataSet":"d","lineage":"l","changeSets":[]}"#,
            set(#""identifier":"x","conflict":true,"retryAfter":\#(most),"types":[]"#),
            set(#""identifier":"x","conflict":true,"retryAfter":-5,"types":[]"#),
            set(#""revision":\#(most),"types":[]"#),
            set(
                #""revision":1,"types":["teams"],"teams":{"create":[\#(most)],"update":[],"#
                    + #""delete":[],"attributes":{"\#(most)":{"revision":\#(most),"name":"x"}}}"#),
            set(
                #""revision":1,"types":["teams"],"teams":{"create":[1],"update":[],"delete":[],"#
                    + #""attributes":{"1":{"__oldId__":\#(Int64.min),"revision":1,"name":"x"}}}"#),
            set(
                #""revision":1,"types":["teams"],"teams":{"create":[],"update":[],"#
                    + #""delete":[\#(Int64.min),0,\#(most)],"attributes":{}}"#),
        ])
    func answersAtTheEdge(text: String) throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Mine"]) }
        let node = DeviceNode(store: device.store, options: DeviceNode.Options())
        var actions = node.handle(.wake(isUrgent: true), now: 5)
        var told: [Int64] = []
        for _ in 0..<3 {
            guard let exchange = try asked(actions) else { break }
            let answer = text.replacing(
                #""identifier":"x""#, with: #""identifier":"\#(exchange.set ?? "x")""#)
            actions = node.handle(
                .answered(
                    exchange: exchange.number, status: 200, body: [UInt8](answer.utf8),
                    retryAfter: Self.most), now: 6)
            told += waits(actions)
        }
        #expect(!told.isEmpty && told.allSatisfy { 0...86_400_000 ~= $0 })
        #expect(try device.store.outboxCount == 1)
    }

    @Test(
        "in a refusal keep the device waiting for a day at most",
        arguments: [Int64.max, .min, -1, 9_223_372_036_854_776], [429, 503])
    func refusalsWithLongWait(seconds: Int64, status: Int) throws {
        let device = try DeviceFixture()
        let node = DeviceNode(store: device.store, options: DeviceNode.Options())
        for header in [seconds, nil] {
            let exchange = try #require(try asked(node.handle(.wake(isUrgent: true), now: 5)))
            let problem = Problem(
                status: status, kind: "busy", detail: "Because.", retryAfter: seconds)
            let actions = node.handle(
                .answered(
                    exchange: exchange.number, status: status, body: SyncCoder.encode(problem),
                    retryAfter: header), now: 6)
            #expect(waits(actions).count == 1)
            #expect(waits(actions).allSatisfy { 1...86_400_000 ~= $0 })
        }
    }
}
