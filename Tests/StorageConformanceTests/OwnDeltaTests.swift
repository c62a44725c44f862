import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("A device that listens")
struct OwnDeltaTests {
    private static let schema = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"

    private static func batch(
        for client: String, from node: DataSetNode, _ server: TestDataSet
    ) throws -> DeltaBatch {
        var request = DeltaRequest(principal: .ada, since: 0)
        request.clientID = client
        var outcome = node.feed.deltas(request)
        if case .needsLog = outcome { outcome = server.reader(of: node.feed).deltas(request) }
        guard case .batch(let bytes) = outcome else { throw Unexpected() }
        if let made = node.feed.madeDeltas(request) { #expect(made.json == bytes.json) }
        return try SyncCoder.decodeDeltaBatch(bytes.json)
    }

    private struct Unexpected: Error {}

    @Test(
        "is never sent its own set as another device's, also if the server does not remember it",
        arguments: StorageKind.all)
    func restarted(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)
        try server.send(set, at: 0)
        try server.restart()
        // A program that names no device gets the deltas, and the batch is kept for others.
        var anonymous = DeltaRequest(principal: .ada, since: 0)
        anonymous.byteLimit = Limits.answerBytes
        guard case .batch(let plain) = server.reader().deltas(anonymous) else { throw Unexpected() }
        #expect(!plain.isBehind)
        // The device is told to exchange, and so is a stranger: the server does not know yet that he is one.
        for client in ["d1", "d9"] {
            let batch = try Self.batch(for: client, from: server.node, server)
            #expect(batch.isBehind && batch.deltas.isEmpty)
        }
        for client in ["d1", "d9"] { _ = try server.exchange([], from: client, at: 0) }
        let own = try Self.batch(for: "d1", from: server.node, server)
        #expect(own.deltas.map(\.identifier) == ["a"] && own.deltas.map(\.oldID) == [-1])
        let other = try Self.batch(for: "d9", from: server.node, server)
        #expect(!other.isBehind && other.deltas.map(\.identifier) == [nil])
    }
}
