internal import CompressionKit
public import Foundation
public import MartletProtocol

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Exchanges over HTTP with Foundation's URLSession; bodies are compressed both ways.
public struct URLSessionTransport: LiveTransport, SnapshotSource {
    private let endpoint: URL
    private let token: String?
    private let session: URLSession
    private let live: DeltaEvents
    private let snapshots: SnapshotRequests

    /// Bodies shorter than this are sent as they are; gzip would not pay.
    private static let compressedFrom = 1_024

    /// - Parameters:
    ///   - server: The server's address, such as `https://sync.example.org`.
    ///   - token: The bearer token; nil where the server asks for none.
    /// - Throws: `SyncError` `.rejected` for plain http to anything but this machine.
    public init(server: URL, token: String?) throws(SyncError) {
        let host = server.host ?? ""
        let isLoopback = ["127.0.0.1", "::1", "[::1]", "localhost"].contains(host)
        guard server.scheme == "https" || (server.scheme == "http" && isLoopback) else {
            throw SyncError(
                .rejected,
                "The server's address must begin with https://; plain http is only for"
                    + " this machine (http://127.0.0.1).")
        }
        endpoint = server.appendingPathComponent("sync")
        self.token = token
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 60
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpMaximumConnectionsPerHost = 2
        // One session for the transport's life: URLSession keeps the connection alive.
        session = URLSession(configuration: configuration)
        // A stream holds its connection for as long as it lives; exchanges have theirs.
        configuration.httpMaximumConnectionsPerHost = 1_024
        let streaming = StreamingSession(configuration: configuration)
        live = DeltaEvents(server: server, token: token, session: streaming)
        snapshots = SnapshotRequests(server: server, token: token, session: streaming)
    }

    /// Asks `/snapshot`.
    public func manifest() async throws(TransportFailure) -> SnapshotManifest? {
        try await snapshots.manifest()
    }

    /// Asks for a file below `/snapshot/`.
    public func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?
    ) async throws(TransportFailure) -> SnapshotBytes {
        try await snapshots.open(part, from: offset, tag: tag)
    }

    /// Listens to `/deltas`: over a WebSocket where URLSession has them and nothing on the way is
    /// against it, else as server-sent events.
    public func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        #if !canImport(FoundationNetworking)
            let socket = DeltaSocket(server: live.server, token: token, session: session)
            if try await socket.listen(cursor, receive: receive) { return }
        #endif
        try await live.listen(cursor, receive: receive)
    }

    /// The DDL of the server's tables, from `GET /schema`.
    public func schema() async throws(SyncError) -> String {
        struct Document: Decodable {
            let ddl: String
        }
        var request = URLRequest(
            url: endpoint.deletingLastPathComponent().appendingPathComponent("schema"))
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        do {
            let (data, response) = try await session.data(for: request)
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            guard status == 200 else {
                let problem = SyncCoder.decodeProblem([UInt8](data), status: status)
                throw SyncError(
                    status == 401 ? .unauthorized : .rejected,
                    "The server gave no schema: \(problem.detail)")
            }
            return try JSONDecoder().decode(Document.self, from: data).ddl
        } catch let error as SyncError {
            throw error
        } catch {
            throw SyncError(
                .offline, "The server's schema could not be read: \(error.localizedDescription)")
        }
    }

    /// Posts the body to `/sync` and waits for the whole answer.
    public func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        var request = URLRequest(url: endpoint)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("gzip", forHTTPHeaderField: "Accept-Encoding")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        if body.count >= Self.compressedFrom {
            request.setValue("gzip", forHTTPHeaderField: "Content-Encoding")
            request.httpBody = Data(Gzip.compress(body))
        } else {
            request.httpBody = Data(body)
        }
        do {
            let (data, response) = try await session.data(for: request)
            guard let response = response as? HTTPURLResponse else {
                throw TransportFailure(message: "The server's answer was not HTTP.")
            }
            let wait = response.value(forHTTPHeaderField: "Retry-After").flatMap { Int64($0) }
            return TransportAnswer(
                status: response.statusCode, body: [UInt8](data), retryAfter: wait)
        } catch let failure as TransportFailure {
            throw failure
        } catch {
            throw TransportFailure(
                message: "The server could not be reached: \(error.localizedDescription)")
        }
    }
}
