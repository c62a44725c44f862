import Foundation
import MartletModel
import SQLiteKit
import Testing
import Waiting

@testable import MartletServer

@Suite("Answers in pieces to people who see a part", .timeLimit(.minutes(2)))
struct ViewPieceTests {
    private static let rules = """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY coach ON players TO coach USING (name LIKE 'A%');
        """

    /// A server with the players Anna and Canary. Coaches see the one.
    private struct Club {
        let live: LiveServer
        let tokens: [String: String]

        init() async throws {
            let folder = TemporaryFolder()
            let store = try TokenStore(directory: folder.path)
            var tokens: [String: String] = [:]
            for (user, role) in [("olga", "office"), ("ann", "coach")] {
                tokens[user] = try store.create(
                    dataSet: "league", user: user, roles: [role], now: 1
                ).token
            }
            self.tokens = tokens
            live = try await LiveServer(folder: folder) {
                $0.rules = Array(ViewPieceTests.rules.utf8)
            }
            try await save(
                """
                "create":[-1,-2],"update":[],"delete":[],"attributes":{\
                "-1":{"name":"Anna","team":-1},"-2":{"name":"Canary","team":-1}}
                """,
                team: #""create":[-1],"update":[],"delete":[],"attributes":{"-1":{"name":"T"}}"#)
        }

        func save(
            _ players: String,
            team: String = #""create":[],"update":[],"delete":[],"attributes":{}"#
        ) async throws {
            let answer = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams","players"],"teams":{\(team)},\
                "players":{\(players)}}]}
                """,
                token: tokens["olga"] ?? "")
            try #require(answer.status == 200 && !answer.body.contains("\"conflict\":true"))
        }

        func rename(_ id: Int, to name: String, at revision: Int) async throws {
            try await save(
                """
                "create":[],"update":[\(id)],"delete":[],"attributes":{\
                "\(id)":{"revision":\(revision),"name":"\(name)"}}
                """)
        }

        /// Asks for bytes of the answer to a body.
        /// - Parameter sends: Whether the request has the body, or says that it was sent.
        func piece(
            _ body: String, _ user: String, from start: Int, most: Int = 4_000_000,
            sends: Bool = false
        ) async throws -> LiveServer.Answer {
            let count = body.utf8.count
            return try await live.request(
                "POST",
                "/sync?upload=n&from=\(sends ? 0 : count)&total=\(count)&answer=\(start)&most=\(most)",
                headers: [
                    "Authorization: Bearer \(tokens[user] ?? "")", "Content-Type: application/json",
                ],
                body: sends ? Array(body.utf8) : [])
        }
    }

    /// A first request of a device.
    private static func pull(_ sets: String = "", revision: Int = 0) -> String {
        #"{"clientId":"d1","protocol":1,"maxRevision":\#(revision),"changeSets":[\#(sets)]}"#
    }

    @Test("end when a record has left the view, and the device asks again and loses nothing")
    func left() async throws {
        let club = try await Club()
        let body = Self.pull(
            """
            {"identifier":"d1-1","sequence":1,"types":["players"],"players":{"create":[-1],\
            "update":[],"delete":[],"attributes":{"-1":{"name":"Alba","team":1}}}}
            """)
        let first = try await club.piece(body, "ann", from: 0, most: 1, sends: true)
        #expect(first.status == 206 && first.body == "{")
        // It does not concern her; then another record enters the view.
        try await club.rename(2, to: "Canary2", at: 1)
        let second = try await club.piece(body, "ann", from: 1, most: 1)
        #expect(second.status == 206 && second.body == "\"")
        try await club.save(
            #""create":[-1],"update":[],"delete":[],"attributes":{"-1":{"name":"Abe","team":1}}"#)
        for start in [2, 3] {
            let piece = try await club.piece(body, "ann", from: start)
            #expect(piece.status == 206 && piece.body.contains("Anna"))
            #expect(piece.body.contains("Alba") && !piece.body.contains("Abe"))
        }
        try await club.rename(1, to: "Zanna", at: 1)
        let rest = try await club.piece(body, "ann", from: 4)
        #expect(rest.status == 202 && rest.body == #"{"received":0}"#)
        let again = try await club.piece(body, "ann", from: 0, sends: true)
        #expect(again.status == 206 && !again.body.contains("Anna"))
        #expect(again.body.contains("Alba") && again.body.contains("Abe"))
        #expect(again.body.contains("d1-1") && !again.body.contains("\"conflict\":true"))
        let state = try await club.live.state(token: club.tokens["olga"] ?? "")
        #expect(state.split(separator: "Alba").count == 2)
        await club.live.stop()
    }

    @Test("end when the user's roles are others")
    func roles() async throws {
        let club = try await Club()
        let body = Self.pull()
        let first = try await club.piece(body, "olga", from: 0, most: 1, sends: true)
        #expect(first.status == 206)
        try await club.rename(1, to: "Zanna", at: 1)
        // Nothing is hidden from her.
        let second = try await club.piece(body, "olga", from: 1)
        #expect(second.status == 206 && second.body.contains("Canary"))
        try Connection(path: TokenStore.path(in: club.live.folder.path)).execute(
            "UPDATE martlet_tokens SET roles = '' WHERE user = 'olga'")
        // The server looks at its tokens once in a second.
        try await waitUntil("the rest is refused") {
            let rest = try await club.piece(body, "olga", from: 1)
            return rest.status == 202 && rest.body == #"{"received":0}"#
        }
        await club.live.stop()
    }

    @Test("go on if the answer is a problem")
    func problem() async throws {
        let club = try await Club()
        let body = Self.pull(revision: 99)
        let first = try await club.piece(body, "ann", from: 0, most: 1, sends: true)
        #expect(first.status == 206 && first.headers["martlet-answer"]?.hasPrefix("409 ") == true)
        let rest = try await club.piece(body, "ann", from: 1)
        #expect(rest.status == 206 && rest.body.contains("revisionAhead"))
        await club.live.stop()
    }
}
