#if os(Linux)
    internal import CurlKit
    internal import Foundation
    internal import Synchronization

    /// Performs requests with libcurl.
    final class Loader: Sendable {
        private let session = CurlSession()

        func load(_ request: StreamingRequest) -> any Load {
            var outgoing = CurlRequest(method: request.method, url: request.url.absoluteString)
            outgoing.headers = request.headers.map { (name: $0.key, value: $0.value) }
            outgoing.body = request.body
            outgoing.inflates = request.inflates
            return CurlLoad(session: session, request: outgoing)
        }
    }

    /// One request of libcurl.
    private final class CurlLoad: Load {
        private let session: CurlSession
        private let request: CurlRequest
        /// The request in libcurl; cleared at the end, because the two refer to each other.
        private let transfer = Mutex<CurlTransfer?>(nil)

        init(session: CurlSession, request: CurlRequest) {
            self.session = session
            self.request = request
        }

        func begin(_ incoming: IncomingBytes) {
            let begun = session.start(request, receiver: incoming)
            transfer.withLock { $0 = begun }
            if incoming.isOver { cancel() }
        }

        func cancel() {
            let ended = transfer.withLock { transfer in
                defer { transfer = nil }
                return transfer
            }
            ended?.cancel()
        }

        /// Does nothing: while the answer is suspended, the receiver takes no bytes.
        func holdUp() {}

        func goOn() {
            transfer.withLock { $0?.goOn() }
        }

        func look() {
            transfer.withLock { $0?.look() }
        }
    }

    extension IncomingBytes: CurlReceiver {
        func receive(status: Int, headers: [String: String]) {
            receive(Head(status: status, headers: headers))
        }

        func receive(_ bytes: [UInt8]) -> Bool {
            guard !isHeldUp else { return false }
            take(bytes)
            return true
        }

        func sent(_ bytes: Int64) {
            sent(Int(bytes))
        }

        func ended(_ error: CurlError?) {
            guard let error else { return finish() }
            fail(
                TransportFailure(
                    message: error.isUntrusted
                        ? "The server's certificate is not trusted: \(error.message). Check the"
                            + " address, and the server's certificate."
                        : "The connection failed: \(error.message).",
                    isUntrusted: error.isUntrusted))
        }
    }
#endif
