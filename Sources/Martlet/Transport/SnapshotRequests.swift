internal import Foundation
internal import MartletModel
internal import MartletProtocol

/// Performs `GET /snapshot` and `GET /snapshot/HASH`.
struct SnapshotRequests: Sendable {
    /// The server's address.
    let server: URL
    let session: AuthorizedSession

    /// The maximum bytes of a file that may wait to be written.
    private static let bufferBytes = 32 << 20

    func manifest(client: String?) async throws(TransportFailure) -> SnapshotManifest? {
        let answer = try await session.start(request("snapshot", client))
        let body = try await whole(answer)
        guard answer.status == 200 else {
            let refusal = TransportFailure(refusal: answer, body)
            // Other programs answer 404 for addresses that they do not know.
            if refusal.problem?.kind == "noSnapshot" { return nil }
            throw refusal
        }
        do {
            return try SyncCoder.decodeSnapshotManifest(body)
        } catch {
            throw TransportFailure(
                strangersAnswer: answer, body, "list of snapshots", member: "lineage", error)
        }
    }

    /// Begins to fetch the gzip encoding of a part.
    /// - Parameter tag: The entity tag of the earlier bytes; nil if they have none. The address
    ///   contains the hash of the file, so bytes without a tag can be continued too.
    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String?
    ) async throws(TransportFailure) -> SnapshotBytes {
        var request = request("snapshot/\(part.hash)", client)
        request.headers["Accept"] = "application/gzip"
        request.bufferBytes = Self.bufferBytes
        if offset > 0 {
            request.headers["Range"] = "bytes=\(offset)-"
            if let tag { request.headers["If-Range"] = tag }
        }
        let answer = try await session.start(request)
        let total = part[coding: "gzip"]?.sum.bytes
        let length = answer.headers["content-length"].flatMap { Int64($0) }
        let isFile = answer.headers["content-type"] == "application/gzip"
        switch answer.status {
        case 200:
            guard isFile, length == nil || length == total else { throw Self.unrecognized(200) }
            return bytes(of: answer, from: 0)
        case 206:
            let range = answer.headers["content-range"] ?? ""
            guard isFile, range.hasPrefix("bytes \(offset)-"),
                length == nil || length == total.map({ $0 - offset })
            else { throw Self.unrecognized(206) }
            return bytes(of: answer, from: offset)
        default:
            throw TransportFailure(refusal: answer, try await whole(answer))
        }
    }

    /// Returns the failure for a page in place of the file, or for another range than was
    /// requested.
    private static func unrecognized(_ status: Int) -> TransportFailure {
        TransportFailure(message: Problem.unrecognized(status: status).detail)
    }

    private func request(_ path: String, _ client: String?) -> StreamingRequest {
        StreamingRequest(url: server.appending(path, query: [("client", client)]))
    }

    private func bytes(of answer: StreamingAnswer, from offset: Int64) -> SnapshotBytes {
        let chunks = answer.chunks
        return SnapshotBytes(offset: offset, tag: answer.headers["etag"]) {
            () async throws(TransportFailure) in
            var iterator = chunks.makeAsyncIterator()
            return try await iterator.next()
        }
    }

    private func whole(_ answer: StreamingAnswer) async throws(TransportFailure) -> [UInt8] {
        try await answer.whole(limit: Limits.manifestBytes)
    }
}
