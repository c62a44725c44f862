import MartletServerCore
import SetTexts
import Testing

@Suite("Random batches")
struct RandomTests {
    @Test(
        "every storage decides alike, and keeps the same log",
        arguments: StorageKind.all, UInt64(0)..<3)
    func alike(kind: StorageKind, seed: UInt64) async throws {
        let server = try await TestDataSet(kind, RandomSets.schema)
        var sets = RandomSets(seed: seed)
        for _ in 0..<30 {
            let revisions = try RandomSets.revisions(on: server)
            _ = try server.process(
                sets.requests(at: server.node.head.revision, revisions: revisions))
        }
        #expect(server.node.head.revision > 20)
        _ = try server.answer(#"{"clientId":"d1","maxRevision":0,"changeSets":[]}"#)
    }
}
