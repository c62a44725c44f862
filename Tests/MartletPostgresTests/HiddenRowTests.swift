import MartletModel
import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

/// A row that row-level security hides from the server's role would look like a deleted one.
@Suite("Row-level security that begins to hide rows from a running server")
struct HiddenRowTests {
    private static func on(
        _ body:
            @escaping @Sendable (_ server: TestStore, _ owner: PostgresConnection) throws ->
            Void
    ) async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking {
            let owner = try TestStore(
                database.address, StoreTests.script, tables: StoreTests.tables, adopts: true)
            try owner.send(
                TestStore.set(
                    "teams", create: ["-1", "-2"], #""-1":{"name":"Red"},"-2":{"name":"Blue"}"#))
            let name = "limited_\(owner.address["dbname"] ?? "")"
            try owner.other.execute(
                """
                CREATE ROLE \(name) LOGIN PASSWORD 'limited';
                GRANT USAGE ON SCHEMA _martlet TO \(name);
                GRANT ALL ON ALL TABLES IN SCHEMA _martlet, public TO \(name);
                GRANT ALL ON ALL SEQUENCES IN SCHEMA _martlet, public TO \(name);
                CREATE POLICY red ON teams USING (name = 'Red');
                """)
            let address = owner.address.setting("user", name).setting("password", "limited")
            try body(try TestStore(address), owner.other)
        }
    }

    @Test("nothing is answered, and nothing is taken for deleted, until it is switched off")
    func switchedOn() async throws {
        try await Self.on { server, owner in
            let pull = #"{"clientId":"d1","maxRevision":1,"changeSets":[]}"#
            #expect(try server.process([pull])[0].get().maxRevision == 1)
            try owner.execute("ALTER TABLE teams ENABLE ROW LEVEL SECURITY")
            try owner.execute("UPDATE teams SET name = name || '?'")
            #expect(!server.node.takeExternalWrites(now: 5))
            let fault = server.fault
            #expect(fault.contains("row-level security"), "\(fault)")
            #expect(fault.contains("BYPASSRLS"), "\(fault)")
            let set = TestStore.set("teams", update: ["2"], #""2":{"revision":1,"wins":3}"#)
            for request in [pull, TestStore.request("d1", set, at: 1)] {
                guard case .failure(let problem) = try server.process([request])[0] else {
                    Issue.record("answered: \(request)")
                    continue
                }
                #expect(problem.status == 503 && problem.kind == "storage")
            }
            // A reader does not know yet that the tables have changed.
            #expect(throws: StorageFault.self) {
                try server.log.difference(DifferenceRequest(since: 0, maxBytes: 1 << 20)) { 1 }
            }
            #expect(try server.rows("SELECT revision FROM _martlet.dataset") == "1")
            #expect(
                try server.rows("SELECT count(*) FROM _martlet.records WHERE deleted") == "0")
            try owner.execute("ALTER TABLE teams DISABLE ROW LEVEL SECURITY")
            #expect(!server.node.takeExternalWrites(now: 6))
            let answer = try server.process([pull])[0].get()
            let changes = try #require(answer.changeSets.last?.types.first)
            #expect(changes.update == [.integer(1), .integer(2)] && changes.delete.isEmpty)
        }
    }

    @Test("a drain that has begun fails, and leaves the writes noted")
    func drain() async throws {
        try await Self.on { server, owner in
            var options = PostgresOptions()
            options.allowsHiddenRows = false
            let connection = try PostgresConnection(server.address, options)
            defer { connection.close() }
            let tables = try PostgresSchema.read(connection)
            let drain = ExternalDrain(
                schema: tables.schema, tables: tables.tables, unsendable: UnsendableRows())
            try owner.execute(
                """
                UPDATE teams SET name = name || '?';
                ALTER TABLE teams ENABLE ROW LEVEL SECURITY
                """)
            try connection.execute("BEGIN")
            let error = #expect(throws: PostgresError.self) {
                try drain.entries(
                    on: connection, head: server.node.head, now: 1, maxBytes: 1 << 20)
            }
            #expect(error?.sqlState == "42501")
        }
    }

    @Test("a role that loses BYPASSRLS is not served")
    func bypass() async throws {
        try await Self.on { server, owner in
            let name = try #require(server.address["user"])
            try owner.execute("ALTER ROLE \(name) BYPASSRLS")
            try owner.execute("ALTER TABLE teams ENABLE ROW LEVEL SECURITY")
            let pull = #"{"clientId":"d1","maxRevision":1,"changeSets":[]}"#
            #expect(try server.process([pull])[0].get().maxRevision == 1)
            try owner.execute("ALTER ROLE \(name) NOBYPASSRLS")
            try owner.execute("UPDATE teams SET name = name || '?'")
            guard case .failure(let problem) = try server.process([pull])[0] else {
                Issue.record("answered")
                return
            }
            #expect(problem.status == 503)
            try owner.execute("ALTER ROLE \(name) BYPASSRLS")
            #expect(try server.process([pull])[0].get().maxRevision == 2)
        }
    }
}
