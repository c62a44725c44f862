internal import Foundation
internal import MartletProtocol
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// Performs requests whose answers are taken whole, and follows no redirect.
///
/// URLSession would send token and edits on to whatever address a redirect names, in the clear if it
/// says so; they are for the one address that the app gave. On Linux `data(for:delegate:)` does not ask
/// its delegate about that; the delegate of a session is asked everywhere.
final class WholeAnswers: Sendable {
    /// What WebSockets are opened with, too.
    let session: URLSession
    private let answers: Answers

    /// - Parameter limit: Bytes of an answer, inflated; one that goes on is given up. No answer that can
    ///   be read is longer.
    init(configuration: URLSessionConfiguration, limit: Int = Limits.inflatedBytes) {
        answers = Answers(limit: limit)
        session = URLSession(configuration: configuration, delegate: answers, delegateQueue: nil)
    }

    deinit {
        session.finishTasksAndInvalidate()
    }

    /// Sends a request and waits for its whole answer, whatever its status.
    /// - Throws: What URLSession throws where none comes, `TransportFailure` for one that is not HTTP.
    func answer(to request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let task = session.dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                answers.wait(for: task.taskIdentifier, continuation)
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }

    private typealias Whole = Result<(Data, HTTPURLResponse), any Error>

    private struct Answer {
        var body = Data()
        var continuation: CheckedContinuation<(Data, HTTPURLResponse), any Error>?
        var isTooLong = false
        /// Set where it ended before anybody waited: it was cancelled at once.
        var end: Whole?

        /// Says whether it has become too long; nothing of it is kept then.
        mutating func append(_ data: Data, limit: Int) -> Bool {
            isTooLong = isTooLong || body.count + data.count > limit
            if isTooLong { body = Data() } else { body.append(data) }
            return isTooLong
        }
    }

    /// Collects what URLSession tells, by request.
    private final class Answers: NSObject, URLSessionDataDelegate {
        private let underWay = Mutex<[Int: Answer]>([:])
        private let limit: Int

        init(limit: Int) {
            self.limit = limit
        }

        func wait(
            for number: Int, _ continuation: CheckedContinuation<(Data, HTTPURLResponse), any Error>
        ) {
            let end = underWay.withLock { underWay in
                let end = underWay.removeValue(forKey: number)?.end
                if end == nil { underWay[number] = Answer(continuation: continuation) }
                return end
            }
            if let end { continuation.resume(with: end) }
        }

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
            let isTooLong = underWay.withLock { underWay in
                underWay[dataTask.taskIdentifier]?.append(data, limit: limit) ?? false
            }
            if isTooLong { dataTask.cancel() }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            let (continuation, end) = underWay.withLock { underWay in
                let answer = underWay.removeValue(forKey: task.taskIdentifier) ?? Answer()
                let end = whole(answer, task.response, error)
                if answer.continuation == nil { underWay[task.taskIdentifier] = Answer(end: end) }
                return (answer.continuation, end)
            }
            continuation?.resume(with: end)
        }

        private func whole(
            _ answer: Answer, _ response: URLResponse?, _ error: (any Error)?
        ) -> Whole {
            if answer.isTooLong {
                return .failure(
                    TransportFailure(
                        message:
                            "The server's answer is longer than \(limit) bytes, the most taken."))
            }
            if let error { return .failure(error) }
            guard let response = response as? HTTPURLResponse else {
                return .failure(TransportFailure(message: "The server's answer was not HTTP."))
            }
            return .success((answer.body, response))
        }
    }
}
