import Testing
import WebSocketKit

@testable import HTTPKit

@Suite("Signs of life of a WebSocket")
@EventLoop
struct WebSocketLifeTests {
    private static let second: UInt64 = 1_000_000_000

    private let state: WebSocketState

    init() {
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(5)
        options.stallTimeout = .seconds(7)
        state = WebSocketState(
            session: WebSocketSession(role: .server, maxMessageByteCount: 10), now: 0,
            options: options, claim: RequestClaim(parties: []))
    }

    private func life(at seconds: UInt64) -> WebSocketState.Life {
        state.life(seconds * Self.second)
    }

    @Test("who is silent is asked, and is gone when no answer comes in time")
    func silentClientIsAsked() {
        #expect(life(at: 9) == .fine)
        #expect(state.nextDeadline == 10 * Self.second)
        #expect(life(at: 10) == .ask)
        #expect(state.nextDeadline == 15 * Self.second)
        #expect(life(at: 14) == .fine)
        #expect(life(at: 15) == .gone)
    }

    @Test("any sign of life counts from when it came, and the next ping with it")
    func answering() {
        for round in 0..<10 as Range<UInt64> {
            #expect(life(at: 14 * round + 10) == .ask)
            #expect(state.heard((14 * round + 14) * Self.second))
            #expect(life(at: 14 * round + 15) == .fine)
            #expect(state.nextDeadline == (14 * round + 24) * Self.second)
        }
        #expect(!state.heard(141 * Self.second))
    }

    @Test("who has things to read before the ping is asked only once they are taken")
    func behindUnreadPing() {
        state.noteTaken(100, isAll: false, 0)
        #expect(life(at: 10) == .fine)
        #expect(state.isStalled(10 * Self.second))
        state.noteTaken(200, isAll: true, 10 * Self.second)
        #expect(life(at: 19) == .fine)
        #expect(life(at: 20) == .ask)
    }
}
