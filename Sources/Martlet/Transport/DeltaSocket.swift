internal import MartletDevice

// URLSession on Linux has the types of WebSockets, but cannot connect one.
#if !canImport(FoundationNetworking)
    internal import Foundation
    internal import MartletProtocol
    internal import Synchronization

    /// Receives the stream of deltas over a WebSocket, on platforms where URLSession supports them.
    struct DeltaSocket: Sendable {
        /// The server's address; the endpoint is `deltas` below it.
        let server: URL
        let tokens: TokenKeeper
        let session: URLSession

        /// The interval of pings. If no pong arrives within one, the connection is closed.
        private static let period = Duration.seconds(20)

        /// Listens until the server ends the stream; see `LiveTransport`.
        /// - Returns: Whether a socket was established. If not, something on the network may not
        ///   support WebSockets, and the stream may still work as events.
        func listen(
            _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
        ) async throws(TransportFailure) -> Bool {
            let token = try await tokens.token()
            do throws(TransportFailure) {
                return try await listen(cursor, token, receive)
            } catch {
                guard error.status == 401, try await tokens.replacement(for: token) != nil else {
                    throw error
                }
                // The listener may be at a later cursor now, so the next stream uses the new token.
                throw TransportFailure(message: "The token was renewed.")
            }
        }

        private func listen(
            _ cursor: DeltaCursor, _ token: String?,
            _ receive: @escaping @Sendable (LiveEvent) async -> Void
        ) async throws(TransportFailure) -> Bool {
            let address = DeltaEvents.address(server, cursor)
            var parts = URLComponents(url: address, resolvingAgainstBaseURL: false)
            parts?.scheme = address.scheme == "http" ? "ws" : "wss"
            var request = URLRequest(url: parts?.url ?? address)
            if let token {
                request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            }
            let socket = session.webSocketTask(with: request)
            socket.maximumMessageSize = Limits.inflatedBytes
            let result = await withTaskCancellationHandler {
                socket.resume()
                return await follow(socket, receive)
            } onCancel: {
                socket.cancel(with: .goingAway, reason: nil)
            }
            socket.cancel(with: .normalClosure, reason: nil)
            return try result.get()
        }

        private func follow(
            _ socket: URLSessionWebSocketTask, _ receive: @Sendable (LiveEvent) async -> Void
        ) async -> Result<Bool, TransportFailure> {
            guard await isAnswered(socket) else {
                let status = (socket.response as? HTTPURLResponse)?.statusCode
                guard let status, [401, 403, 409, 429, 503].contains(status) else {
                    return .success(false)
                }
                return .failure(
                    TransportFailure(
                        message: "The server refused the live connection (\(status)).",
                        status: status))
            }
            await receive(.opened)
            let watchdog = Task { await watch(socket) }
            defer { watchdog.cancel() }
            while true {
                do {
                    let bytes: [UInt8] =
                        switch try await socket.receive() {
                        case .string(let text): [UInt8](text.utf8)
                        case .data(let data): [UInt8](data)
                        @unknown default: []
                        }
                    if let refusal = Self.refusal(bytes) { return .failure(refusal) }
                    await receive(.batch(bytes))
                } catch {
                    return Self.end(socket.closeCode.rawValue, error)
                }
            }
        }

        /// Returns the outcome of a socket that has ended.
        private static func end(
            _ code: Int, _ error: any Error
        ) -> Result<Bool, TransportFailure> {
            switch code {
            case 1000, 1001: .success(true)
            case 4001:
                .failure(
                    TransportFailure(message: "The server asks for a good token.", status: 401))
            default:
                .failure(
                    TransportFailure(
                        message: "The connection was lost: \(error.localizedDescription)"
                    ).ended(inBatch: isTooLarge(code, error)))
            }
        }

        /// Returns whether a message was larger than `maximumMessageSize`. URLSession reports this
        /// by the code with which it closes the socket, or as a POSIX error. This is not tested on
        /// Apple systems yet.
        private static func isTooLarge(_ code: Int, _ error: any Error) -> Bool {
            if code == 1009 { return true }
            let error = error as NSError
            return error.domain == NSPOSIXErrorDomain && error.code == Int(EMSGSIZE)
                || error.domain == NSURLErrorDomain
                    && error.code == NSURLErrorDataLengthExceedsMaximum
        }

        /// Returns the failure if the server sent a problem in place of a batch; otherwise nil.
        private static func refusal(_ bytes: [UInt8]) -> TransportFailure? {
            struct Message: Decodable {
                struct Reason: Decodable {
                    let status: Int
                    let kind: String
                    let detail: String
                    let retryAfter: Int64?
                }

                let problem: Reason
            }
            guard bytes.starts(with: Array("{\"problem\"".utf8)),
                let reason = try? JSONDecoder().decode(Message.self, from: Data(bytes)).problem
            else { return nil }
            let problem = Problem(
                status: reason.status, kind: reason.kind, detail: reason.detail,
                retryAfter: reason.retryAfter)
            return TransportFailure(
                message: reason.detail, status: reason.status, problem: problem,
                retryAfter: reason.retryAfter)
        }

        /// Returns whether a ping is answered. If so, the handshake is done, and nothing holds
        /// bytes back.
        private func isAnswered(_ socket: URLSessionWebSocketTask) async -> Bool {
            await withCheckedContinuation { continuation in
                // URLSession may call the handler twice if the connection ends meanwhile.
                let waiting = Waiting(continuation)
                socket.sendPing { error in waiting.resume(error == nil) }
            }
        }

        private final class Waiting: Sendable {
            private let continuation: Mutex<CheckedContinuation<Bool, Never>?>

            init(_ continuation: CheckedContinuation<Bool, Never>) {
                self.continuation = Mutex(continuation)
            }

            func resume(_ answer: Bool) {
                let continuation = continuation.withLock { continuation in
                    defer { continuation = nil }
                    return continuation
                }
                continuation?.resume(returning: answer)
            }
        }

        /// Closes the socket if the server is silent.
        private func watch(_ socket: URLSessionWebSocketTask) async {
            let pongs = Pongs()
            var seen = 0
            while true {
                socket.sendPing { error in
                    if error == nil { pongs.count.withLock { $0 += 1 } }
                }
                guard (try? await Task.sleep(for: Self.period)) != nil else { return }
                let count = pongs.count.withLock(\.self)
                guard count > seen else {
                    return socket.cancel(with: .goingAway, reason: nil)
                }
                seen = count
            }
        }

        private final class Pongs: Sendable {
            let count = Mutex(0)
        }
    }
#endif
