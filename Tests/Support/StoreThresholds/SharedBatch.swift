internal import AllocationCounter
internal import Foundation
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import WebSocketKit

/// A batch that was made for one listener, found and framed for others.
enum SharedBatch {
    static let name = "a batch of the stream for 1,000 more listeners over WebSocket"

    static func counts(in folder: URL) throws -> Counts {
        let store = try EmbeddedStore(
            path: folder.appendingPathComponent("stream.sqlite").path,
            script: "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);",
            identity: "0123456789abcdef", now: 1)
        let node = try DataSetNode(store: store)
        let body = """
            {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],"update":[],\
            "delete":[],"attributes":{"-1":{"name":"Falcons"}}}}]}
            """
        let request = try SyncCoder.decodeRequest(Array(body.utf8))
        let principal = Principal(name: "counter")
        _ = node.process(
            [AdmittedRequest(principal: principal, request: request, source: Array(body.utf8))],
            now: 1)
        let deltaRequest = DeltaRequest(principal: principal, since: 0)
        guard case .batch = node.feed.deltas(deltaRequest) else {
            throw StoreError(.inconsistent, "There is no batch.")
        }
        let sessions = (0..<1_000).map { _ in
            WebSocketSession(role: .server, maxMessageByteCount: 1_024)
        }
        let before = allocations_of_thread()
        var bytes = 0
        for session in sessions {
            guard let made = node.feed.madeDeltas(deltaRequest), session.send(text: made.json)
            else {
                throw StoreError(.inconsistent, "The batch was not kept.")
            }
            bytes += session.takeOutput().count
        }
        return Counts(
            prepared: 0, steps: 0, allocations: Int(allocations_of_thread() - before),
            bytes: bytes)
    }
}
