import Dispatch
import Foundation
import MartletCore
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
    private static let script = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"

    /// Comparisons that take until the test says so.
    private final class Gate: Sendable {
        private let opened = DispatchSemaphore(value: 0)
        private let started = Mutex(0)

        /// Comparisons that were begun.
        var count: Int { started.withLock { $0 } }

        func pass() {
            started.withLock { $0 += 1 }
            opened.wait()
            opened.signal()
        }

        func open() { opened.signal() }
    }

    private final class HeldCheck: CheckSource {
        private let check: any CheckSource
        private let gate: Gate

        init(_ check: any CheckSource, _ gate: Gate) {
            (self.check, self.gate) = (check, gate)
        }

        func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer {
            gate.pass()
            return try check.compare(request)
        }
    }

    private struct HeldReaders: DataSetReaders {
        let readers: any DataSetReaders
        let gate: Gate

        var isRemote: Bool { readers.isRemote }
        func log() -> any LogSource { readers.log() }
        func check() -> any CheckSource { HeldCheck(readers.check(), gate) }
        func snapshotFile(
            in folder: String, while isWanted: @escaping () -> Bool
        ) throws -> SnapshotFile {
            try readers.snapshotFile(in: folder, while: isWanted)
        }
        func watch() -> any StorageWatch { readers.watch() }
        func quiet() -> (@Sendable () -> Bool)? { readers.quiet() }
        func outsideReader() throws -> (any OutsideReader)? { try readers.outsideReader() }
        func outlet(of feed: DataSetFeed, name: String) async throws -> Confined<CommitOutlet>? {
            try await readers.outlet(of: feed, name: name)
        }
    }

    private struct HeldBacking: DataSetBacking {
        let backing: any DataSetBacking
        let gate: Gate

        func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet {
            let opened = try backing.open(now: now, unsendable: unsendable)
            return OpenedDataSet(
                storage: opened.storage, log: opened.log, ddl: opened.ddl, tables: opened.tables,
                readers: HeldReaders(readers: opened.readers, gate: gate))
        }
    }

    private static func service(_ folder: TemporaryFolder, _ gate: Gate) async throws
        -> DataSetService
    {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        return try await DataSetService(
            name: "team",
            setup: .init(
                backing: HeldBacking(
                    backing: EmbeddedBacking(path: folder.path + "/held.sqlite", script: script),
                    gate: gate),
                rules: { _ in .everything }, dependencyWaitSeconds: 1, keepRevisions: nil,
                cacheBytes: 1 << 20, now: { 1 }, metrics: Metrics(), log: ServerLog { _ in },
                snapshots: .init(
                    folder: folder.path + "/snapshots", plan: .whole, every: 1_000,
                    queue: DispatchQueue(label: "snapshots"), later: { _, _ in }),
                pulse: Pulse(), redis: nil, changed: {}))
    }

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
    ) async throws -> DataSetService.Verdict {
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
        let (folder, gate) = (TemporaryFolder(), Gate())
        let service = try await Self.service(folder, gate)
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
    func room() async throws {
        let room = ComparisonRoom()
        let door = Door()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, user) in ["ada", "cyd", "dan", "eve"].enumerated() {
                #expect(await room.run(user: "bob", device: "0") {} != nil)
                for number in 0..<ComparisonRoom.mostOfUser {
                    group.addTask {
                        _ = await room.run(user: user, device: "\(number)") {
                            try? await waitUntil("it ends") { door.isOpen.withLock { $0 } }
                        }
                    }
                }
                let count = (place + 1) * ComparisonRoom.mostOfUser
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
