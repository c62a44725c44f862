import Foundation
import Martlet
import MartletDevice
import MartletModel
import Synchronization
import Testing
import Waiting

@Suite("Stopping a client, and cancelling who waits for it")
struct StoppingTests {
    private static func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    private static func client(
        in folder: URL, _ transport: any Transport
    ) async throws -> MartletClient {
        try await MartletClient.open(
            path: folder.appendingPathComponent("d.sqlite").path,
            schema: "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT)", transport: transport)
    }

    /// Returns the kind of error with which an exchange ended.
    private static func kind(
        _ exchange: () async throws -> Revision
    ) async -> SyncError.Kind? {
        do {
            _ = try await exchange()
            return nil
        } catch {
            return (error as? SyncError)?.kind
        }
    }

    @Test("tells who waits while another client on the file exchanges")
    func waitingForTheLease() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let held = HeldTransport()
        let other = try await Self.client(in: folder, held)
        let otherSync = Task { await Self.kind { try await other.sync() } }
        try await waitUntil("the other client exchanges") { held.isAsked }

        let idle = HeldTransport()
        let client = try await Self.client(in: folder, idle)
        let ended = Mutex<SyncError.Kind?>(nil)
        let sync = Task {
            let kind = await Self.kind { try await client.sync() }
            ended.withLock { $0 = kind ?? SyncError.Kind(name: "none") }
        }
        // This is repeated, because nobody can tell when the exchange was asked for.
        try await waitUntil("the exchange has ended") {
            await client.stop()
            return ended.withLock { $0 != nil }
        }
        await sync.value
        #expect(ended.withLock { $0 } == .cancelled)
        #expect(!idle.isAsked)
        held.letGo()
        #expect(await otherSync.value == .offline)
        await client.close()
        await other.close()
    }

    @Test("a cancelled task waits no longer, and what it alone wanted ends")
    func cancelledTask() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let held = HeldTransport()
        let client = try await Self.client(in: folder, held)
        let sync = Task { await Self.kind { try await client.sync() } }
        try await waitUntil("a request is under way") { held.isAsked }
        sync.cancel()
        #expect(await sync.value == .cancelled)
        // The lease was given back, so another client on the file need not wait for the answer.
        let second = HeldTransport()
        second.letGo()
        let other = try await Self.client(in: folder, second)
        #expect(await Self.kind { try await other.sync() } == .offline)
        held.letGo()
        await client.close()
        await other.close()
    }

    @Test("one of two that wait is cancelled, the other goes on")
    func oneOfTwo() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let held = HeldTransport()
        let client = try await Self.client(in: folder, held)
        let first = Task { await Self.kind { try await client.sync() } }
        try await waitUntil("a request is under way") { held.isAsked }
        let second = Task {
            await Self.kind { try await client.refresh(ifOlderThan: .seconds(-1)) }
        }
        second.cancel()
        #expect(await second.value == .cancelled)
        held.letGo()
        #expect(await first.value == .offline)
        await client.close()
    }

    @Test("a task that is cancelled already does not ask")
    func cancelledBefore() async throws {
        let folder = try Self.folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let held = HeldTransport()
        let client = try await Self.client(in: folder, held)
        let (goAhead, go) = AsyncStream.makeStream(of: Void.self)
        let sync = Task {
            for await _ in goAhead {}
            return await Self.kind { try await client.sync() }
        }
        sync.cancel()
        go.finish()
        #expect(await sync.value == .cancelled)
        #expect(!held.isAsked)
        await client.close()
    }
}
