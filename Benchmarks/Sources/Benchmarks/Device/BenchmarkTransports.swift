import CompressionKit
import Foundation
import Martlet
import Synchronization

/// Keeps what went up and came down.
final class RecordingTransport: Transport {
    struct Exchange: Sendable {
        var request: [UInt8]
        var answer: TransportAnswer
    }

    private let inner: any Transport
    private let kept = Mutex<[Exchange]>([])
    /// Changes a request's body before it goes.
    private let change: @Sendable ([UInt8]) -> [UInt8]

    init(
        _ inner: any Transport, change: @escaping @Sendable ([UInt8]) -> [UInt8] = { $0 }
    ) {
        self.inner = inner
        self.change = change
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        let body = change(body)
        let answer = try await inner.exchange(body)
        kept.withLock { $0.append(Exchange(request: body, answer: answer)) }
        return answer
    }

    var exchanges: [Exchange] { kept.withLock { $0 } }

    /// Bytes of all bodies, as they are and as gzip makes them.
    func byteCounts() -> (plain: Int, gzip: Int) {
        var counts = (plain: 0, gzip: 0)
        for body in exchanges.flatMap({ [$0.request, $0.answer.body] }) {
            counts.plain += body.count
            counts.gzip += min(body.count, Gzip.compress(body).count)
        }
        return counts
    }
}

/// Answers as a server did before, without the names of the requests of then.
final class ReplayingTransport: Transport {
    private let answers: Mutex<[TransportAnswer]>

    init(_ recorded: RecordingTransport) {
        answers = Mutex(recorded.exchanges.map { Self.unnamed($0.answer) })
    }

    /// An answer with blanks in place of its member `request`, as a server writes that: with another
    /// member behind it.
    private static func unnamed(_ answer: TransportAnswer) -> TransportAnswer {
        guard let start = answer.body.firstRange(of: Array("\"request\":\"".utf8)),
            let end = answer.body[start.upperBound...].firstRange(of: Array("\",".utf8))
        else { return answer }
        var answer = answer
        for index in start.lowerBound..<end.upperBound { answer.body[index] = UInt8(ascii: " ") }
        return answer
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        let answer = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let answer else { throw TransportFailure(message: "The record has ended.") }
        return answer
    }
}

extension BenchmarkServer {
    /// Exchanges with it over HTTP.
    func transport() throws -> URLSessionTransport {
        guard let url = URL(string: "http://127.0.0.1:\(process.port)") else {
            throw BenchmarkFailure("The server has no address.")
        }
        return try URLSessionTransport(server: url, token: ServerRole.token)
    }
}
