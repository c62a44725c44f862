internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Performs requests whose answers are read as they come, all on one URLSession.
///
/// `URLSession.bytes(for:)` does not exist on Linux; a delegate does on every platform. URLSession
/// keeps its delegate until it is invalidated, so the delegate is a class of its own and this one's
/// end invalidates.
final class StreamingSession: Sendable {
    private let session: URLSession
    private let requests = Requests()
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameter sleep: Waits; a test gives its own.
    init(
        configuration: URLSessionConfiguration,
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        session = URLSession(configuration: configuration, delegate: requests, delegateQueue: nil)
        self.sleep = sleep
    }

    deinit {
        session.invalidateAndCancel()
    }

    /// Requests under way.
    var count: Int { requests.incoming.withLock { $0.count } }

    /// Sends a request and waits for the head of its answer, whatever its status.
    /// - Throws: `TransportFailure` where none comes.
    func start(_ request: StreamingRequest) async throws(TransportFailure) -> StreamingAnswer {
        #if canImport(FoundationNetworking)
            if let opening = request.opening {
                // To its end: then the connection is free, and the request takes it.
                for try await _ in try await send(
                    "HEAD", StreamingRequest(url: opening, silence: request.silence)
                ).chunks {}
            }
        #endif
        return try await send("GET", request)
    }

    private func send(
        _ method: String, _ request: StreamingRequest
    ) async throws(TransportFailure) -> StreamingAnswer {
        var outgoing = URLRequest(url: request.url)
        outgoing.httpMethod = method
        outgoing.cachePolicy = .reloadIgnoringLocalCacheData
        // Silence is watched here; a reader that takes its time is none.
        outgoing.timeoutInterval = 86_400
        outgoing.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        for (name, value) in request.headers {
            outgoing.setValue(value, forHTTPHeaderField: name)
        }
        let task = session.dataTask(with: outgoing)
        let incoming = IncomingBytes(task: task, bufferBytes: request.bufferBytes)
        requests.incoming.withLock { $0[task.taskIdentifier] = incoming }
        let chunks = ByteChunks(incoming)
        incoming.begin(silence: request.silence, sleep: sleep)
        let head = try await incoming.head()
        return StreamingAnswer(status: head.status, headers: head.headers, chunks: chunks)
    }

    /// Brings what URLSession tells to the request it belongs to.
    private final class Requests: NSObject, URLSessionDataDelegate {
        let incoming = Mutex<[Int: IncomingBytes]>([:])

        private func request(_ task: URLSessionTask) -> IncomingBytes? {
            incoming.withLock { $0[task.taskIdentifier] }
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
        ) {
            guard let response = response as? HTTPURLResponse else {
                request(dataTask)?.fail(TransportFailure(message: "The answer was not HTTP."))
                return completionHandler(.cancel)
            }
            var headers: [String: String] = [:]
            for case (let name as String, let value as String) in response.allHeaderFields {
                headers[name.lowercased()] = value
            }
            request(dataTask)?
                .receive(IncomingBytes.Head(status: response.statusCode, headers: headers))
            completionHandler(.allow)
        }

        /// Follows none, as `WholeAnswers`.
        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
            completionHandler: @escaping (URLRequest?) -> Void
        ) {
            completionHandler(nil)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
        ) {
            request(dataTask)?.receive([UInt8](data))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            let ended = incoming.withLock { $0.removeValue(forKey: task.taskIdentifier) }
            if let error {
                ended?.fail(
                    TransportFailure(
                        message: "The connection was lost: \(error.localizedDescription)"))
            } else {
                ended?.finish()
            }
        }
    }
}
