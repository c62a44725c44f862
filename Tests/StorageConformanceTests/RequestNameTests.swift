import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("An answer says whose it is")
struct RequestNameTests {
    private func answer(_ server: TestDataSet, _ json: String) throws -> SyncAnswer {
        try SyncCoder.decodeAnswer(try server.raw(json).body)
    }

    @Test(
        "client, revision and name of the request are repeated, with entries and with rows",
        arguments: StorageKind.all, ["", #""rows":true,"#])
    func repeatedRequestNames(kind: StorageKind, rows: String) async throws {
        let server = try await AnswerTests.server(kind)
        let named = try answer(
            server,
            #"{"clientId":"d3","maxRevision":690,\#(rows)"request":"a.7","changeSets":[]}"#)
        #expect(named.clientID == "d3" && named.from == 690 && named.request == "a.7")
        #expect(named.maxRevision == 700)
        let bare = try answer(server, #"{"maxRevision":690,"changeSets":[]}"#)
        #expect(bare.clientID == nil && bare.from == nil && bare.request == nil)
    }

    @Test("NUL in a name is refused, also in the fingerprint of rules", arguments: StorageKind.all)
    func nul(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, "CREATE TABLE teams (id INTEGER PRIMARY KEY)")
        for member in ["clientId", "rules"] {
            let request = "{\"\(member)\":\"a\\u0000b\",\"maxRevision\":0,\"changeSets\":[]}"
            guard case .failure(let problem) = try server.process([request])[0] else {
                Issue.record("NUL in \(member) is accepted")
                continue
            }
            #expect(problem.kind == "invalidRequest" && problem.detail.contains("NUL"))
        }
    }

    @Test(
        "is cut where the device says, and one set always comes", arguments: StorageKind.all,
        [1, 12_000, 100_000])
    func cutWhereAsked(kind: StorageKind, bytes: Int) async throws {
        let server = try await AnswerTests.server(kind)
        var reached: Revision = 0
        var answers = 0
        while true {
            let answer = try answer(
                server,
                #"{"clientId":"d3","maxRevision":\#(reached),"answerBytes":\#(bytes),"changeSets":[]}"#
            )
            answers += 1
            #expect(answer.changeSets.first?.revision == reached + 1)
            reached = answer.maxRevision
            if bytes == 1 { #expect(answer.changeSets.count == 1) }
            guard answer.more, answers < (bytes == 1 ? 30 : 700) else { break }
        }
        #expect(bytes == 1 ? answers == 30 : reached == 700)
    }
}
