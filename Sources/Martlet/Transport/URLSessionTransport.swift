package import Foundation
package import MartletDevice
internal import MartletModel
package import MartletProtocol
internal import Synchronization

/// Exchanges over HTTP, with libcurl on Linux and with Foundation's URLSession on other platforms.
/// It compresses bodies in both directions.
package struct URLSessionTransport: LiveTransport, SnapshotSource, TokenTransport {
    private let server: URL
    private let tokens: TokenKeeper
    private let session: AuthorizedSession
    private let pieces = PieceSize()

    /// Creates a transport. It opens no connection yet.
    /// - Parameters:
    ///   - server: The server's address, such as `https://sync.example.org`.
    ///   - token: The bearer token; nil if the server requires none, or if the provider gives it.
    ///   - provider: Returns the next token if the server refuses one. The refused request is sent
    ///     once more with it.
    /// - Throws: `SyncError` `.address` if the address is neither https, nor http to this machine.
    package init(
        server: URL, token: String?, provider: TokenProvider? = nil
    ) throws(SyncError) {
        let host = server.host ?? ""
        let isLoopback = ["127.0.0.1", "::1", "[::1]", "localhost"].contains(host)
        guard server.scheme == "https" || (server.scheme == "http" && isLoopback) else {
            throw SyncError(
                .address,
                "The server's address must begin with https://; plain http is only for"
                    + " this machine (http://127.0.0.1).")
        }
        self.server = server
        tokens = TokenKeeper(token, provider: provider)
        // There is one session for the transport's life, so that it keeps connections alive.
        session = AuthorizedSession(session: StreamingSession(), tokens: tokens)
    }

    private var snapshots: SnapshotRequests {
        SnapshotRequests(server: server, session: session)
    }

    /// Sets the token that requests use from now on. A request that is refused meanwhile is sent
    /// once more with it.
    package func setToken(_ token: String?) async {
        await tokens.set(token)
    }

    /// Fetches the newest manifest from `/snapshot`.
    /// - Throws: `TransportFailure` if no complete answer arrived, or the server refused.
    package func manifest(
        client: String? = nil
    ) async throws(TransportFailure) -> SnapshotManifest? {
        try await snapshots.manifest(client: client)
    }

    /// Begins to fetch a file below `/snapshot/`.
    /// - Throws: `TransportFailure`, with the problem `noSnapshotFile` if the file is gone.
    package func open(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, client: String? = nil
    ) async throws(TransportFailure) -> SnapshotBytes {
        try await snapshots.open(part, from: offset, tag: tag, client: client)
    }

    /// Listens to `/deltas`: over a WebSocket if URLSession supports them and nothing on the
    /// network blocks them, otherwise as server-sent events.
    /// - Throws: `TransportFailure`; see `LiveTransport`.
    package func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        #if !os(Linux)
            let socket = DeltaSocket(
                server: server, tokens: tokens, session: session.session.loader.session)
            if try await socket.listen(cursor, receive: receive) { return }
        #endif
        try await DeltaEvents(server: server, session: session).listen(cursor, receive: receive)
    }

    /// Returns the DDL of the server's tables, from `GET /schema`.
    /// - Throws: `SyncError` if no complete answer arrived, or the server refused.
    package func schema() async throws(SyncError) -> String {
        try await serverTables().ddl
    }

    /// Returns the server's tables, and the identity of their data set.
    func serverTables() async throws(SyncError) -> ServerTables {
        do throws(TransportFailure) {
            var request = StreamingRequest(url: server.appendingPathComponent("schema"))
            request.inflates = true
            let answer = try await session.start(request)
            let body = try await answer.whole(limit: Limits.inflatedBytes)
            guard answer.status == 200 else { throw TransportFailure(refusal: answer, body) }
            do {
                return try JSONDecoder().decode(ServerTables.self, from: Data(body))
            } catch {
                throw TransportFailure(
                    strangersAnswer: answer, body, "schema", member: "ddl", error)
            }
        } catch {
            throw SyncError(error)
        }
    }

    /// Posts the body to `/sync` and waits for the whole answer.
    /// - Throws: `TransportFailure` if no complete answer arrived.
    package func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        try await exchange(body, progress: {})
    }

    /// Posts the body to `/sync` and waits for the whole answer as long as bytes are sent or
    /// received.
    /// - Throws: `TransportFailure` if no complete answer arrived.
    package func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer {
        var request = StreamingRequest(
            method: "POST", url: server.appendingPathComponent("sync"))
        request.headers["Content-Type"] = "application/json"
        request.inflates = true
        request.silenceBeforeHead = .seconds(120)
        request.progress = progress
        let sent = SentBody(body)
        if sent.isGzip { request.headers["Content-Encoding"] = "gzip" }
        request.body = sent.bytes
        if pieces.size == nil {
            let hasMoved = Mutex(false)
            request.progress = {
                hasMoved.withLock { $0 = true }
                progress()
            }
            var isAnswered = false
            do throws(TransportFailure) {
                let answer = try await answer(to: request, &isAnswered)
                guard answer.isRefusalOfSize, pieces.refused(sent.bytes.count) else {
                    return answer
                }
            } catch {
                pieces.failed()
                // If the network cut a long body, or an answer, it may still carry pieces of it.
                // Another process may make the next exchange, so the pieces are tried now.
                let isCutUp = hasMoved.withLock(\.self) && sent.bytes.count > PieceSize.first
                guard isCutUp || isAnswered, !Task.isCancelled else { throw error }
            }
            request.progress = progress
        }
        var exchange = PiecewiseExchange(request, session: session, pieces: pieces)
        return try await exchange.run()
    }

    /// Sends a request and reads the whole answer.
    /// - Parameter isAnswered: Set when the head of an answer with status 200 has arrived.
    private func answer(
        to request: StreamingRequest, _ isAnswered: inout Bool
    ) async throws(TransportFailure) -> TransportAnswer {
        let answer = try await session.start(request)
        isAnswered = answer.status == 200
        return TransportAnswer(
            status: answer.status, body: try await answer.whole(limit: Limits.inflatedBytes),
            retryAfter: answer.retryAfter)
    }
}
