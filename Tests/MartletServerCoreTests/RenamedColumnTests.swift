import MartletModel
import MartletProtocol
import MartletRules
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
