internal import Foundation
internal import MartletProtocol

/// `GET /snapshot` and `GET /snapshot/HASH`.
struct SnapshotRequests: Sendable {
    /// The server's address.
    let server: URL
    let session: AuthorizedSession

    /// Bytes of a file that may wait to be written.
    private static let bufferBytes = 32 << 20

    func manifest() async throws(TransportFailure) -> SnapshotManifest? {
        let answer = try await session.start(request("snapshot"))
        let body = try await whole(answer)
        guard answer.status == 200 else {
            let refusal = refusal(answer, body)
            // A server older than snapshots has nothing at this address.
            if answer.status == 404 { return nil }
            throw refusal
        }
        do {
            return try SyncCoder.decodeSnapshotManifest(body)
        } catch {
            throw TransportFailure(
                message: "The server's list of snapshots cannot be read: \(error)", status: 200)
        }
    }

    func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?
    ) async throws(TransportFailure) -> SnapshotBytes {
        var request = request("snapshot/\(part.hash)")
        request.headers["Accept"] = "application/gzip"
        request.bufferBytes = Self.bufferBytes
        if offset > 0, let tag {
            request.headers["Range"] = "bytes=\(offset)-"
            request.headers["If-Range"] = tag
        }
        let answer = try await session.start(request)
        switch answer.status {
        case 200:
            return bytes(of: answer, from: 0)
        case 206:
            guard answer.headers["content-range"]?.hasPrefix("bytes \(offset)-") == true else {
                throw TransportFailure(
                    message: "The server sent another range than was asked for.", status: 206)
            }
            return bytes(of: answer, from: offset)
        default:
            throw refusal(answer, try await whole(answer))
        }
    }

    private func request(_ path: String) -> StreamingRequest {
        StreamingRequest(url: server.appendingPathComponent(path))
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
        var body: [UInt8] = []
        for try await chunk in answer.chunks {
            body += chunk
            guard body.count <= Limits.manifestBytes else {
                throw TransportFailure(message: "The server's answer is too long.")
            }
        }
        return body
    }

    private func refusal(_ answer: StreamingAnswer, _ body: [UInt8]) -> TransportFailure {
        let problem = SyncCoder.decodeProblem(body, status: answer.status)
        return TransportFailure(
            message: problem.detail, status: answer.status, problem: problem,
            retryAfter: answer.headers["retry-after"].flatMap { Int64($0) } ?? problem.retryAfter)
    }
}
