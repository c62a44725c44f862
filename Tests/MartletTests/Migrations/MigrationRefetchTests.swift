import Foundation
import MartletModel
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Refetching when a version fails")
struct MigrationRefetchTests {
    /// Fails on files with records only.
    private static let failing = Migration(4, "failing") { context in
        try context.renameColumn("email", to: "mail", in: "players")
        if try !context.rows("SELECT id FROM players").isEmpty {
            try context.dropTable("nothing")
        }
        try context.execute(
            "INSERT INTO players(id, name) VALUES ((SELECT id FROM martlet_new_id), 'x')")
    }

    private func open(_ file: SyncedFile, _ list: [Migration]) throws -> (
        DeviceStore, MigrationOutcome
    ) {
        var bits: UInt64 = 5_000
        return try DeviceStore.open(
            path: SyncedFile.path, migrator: Migrator(Migrations(list), now: 9),
            fallback: .refetch, vfs: file.disk.vfsName, hooks: WriteHooks(),
            generation: SchemaGeneration(), now: 9,
            randomBits: {
                bits += 1
                return bits
            })
    }

    @Test("the tables are recreated, empty; what is queued stays, under the new names")
    func refetchAfterMigration() throws {
        let file = try SyncedFile("anew")
        let frozen = try file.rows("SELECT frozen FROM martlet_outbox WHERE sent = 1")
        let (store, outcome) = try open(
            file, Array(SyncedVersions.all[..<3]) + [Self.failing])
        guard case .refetching(let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure.message.contains("Version 4 (failing)"))
        #expect(try store.revision == 0 && store.standing.refetching?.goal == 3)
        #expect(store.local.schema["players"]?.attributes.map(\.name).contains("mail") == true)
        #expect(try file.rows("SELECT max(version) FROM martlet_migrations") == ["4"])
        #expect(try file.rows("SELECT count(*) FROM teams") == ["0"])
        #expect(try file.rows("SELECT frozen FROM martlet_outbox WHERE sent = 1") == frozen)
        #expect(
            try file.rows(
                "SELECT after FROM martlet_changes WHERE sequence = 2 AND id IN (5, 12) ORDER BY id"
            )
                == ["{\"town\":\"Paris\"}", "{\"mail\":\"bea@y\"}"])
        #expect(
            try file.rows("SELECT after FROM martlet_changes WHERE sequence = 5 AND id = 11")
                == ["{\"mail\":\"shell\"}"])
        #expect(try store.parkedCount == 1)
        _ = try store.write(now: 10) { try $0.insert("teams", ["name": "New"]) }
        #expect(try store.contradiction() == nil)
    }

    @Test("a version that cannot even make a new file throws, and the file is as it was")
    func hopeless() throws {
        let file = try SyncedFile("hopeless")
        try file.open(3)
        file.close()
        let before = try file.content()
        let error = #expect(throws: StoreError.self) {
            try open(
                file,
                Array(SyncedVersions.all[..<3]) + [
                    Migration(4, "hopeless") { try $0.dropTable("nothing") }
                ])
        }
        #expect(error?.message.contains("Version 4 (hopeless)") == true)
        #expect(try file.content() == before)
    }
}

@Suite("Opening by versions")
struct VersionedOpeningTests {
    private let folder = TemporaryFolder()
    private static let broken = Migration(2, "broken") { try $0.dropTable("nothing") }
    private static let first = Migration(1, "teams") { context in
        try context.create("CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT)")
    }

    @Test("a pool is opened by versions, and for reading only where one fails")
    func pool() async throws {
        let path = folder.path("pool.db")
        let pool = try await DatabasePool.open(
            path: path, migrations: Migrations([Self.first]))
        #expect(pool.migration == .migrated(from: 0, to: 1))
        try await pool.write { _ = try $0.rows("INSERT INTO teams VALUES (1, 'a') RETURNING id") }
        let at = try await pool.read {
            try $0.rows("SELECT at FROM martlet_migrations")[0]["at"]
        }
        guard case .integer(let milliseconds)? = at else {
            Issue.record("no time")
            return
        }
        #expect(milliseconds > 1_700_000_000_000)
        await pool.close()
        for fallback in [MigrationFallback.readOnly, .refetch] {
            let again = try await DatabasePool.open(
                path: path, migrations: Migrations([Self.first, Self.broken]), fallback: fallback)
            guard case .readOnly(at: 1, _) = again.migration else {
                Issue.record("\(String(describing: again.migration))")
                return
            }
            let error = await #expect(throws: StoreError.self) {
                try await again.write { _ = try $0.rows("DELETE FROM teams") }
            }
            #expect(error?.kind == .readOnly)
            let count = try await again.read { try $0.rows("SELECT * FROM teams").count }
            #expect(count == 1)
            await again.close()
        }
        let error = await #expect(throws: StoreError.self) {
            try await DatabasePool.open(path: path, migrations: Migrations([]))
        }
        #expect(error?.kind == .newer)
    }

    @Test("a client is opened by versions, and for reading only where one fails")
    func client() async throws {
        let path = folder.path("client.db")
        let client = try await MartletClient.open(
            path: path, migrations: Migrations([Self.first]), transport: nil)
        #expect(client.migration == .migrated(from: 0, to: 1))
        try await client.write { _ = try $0.insert("teams", ["name": "a"]) }
        await client.close()
        let again = try await MartletClient.open(
            path: path, migrations: Migrations([Self.first, Self.broken]), fallback: .readOnly,
            transport: Unreachable())
        #expect(again.migration?.failure != nil)
        let error = await #expect(throws: StoreError.self) {
            try await again.write { _ = try $0.insert("teams", ["name": "b"]) }
        }
        #expect(error?.kind == .readOnly)
        let refusal = await #expect(throws: SyncError.self) { try await again.sync() }
        #expect(refusal?.kind == .file)
        #expect(refusal?.message.contains("Version 2 (broken)") == true)
        #expect(try await again.status().outbox == 1)
        await again.close()
    }
}

/// A server that nothing reaches.
private struct Unreachable: Transport {
    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        Issue.record("nothing is to be sent")
        throw TransportFailure(message: "unreachable")
    }
}

/// A folder for the files of one test.
private final class TemporaryFolder: Sendable {
    private let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("martlet-\(UUID().uuidString)")

    init() {
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
}
