import Synchronization
import Testing
import Waiting

@testable import MartletServer

@Suite("The room in which answers are made")
struct AnswerRoomTests {
    private final class Order: Sendable {
        let names = Mutex<[String]>([])
    }

    /// Claims that have a place.
    private static func full(_ room: AnswerRoom) async throws -> [AnswerClaim] {
        var claims: [AnswerClaim] = []
        for _ in 0..<AnswerRoom.capacity {
            let claim = AnswerClaim(of: "a")
            try await claim.take(in: room)
            // A second place is not taken.
            try await claim.take(in: room)
            claims.append(claim)
        }
        return claims
    }

    @Test("has few places, and parties take turns for them")
    func turns() async throws {
        let room = AnswerRoom()
        var claims = try await Self.full(room)
        let order = Order()
        var tasks: [Task<Void, any Error>] = []
        for (index, name) in ["b1", "b2", "b3", "c1"].enumerated() {
            tasks.append(
                Task {
                    let claim = AnswerClaim(of: String(name.prefix(1)))
                    try await claim.take(in: room)
                    order.names.withLock { $0.append(name) }
                    claim.giveBack()
                })
            try await waitUntil("“\(name)” waits") { room.waitingCount == index + 1 }
        }
        #expect(order.names.withLock { $0.isEmpty })
        // Who lets go of a claim gives its place back.
        claims.removeLast()
        for task in tasks { try await task.value }
        #expect(order.names.withLock { $0 } == ["b1", "c1", "b2", "b3"])
        #expect(claims.count == AnswerRoom.capacity - 1)
    }

    @Test("no longer waits for a place once the client is gone, and no place is lost by it")
    func cancelledWaiter() async throws {
        let room = AnswerRoom()
        let claims = try await Self.full(room)
        let waiting = Task {
            let claim = AnswerClaim(of: "b")
            try await claim.take(in: room)
        }
        try await waitUntil("it waits") { room.waitingCount == 1 }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        claims.forEach { $0.giveBack() }
        _ = try await Self.full(room)
    }

    @Test("gives up its place before it waits in another room")
    func moved() async throws {
        let (first, second) = (AnswerRoom(), AnswerRoom())
        let claims = try await Self.full(second)
        let mover = AnswerClaim(of: "a")
        try await mover.take(in: first)
        let moving = Task { try await mover.take(in: second) }
        try await waitUntil("it waits") { second.waitingCount == 1 }
        _ = try await Self.full(first)
        claims.first?.giveBack()
        try await moving.value
    }

    @Test("takes no place for a client that is gone already")
    func lateClient() async throws {
        let room = AnswerRoom()
        let task = Task {
            try await waitUntil("it is cancelled") { Task.isCancelled }
            try await AnswerClaim(of: "a").take(in: room)
        }
        task.cancel()
        await #expect(throws: (any Error).self) { try await task.value }
        _ = try await Self.full(room)
    }
}
