#if !os(Linux)
    internal import Foundation
    internal import Synchronization

    /// Performs requests with URLSession.
    ///
    /// URLSession keeps its delegate until it is invalidated. Therefore the delegate is a separate
    /// class, and the end of this object invalidates the session.
    final class Loader: Sendable {
        /// The session, which also opens WebSockets.
        let session: URLSession
        private let requests = Requests()

        init() {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.urlCache = nil
            configuration.httpCookieStorage = nil
            // A stream occupies its connection for as long as it lives, so exchanges need other
            // connections.
            configuration.httpMaximumConnectionsPerHost = 1_024
            // The reader watches for silence; URLSession would count a slow reader as silent too.
            configuration.timeoutIntervalForRequest = 86_400
            session = URLSession(
                configuration: configuration, delegate: requests, delegateQueue: nil)
        }

        deinit {
            session.invalidateAndCancel()
        }

        func load(_ request: StreamingRequest) -> any Load {
            var outgoing = URLRequest(url: request.url)
            outgoing.httpMethod = request.method
            outgoing.cachePolicy = .reloadIgnoringLocalCacheData
            outgoing.httpBody = request.body.map { Data($0) }
            if request.inflates {
                // URLSession inflates an answer with this encoding.
                outgoing.setValue("gzip", forHTTPHeaderField: "Accept-Encoding")
            }
            for (name, value) in request.headers {
                outgoing.setValue(value, forHTTPHeaderField: name)
            }
            return URLSessionLoad(task: session.dataTask(with: outgoing), requests: requests)
        }
    }

    /// One task of URLSession.
    private struct URLSessionLoad: Load {
        let task: URLSessionDataTask
        let requests: Requests

        func begin(_ incoming: IncomingBytes) {
            requests.incoming.withLock { $0[task.taskIdentifier] = incoming }
            task.resume()
        }

        func cancel() {
            task.cancel()
        }

        func holdUp() {
            task.suspend()
        }

        func goOn() {
            task.resume()
        }

        /// Does nothing, because URLSession reports the bytes automatically.
        func look() {}
    }

    /// Passes the events of URLSession to the requests that they belong to.
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

        /// Follows no redirect; see `StreamingSession`.
        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
            completionHandler: @escaping (URLRequest?) -> Void
        ) {
            completionHandler(nil)
        }

        /// Judges certificates as the system does, and gives no password: the answer that asks for
        /// one is the result.
        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping (URLSession.AuthChallengeDisposition, URLCredential?) ->
                Void
        ) {
            let isCertificate =
                challenge.protectionSpace.authenticationMethod
                == NSURLAuthenticationMethodServerTrust
            completionHandler(isCertificate ? .performDefaultHandling : .rejectProtectionSpace, nil)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
            totalBytesSent: Int64, totalBytesExpectedToSend: Int64
        ) {
            request(task)?.sent(Int(totalBytesSent))
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
        ) {
            request(dataTask)?.take([UInt8](data))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            let ended = incoming.withLock { $0.removeValue(forKey: task.taskIdentifier) }
            guard let error else {
                ended?.finish()
                return
            }
            let untrusted = [
                URLError.serverCertificateUntrusted, .serverCertificateHasBadDate,
                .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
            ]
            let isUntrusted = (error as? URLError).map { untrusted.contains($0.code) } ?? false
            ended?.fail(
                TransportFailure(
                    message: "The connection failed: \(error.localizedDescription)",
                    isUntrusted: isUntrusted))
        }
    }
#endif
