import SQLiteKit
import Testing

@testable import MartletServer

@Suite("A file whose tables or columns have another order than the schema")
struct TableOrderTests {
    private static let teams =
        "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, owner TEXT);"
    private static let members =
        "CREATE TABLE members (id INTEGER PRIMARY KEY, person TEXT, team INTEGER);"
    private static let notices = "CREATE TABLE notices (id INTEGER PRIMARY KEY, text TEXT);"
    private static let rules = """
        CREATE POLICY own ON teams USING (
            owner = martlet_user() OR id IN (SELECT team FROM members WHERE person = martlet_user()));
        CREATE POLICY self ON members USING (person = martlet_user());
        CREATE POLICY every ON notices USING (true);
        """
    private static let rows = """
        INSERT INTO teams VALUES (1, 'Owls', 'olga'), (2, 'HIDDEN', 'olga');
        INSERT INTO members VALUES (1, 'ann', 1), (2, 'HIDDEN', 2);
        INSERT INTO notices VALUES (1, 'Welcome');
        """

    private static func server(
        _ folder: TemporaryFolder, _ schema: String, _ rules: String
    ) async throws -> LiveServer {
        try await LiveServer(folder: folder) {
            $0.schema = schema
            $0.rules = Array(rules.utf8)
        }
    }

    private static func sees(_ live: LiveServer, _ client: String, _ token: String) async throws {
        let answer = try await live.sync(
            #"{"clientId":"\#(client)","maxRevision":0,"changeSets":[]}"#, token: token)
        #expect(answer.status == 200)
        #expect(answer.body.contains("Owls") && answer.body.contains("Welcome"))
        #expect(answer.body.contains(#""person":"ann""#) && !answer.body.contains("HIDDEN"))
    }

    @Test(
        "shows each person what the policies show",
        arguments: [
            // Another order in the schema, a new table before the others, and a new column amid others.
            (notices + teams + members, rules, ""),
            (
                "CREATE TABLE first (id INTEGER PRIMARY KEY);" + teams + members + notices,
                rules + "CREATE POLICY every ON first USING (true);", ""
            ),
            (
                teams.replacing("name TEXT", with: "colour TEXT, name TEXT") + members + notices,
                rules, ""
            ),
            // Another program rebuilds a table, which is the last one then.
            (
                teams + members + notices, rules,
                """
                BEGIN; \(teams.replacing("teams", with: "new_teams"))
                INSERT INTO new_teams SELECT * FROM teams; DROP TABLE teams;
                ALTER TABLE new_teams RENAME TO teams; COMMIT;
                """
            ),
        ])
    func order(schema: String, rules: String, script: String) async throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        let ann = try store.create(dataSet: "league", user: "ann", roles: [], now: 1).token
        let first = try await Self.server(
            folder, Self.teams + Self.members + Self.notices, Self.rules)
        let path = folder.path + "/league.sqlite"
        #expect(
            try await first.sync(#"{"maxRevision":0,"changeSets":[]}"#, token: ann).status == 200)
        try Connection(path: path).execute(Self.rows)
        await first.stop()
        try Connection(path: path).execute(script)
        let second = try await Self.server(folder, schema, rules)
        try await Self.sees(second, "d1", ann)
        let added = "INSERT INTO teams (id, name, owner) VALUES (3, 'HIDDEN', 'olga')"
        try Connection(path: path).execute(added)
        await second.stop()
        let third = try await Self.server(folder, schema, rules)
        try await Self.sees(third, "d1", ann)
        try await Self.sees(third, "d2", ann)
        await third.stop()
    }
}
