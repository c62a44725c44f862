import Dispatch
import Foundation
import MartletModel
import MartletProtocol
import MartletRedis
import MartletServerCore
import Synchronization
import Testing
import Waiting

@testable import MartletServer

@Suite("Comparisons of devices' rows")
struct ComparisonTests {
    private static let user = Principal(name: "tablet", user: "ada")

    private static func request(
        _ client: String, by user: Principal = user, comparing: Bool
    ) -> AdmittedRequest {
        var request = SyncRequest(maxRevision: 0)
        request.clientID = client
        request.protocolVersion = 1
        request.wantsRows = !comparing
        if comparing { request.check = CheckRequest(revision: 0, types: []) }
        return AdmittedRequest(principal: user, request: request, source: [])
    }

    /// Asks a service that may keep the asker waiting: for ever, if it does what it must not.
    private static func ask(
        _ service: DataSetService, _ request: AdmittedRequest
    ) async throws -> DataSetService.Response {
        let isAnswered = Mutex(false)
        let asked = Task {
            defer { isAnswered.withLock { $0 = true } }
            return await service.answer(request, AnswerClaim(of: "a"))
        }
        try await waitUntil("it is answered") { isAnswered.withLock { $0 } }
        return await asked.value
    }

    @Test("hold up nobody who asks for rows, and are one at a time for a device")
    func apart() async throws {
        let (folder, gate) = (TemporaryFolder(), HeldService.Gate())
        let service = try await HeldService.make(folder, gate)
        for client in ["a", "b", "c"] {
            // A device is met before anything is compared with it.
            _ = try await service.answer(
                Self.request(client, comparing: false), AnswerClaim(of: "a")
            ).get()
        }
        async let first = service.answer(
            Self.request("a", comparing: true), AnswerClaim(of: "a"))
        defer { gate.open() }
        try await waitUntil("a comparison is under way") { gate.count == 1 }
        // Somebody new gets all rows, while it takes its time.
        _ = try await Self.ask(service, Self.request("b", comparing: false)).get()
        guard
            case .failure(let refusal) = try await Self.ask(
                service, Self.request("a", comparing: true))
        else {
            Issue.record("the device's second one was let in")
            return
        }
        #expect(refusal.status == 503 && refusal.kind == "busy" && refusal.retryAfter != nil)
        async let other = service.answer(
            Self.request("c", comparing: true), AnswerClaim(of: "a"))
        gate.open()
        _ = try await first.get()
        _ = try await other.get()
        _ = try await service.answer(Self.request("a", comparing: true), AnswerClaim(of: "a"))
            .get()
        await service.stop()
    }

    private final class Door: Sendable {
        let isOpen = Mutex(false)
    }

    @Test("have room for each user, and for all")
    func roomOfUsers() async throws {
        let room = ComparisonRoom()
        let door = Door()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, user) in ["ada", "cyd", "dan", "eve"].enumerated() {
                #expect(await room.run(user: "bob", device: "0") {} != nil)
                for number in 0..<ComparisonRoom.mostOfUser {
                    group.addTask {
                        _ = await room.run(user: user, device: "\(number)") {
                            try? await waitUntil("it ends") { door.isOpen.withLock { $0 } }
                        }
                    }
                }
                let count = (index + 1) * ComparisonRoom.mostOfUser
                try await waitUntil("they are in") { room.count == count }
                #expect(await room.run(user: user, device: "one more") {} == nil)
            }
            #expect(room.count == ComparisonRoom.most)
            #expect(await room.run(user: "bob", device: "0") {} == nil)
            door.isOpen.withLock { $0 = true }
            try await group.waitForAll()
        }
        #expect(room.count == 0)
        #expect(await room.run(user: "ada", device: "0") {} != nil)
    }
}
