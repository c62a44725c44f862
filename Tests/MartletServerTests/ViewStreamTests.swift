import Foundation
import MartletModel
import SQLiteKit
import SocketTalk
import Testing
import WebSocketKit

@testable import MartletServer

@Suite("Streams of people who see a part", .timeLimit(.minutes(2)))
struct ViewStreamTests {
    private static let rules = """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY office ON players TO office USING (true);
        """

    @Test("a stream whose user loses a role sends him to the exchange, and no hidden record")
    func lostRole() async throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        func token(_ user: String) throws -> String {
            try store.create(dataSet: "league", user: user, roles: ["office"], now: 1).token
        }
        let (olga, ann) = (try token("olga"), try token("ann"))
        let live = try await LiveServer(folder: folder) {
            $0.rules = Array(ViewStreamTests.rules.utf8)
        }
        func save(_ name: String) async throws {
            let answer = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams","players"],"teams":{\
                "create":[-1],"update":[],"delete":[],"attributes":{"-1":{"name":"Team \(name)"}}},"players":{\
                "create":[-1],"update":[],"delete":[],"attributes":{"-1":{"name":"\(name)","team":-1}}}}]}
                """, token: olga)
            try #require(answer.status == 200 && !answer.body.contains("\"conflict\":true"))
        }
        let socket = TestSocket(RawClient(port: live.port))
        #expect(
            await socket.open("/deltas?since=0", ["Authorization: Bearer \(ann)"])
                .hasPrefix("HTTP/1.1 101 "))
        try await save("First")
        #expect(await socket.text()?.contains("First") == true)
        try Connection(path: TokenStore.path(in: folder.path)).execute(
            "UPDATE martlet_tokens SET roles = '' WHERE user = 'ann'")
        // The server looks at its tokens once in a second.
        var isSent = false
        for number in 0..<40 where !isSent {
            try await Task.sleep(for: .milliseconds(100))
            try await save("Note\(number)")
            isSent = await socket.text()?.contains("\"behind\":true") == true
        }
        #expect(isSent)
        try await save("Canary")
        #expect(await socket.text()?.contains("Canary") == false)
        await socket.close(.normal)
        await live.stop()
    }
}
