import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Answers that the writer leaves to the reader")
struct UnreadAnswerTests {
    /// A server with more entries than a node holds when it opens, just started again.
    private func restarted() throws -> TestServer {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT)")
        for number in 1...600 {
            try server.send(
                SetText("s\(number)", sequence: number)
                    .create("teams", "-\(number)", #""name":"T""#))
        }
        try server.restart()
        return server
    }

    private func decided(
        _ server: TestServer, client: String, sets: String
    ) throws -> NodeAnswer {
        let request = try server.admitted(
            #"{"clientId":"\#(client)","maxRevision":10,"changeSets":[\#(sets)]}"#)
        return try server.node.decide([request], now: 5)[0].get()
    }

    private func read(_ answer: NodeAnswer, _ server: TestServer) throws -> SyncAnswer? {
        guard case .unread(let unread) = answer else { return nil }
        let reader = LogReader(feed: server.node.feed, store: server.store)
        let finished = try reader.answer(unread).get()
        #expect(finished.accepted == 2)
        #expect(finished.refused == [.stale: 1])
        return try SyncCoder.decodeAnswer(finished.body)
    }

    @Test("a device far behind that sends: its fates and what it lacks, as the writer would answer")
    func sends() throws {
        let server = try restarted()
        let sets = [
            SetText("own1", sequence: 1).create("teams", "-1", #""name":"O""#),
            SetText("own2", sequence: 2).update("teams", "1", #""revision":0,"name":"stale""#),
            SetText("own3", sequence: 3).create("teams", "-2", #""name":"P""#),
        ].map(\.description).joined(separator: ",")
        let first = try decided(server, client: "far", sets: sets)
        #expect(server.node.head.revision == 602)
        let answer = try #require(try read(first, server))
        #expect(answer.maxRevision == 602)
        #expect(
            answer.changeSets.compactMap { $0.conflict == true ? nil : $0.revision }
                == Array(11...602))
        #expect(answer.changeSets.filter { $0.conflict == true }.map(\.identifier) == ["own2"])
        // The same again, whole from the writer.
        let again = try server.answer(
            #"{"clientId":"far","maxRevision":10,"changeSets":[\#(sets)]}"#)
        #expect(again.changeSets == answer.changeSets)
    }

    @Test("what is in memory is answered at once")
    func inMemory() throws {
        let server = try restarted()
        let request = try server.admitted(#"{"clientId":"near","maxRevision":590,"changeSets":[]}"#)
        guard case .made(let answer) = try server.node.decide([request], now: 5)[0].get() else {
            Issue.record("it was left to the reader")
            return
        }
        #expect(answer.revision == 600)
    }
}
