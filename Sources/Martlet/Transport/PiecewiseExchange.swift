internal import CompressionKit
internal import Foundation
internal import MartletModel
internal import MartletProtocol

/// Performs one exchange in pieces, in both directions. An interrupted piece is sent or requested
/// again, so the exchange completes if one piece at a time gets through.
struct PiecewiseExchange {
    private let request: StreamingRequest
    private let session: AuthorizedSession
    private let pieces: PieceSize
    private let body: [UInt8]
    private let name = UUID().uuidString
    private var sent = 0
    private var came: [UInt8] = []
    private var fruitless = 0

    /// The number of consecutive attempts without progress after which the exchange fails: `none`
    /// before the first piece has got through, and `some` afterwards, which takes about two
    /// minutes. If the server is unreachable, the device's own wait is better; so before the first
    /// piece, the exchange also fails if the smallest piece does.
    private static let fruitlessTries = (none: 4, some: 48)

    init(_ request: StreamingRequest, session: AuthorizedSession, pieces: PieceSize) {
        self.request = request
        self.session = session
        self.pieces = pieces
        body = request.body ?? []
    }

    mutating func run() async throws(TransportFailure) -> TransportAnswer {
        while true {
            let answer: StreamingAnswer
            let bytes: [UInt8]
            let piece = next()
            let isLeast = pieces.isLeast
            do throws(TransportFailure) {
                answer = try await session.start(piece)
                bytes = try await answer.whole(limit: Limits.inflatedBytes)
            } catch {
                pieces.failed()
                guard hasBegun || !isLeast else { throw error }
                try await tryAgain(error)
                continue
            }
            let whole = TransportAnswer(
                status: answer.status, body: bytes, retryAfter: answer.retryAfter)
            switch answer.status {
            case 202: try await noteReceived(bytes)
            case 206:
                if let whole = try await take(bytes, answer) { return whole }
            case 400 where whole.isOfServer && (sent < body.count || came.isEmpty):
                // An older server takes a piece for the whole body.
                pieces.areUnknown()
                throw TransportFailure(
                    message: "The line is too slow for this request; the client tries again.")
            default:
                if whole.isRefusalOfSize, pieces.refused(piece.body?.count ?? 0) { continue }
                // If another program answers, this costs one piece, not the exchange.
                let isRepeated = fruitless > 0 && !hasBegun
                guard !whole.isOfServer, !isRepeated, await mayTryAgain() else { return whole }
            }
        }
    }

    /// Whether any piece has got through.
    private var hasBegun: Bool { sent > 0 || !came.isEmpty }

    /// Waits before the next attempt.
    /// - Returns: False if there were too many attempts.
    private mutating func mayTryAgain() async -> Bool {
        fruitless += 1
        let most = hasBegun ? Self.fruitlessTries.some : Self.fruitlessTries.none
        guard fruitless < most, !Task.isCancelled else { return false }
        try? await Task.sleep(for: .milliseconds(min(100 * fruitless, 5_000)))
        return true
    }

    private mutating func tryAgain(_ failure: TransportFailure) async throws(TransportFailure) {
        guard await mayTryAgain() else { throw failure }
    }

    /// Returns the request for the next piece of the body or, after its end, for the next piece of
    /// the answer.
    private func next() -> StreamingRequest {
        let size = pieces.size ?? Int(Limits.requestBytes)
        let end = came.isEmpty ? min(body.count, sent + size) : body.count
        let start = came.isEmpty ? sent : body.count
        var piece = request
        piece.body = Array(body[start..<end])
        piece.url.append(queryItems: [
            URLQueryItem(name: "upload", value: name),
            URLQueryItem(name: "from", value: "\(start)"),
            URLQueryItem(name: "total", value: "\(body.count)"),
            URLQueryItem(name: "answer", value: "\(came.count)"),
            URLQueryItem(name: "most", value: "\(size)"),
        ])
        return piece
    }

    private mutating func noteReceived(_ bytes: [UInt8]) async throws(TransportFailure) {
        struct Progress: Decodable { let received: Int }
        let progress = try? JSONDecoder().decode(Progress.self, from: Data(bytes))
        guard let now = progress?.received, 0..<body.count ~= now else {
            return try await tryAgain(
                TransportFailure(message: Problem.unrecognized(status: 202).detail))
        }
        if now > sent {
            fruitless = 0
            pieces.worked()
        } else {
            try await tryAgain(
                TransportFailure(message: "The server does not keep the request's pieces."))
        }
        sent = now
        // This answer belongs to a body that the server no longer has.
        came = []
    }

    /// Takes a piece of the answer.
    /// - Returns: The answer once it is complete; nil before.
    private mutating func take(
        _ bytes: [UInt8], _ answer: StreamingAnswer
    ) async throws(TransportFailure) -> TransportAnswer? {
        let words = (answer.headers["martlet-answer"] ?? "").split(separator: " ")
        guard words.count == 3, let status = Int(words[0]), let total = Int(words[2]),
            came.count + bytes.count <= total, !bytes.isEmpty || total == 0
        else {
            do throws(TransportFailure) {
                try await tryAgain(
                    TransportFailure(message: Problem.unrecognized(status: 206).detail))
            } catch {
                // Something may remove the header field; then only a whole answer can arrive.
                pieces.goWhole()
                throw error
            }
            return nil
        }
        fruitless = 0
        pieces.worked()
        came += bytes
        guard came.count == total else { return nil }
        guard words[1] == "gzip" else { return TransportAnswer(status: status, body: came) }
        do {
            let plain = try Gzip.inflate(
                came,
                limits: InflationLimits(
                    bytes: Limits.inflatedBytes, ratio: 10_000, ratioFloor: 1 << 20))
            return TransportAnswer(status: status, body: plain)
        } catch {
            throw TransportFailure(message: "The answer is damaged: \(error.message).")
        }
    }
}
