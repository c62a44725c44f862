internal import Foundation
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol

/// Receives the stream of deltas as server-sent events.
struct DeltaEvents: Sendable {
    /// The server's address; the endpoint is `deltas` below it.
    let server: URL
    let session: AuthorizedSession

    /// The maximum bytes of one event: a change set of the greatest size, whose texts are escaped
    /// twice.
    private static let eventBytes = Limits.inflatedBytes
    /// The maximum bytes of a refusal.
    private static let refusalBytes = 64 << 10

    /// Listens until the server ends the stream; see `LiveTransport`.
    func listen(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        var request = StreamingRequest(url: Self.address(server, cursor))
        request.headers["Accept"] = "text/event-stream"
        let answer = try await session.start(request)
        guard answer.status == 200 else { throw try await Self.refusal(answer) }
        guard answer.headers["content-type"]?.hasPrefix("text/event-stream") == true else {
            throw TransportFailure(
                message: Problem.unrecognized(status: 200).detail, status: 200,
                problem: .unrecognized(status: 200))
        }
        var events = ServerSentEvents(limit: Self.eventBytes)
        do throws(TransportFailure) {
            try await follow(answer.chunks, &events, receive)
        } catch {
            throw error.ended(inBatch: events.isInEvent)
        }
        guard !events.isInEvent else {
            throw TransportFailure(message: "The stream ended within an event.").ended(
                inBatch: true)
        }
    }

    private func follow(
        _ chunks: ByteChunks, _ events: inout ServerSentEvents,
        _ receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        var isOpen = false
        for try await chunk in chunks {
            if !isOpen {
                isOpen = true
                await receive(.opened)
            }
            let complete: [ServerSentEvents.Event]
            do {
                complete = try events.read(chunk)
            } catch {
                throw TransportFailure(
                    message: "The server sent an event of more than \(error.limit) bytes.")
            }
            if let sign = events.takeSign() { await receive(.sign(milliseconds: sign)) }
            for event in complete where event.name == "message" {
                await receive(.batch(event.data))
            }
        }
    }

    private static func refusal(_ answer: StreamingAnswer) async throws(TransportFailure)
        -> TransportFailure
    {
        TransportFailure(refusal: answer, try await answer.whole(limit: refusalBytes))
    }

    /// Returns the address for a cursor. If a device is far behind, it fetches rows by an exchange
    /// instead, which is compressed and brings the verdicts on its own sets.
    static func address(_ server: URL, _ cursor: DeltaCursor) -> URL {
        server.appending(
            "deltas",
            query: [
                ("since", "\(cursor.since)"), ("entries", "1"), ("client", cursor.clientID),
                ("dataSet", cursor.dataSet), ("lineage", cursor.lineage),
            ])
    }
}

extension URL {
    /// Returns the address of a path below this one, with those items of the query that have a value.
    func appending(_ path: String, query: [(name: String, value: String?)]) -> URL {
        let endpoint = appendingPathComponent(path)
        let items = query.compactMap { name, value in
            // This escapes more than a query requires, so that no reader takes a plus for a space.
            value.map {
                "\(name)=\($0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
            }
        }
        guard !items.isEmpty else { return endpoint }
        var parts = URLComponents(url: endpoint, resolvingAgainstBaseURL: false)
        parts?.percentEncodedQuery = items.joined(separator: "&")
        return parts?.url ?? endpoint
    }
}
