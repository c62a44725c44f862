import MartletModel
import MartletProtocol
import MartletRules
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// SQLite takes a name in double quotes that it does not know as a text. A policy that reads such a column
/// would compare with the column's name.
@Suite("Columns and tables that another program renames while a data set is open")
struct RenamedColumnTests {
    private static let script =
        "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, secrecy TEXT);"
    private static let rules = """
        CREATE POLICY open ON teams USING (secrecy <> 'top');
        CREATE POLICY office ON teams TO office USING (true);
        """
    private static let office = Principal(name: "o", user: "olga", roles: ["office"])
    private static let ann = Principal(name: "a", user: "ann")

    /// A public team and a hidden one.
    private func server() throws -> TestServer {
        let server = try TestServer(Self.script)
        server.node.policies = try RulesProgram(Self.rules, schema: server.store.schema)
        try server.send(
            SetText().create("teams", "-1", #""name":"public","secrecy":"none""#)
                .create("teams", "-2", #""name":"HIDDEN","secrecy":"top""#), from: "writer",
            as: Self.office)
        return server
    }

    private func pull(_ server: TestServer, _ client: String) throws -> Result<
        PreparedAnswer, Problem
    > {
        let request = #"{"clientId":"\#(client)","protocol":1,"maxRevision":0,"changeSets":[]}"#
        return try server.process([request], as: Self.ann, gzip: false)[0]
    }

    private func text(_ answer: Result<PreparedAnswer, Problem>) throws -> String {
        String(decoding: try answer.get().body, as: UTF8.self)
    }

    @Test(
        "nothing is answered, taken in or read until they are there again",
        arguments: [
            ("RENAME COLUMN secrecy TO sec", "RENAME COLUMN sec TO secrecy", "teams"),
            ("RENAME COLUMN id TO number", "RENAME COLUMN number TO id", "teams"),
            ("RENAME TO clubs", "RENAME TO teams", "clubs"),
        ])
    func renamed(away: String, back: String, table: String) throws {
        let server = try server()
        let before = try text(pull(server, "d1"))
        #expect(before.contains("public") && !before.contains("HIDDEN"))
        try server.execute("ALTER TABLE teams \(away)")
        try server.execute("UPDATE \(table) SET name = name || '.'")
        #expect(!server.node.takeExternalWrites(now: 5))
        let fault = try #require(server.node.takeFault())
        #expect(fault.kind == .changed && fault.description.contains("“teams”"), "\(fault)")
        for client in ["d1", "d2"] {
            let answer = try pull(server, client)
            guard case .failure(let problem) = answer else {
                Issue.record("\(client) is answered: \(try text(answer))")
                continue
            }
            #expect(problem.status == 503)
        }
        let set = SetText("s1", sequence: 1).update("teams", "2", #""revision":1,"name":"byann""#)
        let request = #"{"clientId":"d1","protocol":1,"maxRevision":1,"changeSets":[\#(set)]}"#
        guard case .failure = try server.process([request], as: Self.ann, gzip: false)[0] else {
            Issue.record("a set is decided")
            return
        }
        #expect(server.node.head.revision == 1)
        // The readers beside the writer.
        let log = EmbeddedLog(path: server.path, vfs: nil, schema: server.store.schema)
        #expect(throws: StorageFault.self) {
            try log.difference(DifferenceRequest(since: 0, maxBytes: 1 << 20)) { 1 }
        }
        let watch = EmbeddedWatch(store: server.store)
        #expect(try watch.look().tables == 1)
        #expect(try !watch.look().hasExternalWrites)
        try server.execute("ALTER TABLE \(table) \(back)")
        #expect(try watch.look().tables == 0)
        #expect(!server.node.takeExternalWrites(now: 6))
        let after = try text(pull(server, "d1"))
        #expect(after.contains("public.") && !after.contains("HIDDEN"))
    }

    @Test(
        "nothing is answered after a drop or an exchange of names, and no server makes empty ones in their place",
        arguments: [
            ["ALTER TABLE teams DROP COLUMN secrecy"],
            ["DROP TABLE teams"],
            [
                "ALTER TABLE teams DROP COLUMN secrecy",
                "ALTER TABLE teams RENAME COLUMN name TO secrecy",
            ],
            [
                "ALTER TABLE teams RENAME COLUMN secrecy TO other",
                "ALTER TABLE teams RENAME COLUMN name TO secrecy",
                "ALTER TABLE teams RENAME COLUMN other TO name",
            ],
            [
                "ALTER TABLE teams RENAME COLUMN secrecy TO other",
                "ALTER TABLE teams ADD COLUMN secrecy TEXT",
            ],
            [
                "CREATE TABLE made (id INTEGER PRIMARY KEY, secrecy TEXT, name TEXT)",
                "INSERT INTO made SELECT id, secrecy, name FROM teams", "DROP TABLE teams",
                "ALTER TABLE made RENAME TO teams",
            ],
        ])
    func droppedOrExchanged(statements: [String]) throws {
        let server = try server()
        let other = try Connection(path: server.path)
        for statement in statements { try other.execute(statement) }
        for client in ["d1", "d2"] {
            #expect(throws: Problem.self) { try pull(server, client).get() }
        }
        let log = EmbeddedLog(path: server.path, vfs: nil, schema: server.store.schema)
        #expect(throws: StorageFault.self) {
            try log.difference(DifferenceRequest(since: 0, maxBytes: 1 << 20)) { 1 }
        }
        let check = EmbeddedCheck(
            path: server.path, vfs: nil, schema: server.store.schema, unsendable: UnsendableRows())
        #expect(throws: StorageFault.self) {
            try check.compare(CheckRequest(revision: 1, types: []))
        }
        #expect(throws: StorageFault.self) {
            try SnapshotMaker(path: server.path).make { server.path + ".\($0)" }
        }
        #expect(try EmbeddedWatch(store: server.store).look().tables == 1)
        let tables = try SchemaMigration.ddl(of: other)
        #expect { try server.restart(script: Self.script) } throws: { error in
            "\(error)".contains("“teams”")
        }
        #expect(try SchemaMigration.ddl(of: other) == tables)
    }

    @Test("a server with a schema that lacks what is gone starts")
    func wanted() throws {
        let server = try server()
        try server.execute(
            """
            ALTER TABLE teams DROP COLUMN secrecy; ALTER TABLE teams RENAME COLUMN name TO title;
            """)
        #expect(throws: (any Error).self) { try server.restart(script: Self.script) }
        try server.restart(script: "CREATE TABLE teams (id INTEGER PRIMARY KEY, title TEXT);")
        #expect(try server.rows("SELECT title FROM teams") == "public\nHIDDEN")
        #expect(try EmbeddedWatch(store: server.store).look().tables == 0)
    }

    @Test("a table that another program made again is watched again once it is opened")
    func rebuilt() throws {
        let server = try server()
        try server.execute(
            """
            CREATE TABLE made (id INTEGER PRIMARY KEY, name TEXT, secrecy TEXT);
            INSERT INTO made SELECT * FROM teams; DROP TABLE teams; ALTER TABLE made RENAME TO teams;
            """)
        #expect(throws: Problem.self) { try pull(server, "d1").get() }
        #expect(try EmbeddedWatch(store: server.store).look().tables == 1)
        try server.restart()
        server.node.policies = try RulesProgram(Self.rules, schema: server.store.schema)
        try server.execute("UPDATE teams SET name = name || '.'")
        let answer = try text(pull(server, "d1"))
        #expect(answer.contains("public.") && !answer.contains("HIDDEN"))
    }

    @Test("a column, an index and a table that another program adds change nothing")
    func added() throws {
        let server = try server()
        try server.execute(
            """
            ALTER TABLE teams ADD COLUMN note TEXT; CREATE INDEX by_name ON teams (name);
            CREATE TABLE own (id INTEGER PRIMARY KEY); UPDATE teams SET name = name || '.'
            """)
        #expect(!server.node.takeExternalWrites(now: 5))
        #expect(server.node.takeFault() == nil)
        #expect(try text(pull(server, "d1")).contains("public."))
        #expect(try EmbeddedWatch(store: server.store).look().tables == 0)
    }
}
