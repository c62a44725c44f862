internal import CompressionKit
public import Foundation
public import MartletProtocol

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Exchanges over HTTP with Foundation's URLSession; bodies are compressed both ways.
public struct URLSessionTransport: LiveTransport, SnapshotSource, TokenTransport {
    private let endpoint: URL
    private let tokens: TokenKeeper
    private let answers: WholeAnswers
    private let live: DeltaEvents
    private let snapshots: SnapshotRequests

    /// Bodies shorter than this are sent as they are; gzip would not pay.
    private static let compressedFrom = 1_024

    /// - Parameters:
    ///   - server: The server's address, such as `https://sync.example.org`.
    ///   - token: The bearer token; nil where the server asks for none, or the provider is to be
    ///     asked.
    ///   - provider: Gives the next token where the server refuses one. What was refused is sent
    ///     once more with it.
    /// - Throws: `SyncError` `.rejected` for plain http to anything but this machine.
    public init(
        server: URL, token: String?, provider: TokenProvider? = nil
    ) throws(SyncError) {
        let host = server.host ?? ""
        let isLoopback = ["127.0.0.1", "::1", "[::1]", "localhost"].contains(host)
        guard server.scheme == "https" || (server.scheme == "http" && isLoopback) else {
            throw SyncError(
                .rejected,
                "The server's address must begin with https://; plain http is only for"
                    + " this machine (http://127.0.0.1).")
        }
        endpoint = server.appendingPathComponent("sync")
        let tokens = TokenKeeper(token, provider: provider)
        self.tokens = tokens
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 60
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpMaximumConnectionsPerHost = 2
        // One session for the transport's life: URLSession keeps the connection alive.
        answers = WholeAnswers(configuration: configuration)
        // A stream holds its connection for as long as it lives; exchanges have theirs.
        configuration.httpMaximumConnectionsPerHost = 1_024
        let streaming = AuthorizedSession(
            session: StreamingSession(configuration: configuration), tokens: tokens)
        live = DeltaEvents(server: server, session: streaming)
        snapshots = SnapshotRequests(server: server, session: streaming)
    }

    /// Requests go out with this token from now on; one that is refused meanwhile is sent once more
    /// with it.
    public func setToken(_ token: String?) async {
        await tokens.set(token)
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
            let socket = DeltaSocket(server: live.server, tokens: tokens, session: answers.session)
            if try await socket.listen(cursor, receive: receive) { return }
        #endif
        try await live.listen(cursor, receive: receive)
    }

    /// The DDL of the server's tables, from `GET /schema`.
    public func schema() async throws(SyncError) -> String {
        struct Document: Decodable {
            let ddl: String
        }
        let request = URLRequest(
            url: endpoint.deletingLastPathComponent().appendingPathComponent("schema"))
        do {
            let (data, response) = try await send(request)
            let status = response.statusCode
            guard status == 200 else {
                let problem = SyncCoder.decodeProblem([UInt8](data), status: status)
                throw SyncError(
                    status == 401 ? .unauthorized : .rejected,
                    "The server gave no schema: \(problem.detail)")
            }
            return try JSONDecoder().decode(Document.self, from: data).ddl
        } catch let error as SyncError {
            throw error
        } catch let failure as TransportFailure {
            throw SyncError(.offline, failure.message)
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
        if body.count >= Self.compressedFrom {
            request.setValue("gzip", forHTTPHeaderField: "Content-Encoding")
            request.httpBody = Data(Gzip.compress(body))
        } else {
            request.httpBody = Data(body)
        }
        do {
            let (data, response) = try await send(request)
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

    /// Sends a request with the token in use, and once more with the next one where that is refused:
    /// nothing was done then.
    private func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let token = try await tokens.token()
        let answer = try await send(request, token)
        guard answer.1.statusCode == 401, let next = try await tokens.replacement(for: token) else {
            return answer
        }
        return try await send(request, next)
    }

    private func send(
        _ request: URLRequest, _ token: String?
    ) async throws -> (Data, HTTPURLResponse) {
        var request = request
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        return try await answers.answer(to: request)
    }
}
