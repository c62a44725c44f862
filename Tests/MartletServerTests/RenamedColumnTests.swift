import Foundation
import SQLiteKit
import Testing
import Waiting

@testable import MartletServer

@Suite(
    "A data set whose columns another program renames, and one that is served without its policies")
struct RenamedColumnTests {
    private static let rules = """
        CREATE POLICY every ON teams USING (founded > 1900);
        CREATE POLICY every ON players USING (true);
        """

    /// A server whose user sees a part, and his token.
    private func server(_ folder: TemporaryFolder) async throws -> (live: LiveServer, ann: String) {
        let store = try TokenStore(directory: folder.path)
        let ann = try store.create(dataSet: "league", user: "ann", roles: [], now: 1).token
        let live = try await LiveServer(folder: folder) {
            $0.rules = Array(RenamedColumnTests.rules.utf8)
        }
        return (live, ann)
    }

    private static func pull(_ client: String) -> String {
        #"{"clientId":"\#(client)","maxRevision":0,"changeSets":[]}"#
    }

    @Test("nobody is answered, readiness says so, and all goes on when the column is there again")
    func renamed() async throws {
        let folder = TemporaryFolder()
        let (live, ann) = try await server(folder)
        let path = folder.path + "/league.sqlite"
        #expect(try await live.sync(Self.pull("d1"), token: ann).status == 200)
        try Connection(path: path).execute("INSERT INTO teams VALUES (1, 'Owls', 1950, NULL)")
        try await waitUntil("the team is there") {
            try await live.sync(Self.pull("d1"), token: ann).body.contains("Owls")
        }
        try Connection(path: path).execute("ALTER TABLE teams RENAME COLUMN founded TO since")
        try await waitUntil("readiness says so") {
            try await live.request("GET", "/readyz").status == 503
        }
        try await live.untilLogged("“since”")
        for client in ["d1", "d2"] {
            #expect(try await live.sync(Self.pull(client), token: ann).status == 503)
        }
        try Connection(path: path).execute("ALTER TABLE teams RENAME COLUMN since TO founded")
        try await waitUntil("the server is ready") {
            try await live.request("GET", "/readyz").status == 200
        }
        #expect(try await live.sync(Self.pull("d2"), token: ann).body.contains("Owls"))
        await live.stop()
    }

    @Test("a dropped column is not made again, and nobody is answered")
    func dropped() async throws {
        let folder = TemporaryFolder()
        let (live, ann) = try await server(folder)
        let path = folder.path + "/league.sqlite"
        try Connection(path: path).execute("INSERT INTO teams VALUES (1, 'Owls', 1950, NULL)")
        try await waitUntil("the team is there") {
            try await live.sync(Self.pull("d1"), token: ann).body.contains("Owls")
        }
        try Connection(path: path).execute("ALTER TABLE teams DROP COLUMN founded")
        try await live.untilLogged("the column “founded” of the table “teams”")
        try await live.untilLogged("Give it its name and position back")
        for client in ["d1", "d2"] {
            #expect(try await live.sync(Self.pull(client), token: ann).status == 503)
        }
        #expect(try await live.request("GET", "/readyz").status == 503)
        #expect(!live.logLines.contains { $0.contains("The tables were taken up") })
        let columns = try Connection(path: path).text(
            "SELECT group_concat(name) FROM pragma_table_info('teams')")
        #expect(columns?.contains("founded") == false)
        let findings = try EmbeddedDoctor(directory: folder.path, now: 1).findings()
        #expect(findings.contains { $0.check == "tables" && $0.what.contains("“founded”") })
        await live.stop()
    }

    @Test("a start without the policies of before is told")
    func withoutPolicies() async throws {
        let folder = TemporaryFolder()
        let (live, ann) = try await server(folder)
        #expect(try await live.sync(Self.pull("d1"), token: ann).status == 200)
        #expect(!live.logLines.contains { $0.contains("with policies before") })
        await live.stop()
        let open = try await LiveServer(folder: folder)
        #expect(try await open.sync(Self.pull("d1"), token: ann).status != 500)
        try await open.untilLogged("The data set was served with policies before")
        await open.stop()
    }
}
