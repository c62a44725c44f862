import Foundation
import Martlet
import MartletDevice
import MartletModel
import Synchronization
import Testing
import Waiting

@Suite("Closing a client")
struct CloseTests {
    private static func client(
        _ transport: HeldTransport, _ configure: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> (client: MartletClient, folder: URL) {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var options = ClientOptions()
        configure(&options)
        let client = try await MartletClient.open(
            path: folder.appendingPathComponent("d.sqlite").path,
            schema: "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT)", transport: transport,
            options: options)
        client.start()
        try await waitUntil("a request is under way") { transport.isAsked }
        return (client, folder)
    }

    @Test("waits for the request that is under way")
    func waits() async throws {
        let transport = HeldTransport()
        // Time does not pass: only the request's end can end it.
        let (client, folder) = try await Self.client(transport) { options in
            options.sleep = { _ in try await Task.sleep(for: .seconds(3_600)) }
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        let isClosed = Mutex(false)
        async let closing: Void = {
            await client.close()
            #expect(transport.ended.withLock { $0 })
            isClosed.withLock { $0 = true }
        }()
        try await waitUntil("the client refuses work") {
            do {
                try await client.write { _ in }
                return false
            } catch {
                return true
            }
        }
        #expect(!isClosed.withLock { $0 })
        transport.letGo()
        await closing
        #expect(isClosed.withLock { $0 })
        // Once more does nothing.
        await client.close()
    }

    @Test("lets go of the file, though the client is still referred to")
    func closesFile() async throws {
        let transport = HeldTransport()
        let (client, folder) = try await Self.client(transport)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await client.write { try $0.insert("teams", ["name": .text("Owls")]) }
        _ = try await client.read { try $0.rows("SELECT name FROM teams") }
        let path = folder.appendingPathComponent("d.sqlite").path
        #expect(FileManager.default.fileExists(atPath: path + "-wal"))
        transport.letGo()
        await client.close()
        // SQLite removes its log when the last connection is closed.
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
        let error = await #expect(throws: StoreError.self) { try await client.status() }
        #expect(error?.kind == .misuse)
        // An alert shows the message.
        let refusal = await #expect(throws: SyncError.self) { try await client.sync() }
        #expect((refusal as (any Error)?)?.localizedDescription == refusal?.message)
        let again = try await MartletClient.open(path: path, schema: nil)
        #expect(try await again.read { try $0.rows("SELECT name FROM teams").count } == 1)
        await again.close()
    }

    @Test("does not wait for ever")
    func boundedWait() async throws {
        let transport = HeldTransport()
        let limits = Mutex<[Duration]>([])
        let (client, folder) = try await Self.client(transport) { options in
            options.sleep = { limit in
                // The watch for external writes waits as long as the client lives.
                guard limit > .seconds(2) else { return try await Task.sleep(for: .seconds(3_600)) }
                limits.withLock { $0.append(limit) }
            }
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        await client.close()
        #expect(!transport.ended.withLock { $0 })
        #expect(limits.withLock { $0 } == [.seconds(5)])
        transport.letGo()
    }
}
