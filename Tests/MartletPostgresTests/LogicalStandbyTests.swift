import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import TestDatabases
import Testing
import Waiting

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Writes read from the write-ahead log before their rows show", .timeLimit(.minutes(3)))
struct LogicalStandbyTests {
    /// A program, on a thread of its own, whose commit waits until a standby shows it.
    private final class Waiter: Sendable {
        private let ended = DispatchSemaphore(value: 0)

        init(_ address: PostgresAddress, _ sql: String) {
            Thread.detachNewThread { [ended] in
                defer { ended.signal() }
                do {
                    let program = try PostgresConnection(
                        address, PostgresOptions(statement: nil, answer: nil, name: "waiter"))
                    try program.execute("SET synchronous_commit = remote_apply")
                    try program.execute(sql)
                } catch {
                    Issue.record("\(error)")
                }
            }
        }

        func end() { ended.wait() }
    }

    private static func count(_ connection: PostgresConnection, _ rest: String) throws -> Int64 {
        try connection.query("SELECT count(*) FROM \(rest)").integer(0, 0)
    }

    @Test("of several hosts the one that can be written to is taken")
    func hosts() async throws {
        let servers = try await DatabaseServers.start(["--standby"])
        let standby = try PostgresAddress(servers.standbyURL)
        let both = try PostgresAddress(servers.postgresURL).setting("host", "127.0.0.1,127.0.0.1")
            .setting("port", "\(standby["port"] ?? ""),\(servers.postgresPort)")
        let recovers = "SELECT pg_is_in_recovery()"
        for readOnly in [false, true] {
            try await TestDatabase.blocking {
                let connection = try PostgresConnection(both, PostgresOptions(readOnly: readOnly))
                #expect(try !connection.query(recovers).boolean(0, 0))
            }
        }
        // An address that names the standby, or accepts any server, gets the standby.
        for address in [standby, both.setting("target_session_attrs", "any")] {
            #expect(
                try await TestDatabase.connected(to: address) {
                    try $0.query(recovers).boolean(0, 0)
                })
        }
        _ = servers
    }

    @Test("a commit that is flushed and still waits for a standby is noted once its rows show")
    func flushed() async throws {
        let servers = try await DatabaseServers.start(
            ["--standby", "--set", "wal_level=logical"])
        let address = try PostgresAddress(servers.postgresURL)
        try await TestDatabase.connected(to: address) { (program) throws in
            try program.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            try program.execute("SELECT pg_reload_conf()")
        }
        try await waitUntil("the standby is waited for") {
            try await TestDatabase.connected(to: address) {
                try Self.count($0, "pg_stat_replication WHERE sync_state = 'sync'") == 1
            }
        }
        try await TestDatabase.blocking {
            let store = try TestStore(
                address, StoreTests.script, tables: StoreTests.tables, adopts: true,
                capture: .logical)
            defer { store.store.close() }
            let names = #""-1":{"name":"Red"},"-2":{"name":"Blue"}"#
            try store.send(TestStore.set("teams", create: ["-1", "-2"], names))
            let reader = LogicalReader(address)
            defer { reader.close() }
            // The standby replays the commit an hour late.
            let waiter = Waiter(
                address,
                """
                BEGIN; UPDATE teams SET wins = 9 WHERE id = 1; DELETE FROM teams WHERE id = 2;
                INSERT INTO teams (id, name) VALUES (70, 'Green'); COMMIT
                """)
            let waits =
                "pg_stat_activity WHERE application_name = 'waiter' AND wait_event = 'SyncRep'"
            while try Self.count(store.other, waits) == 0 {}
            // The commit is on disk and the slot has sent it, but no session can see its rows.
            for _ in 1...60 {
                #expect(try reader.step(within: .milliseconds(10)) != .found)
            }
            #expect(try store.store.begin(now: 2, maxBytes: 1 << 20).isEmpty)
            try store.store.commit()
            let edit = TestStore.set("teams", update: ["1"], #""1":{"revision":1,"wins":5}"#)
            #expect(try store.send(edit, at: 1).reason == .busy)
            _ = try store.other.query(
                """
                SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'waiter'
                """)
            waiter.end()
            while try reader.step(within: .milliseconds(10)) != .found {}
            let entries = try store.store.begin(now: 3, maxBytes: 1 << 20)
            try store.store.commit()
            try #require(entries.count == 1)
            let set = try SyncCoder.decodeChangeSet(entries[0].body)
            let teams = try #require(set.types.first)
            #expect(teams.create == [.integer(70)])
            #expect(teams.update == [.integer(1)])
            #expect(teams.delete == [.integer(2)])
            #expect(
                teams.entries.first { $0.id == .integer(1) }?.attributes["wins"] == .integer(9))
            #expect(try store.send(edit, at: 1).reason == .stale)
        }
        _ = servers
    }
}
