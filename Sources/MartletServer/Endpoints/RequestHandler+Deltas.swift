internal import DeflateKit
internal import HTTPKit
internal import MartletProtocol
internal import MartletServerCore

extension RequestHandler {
    /// `GET /deltas`: what changed after a version, once, after a wait, or as a stream of events.
    func deltas(_ request: HTTPRequest) async -> Outcome {
        do {
            guard let token = try await admitted(request) else { return Self.unauthorized() }
            let service = try await dataSets.service(token.dataSet)
            var outcome = await deltas(request, token, service)
            outcome.token = token.identifier
            outcome.dataSet = token.dataSet
            return outcome
        } catch {
            return failed(error)
        }
    }

    private func deltas(
        _ request: HTTPRequest, _ token: TokenRecord, _ service: DataSetService
    ) async -> Outcome {
        do throws(Problem) {
            let isStream = request.headers["accept"]?.contains("text/event-stream") == true
            let (question, wait) = try Self.question(request, token, isStream: isStream)
            let first = try await service.deltas(question).get()
            var outcome: Outcome
            if isStream {
                outcome = stream(question, first, service, request)
            } else {
                outcome = try await poll(question, first, wait, service, request)
            }
            outcome.device = question.clientID
            return outcome
        } catch {
            return Outcome(error)
        }
    }

    /// Longest wait of a long poll, in seconds: below what proxies put up with.
    private static let longestWait: Int64 = 60

    private static func question(
        _ request: HTTPRequest, _ token: TokenRecord, isStream: Bool
    ) throws(Problem) -> (DeltaQuestion, wait: Int64) {
        let items = try QueryItems(
            request.query, names: ["since", "wait", "client", "dataSet", "lineage"])
        guard var since = try items.integer("since", in: 0...Int64.max) else {
            throw Problem.malformed("The query needs “since”, the version the device has.")
        }
        var lineage = try items.name("lineage")
        // A browser that connects again by itself names the last event it had.
        if isStream, let last = request.headers["last-event-id"].flatMap({ Int64($0) }), last >= 0 {
            if last != since { lineage = nil }
            since = last
        }
        var question = DeltaQuestion(principal: token.principal, since: since)
        question.clientID = try items.name("client")
        question.dataSet = try items.name("dataSet")
        question.lineage = lineage
        return (question, try items.integer("wait", in: 0...longestWait) ?? 0)
    }

    // MARK: - Once

    private func poll(
        _ question: DeltaQuestion, _ first: DeltaBatchBytes, _ wait: Int64,
        _ service: DataSetService, _ request: HTTPRequest
    ) async throws(Problem) -> Outcome {
        var batch = first
        if batch.isEmpty, wait > 0 {
            _ = await service.signal.wait(beyond: question.since, for: .seconds(wait))
            batch = try await service.deltas(question).get()
        }
        let isWorthwhile = batch.json.count > 512
        let acceptsGzip = ContentCoding.acceptsGzip(request.headers["accept-encoding"])
        return Outcome.json(
            batch.json, gzip: isWorthwhile && acceptsGzip ? WholeGzip.compress(batch.json) : nil)
    }

    // MARK: - As events

    /// How often a quiet stream says that it is alive, and looks whether its token still is good.
    private static let heartbeat = Duration.seconds(15)
    /// Bytes of one event, beyond one change set.
    private static let eventBytes = 256 << 10

    private func stream(
        _ question: DeltaQuestion, _ first: DeltaBatchBytes, _ service: DataSetService,
        _ request: HTTPRequest
    ) -> Outcome {
        var response = HTTPResponse(
            status: 200,
            headers: [
                HTTPField("Content-Type", "text/event-stream"), Outcome.notStored,
                HTTPField("X-Accel-Buffering", "no"),
            ])
        let handler = self
        response.stream = { writer in
            var question = question
            question.byteLimit = Self.eventBytes
            // The hash belongs to the first version only.
            question.lineage = nil
            var checked = ContinuousClock.now
            try await writer.write([UInt8]("retry: 2000\n\n".utf8))
            if !first.isEmpty {
                try await writer.write(Self.event(first))
                question.since = first.nextVersion
            }
            while true {
                try Task.checkCancellation()
                if ContinuousClock.now - checked > .seconds(1) {
                    // A revoked token ends its streams.
                    guard try await handler.admitted(request) != nil else { return }
                    checked = .now
                }
                guard case .success(let batch) = await service.deltas(question) else { return }
                if !batch.isEmpty {
                    try await writer.write(Self.event(batch))
                    question.since = batch.nextVersion
                    continue
                }
                if await !service.signal.wait(beyond: question.since, for: Self.heartbeat) {
                    try Task.checkCancellation()
                    if service.signal.isStopped { return }
                    try await writer.write([UInt8](":\n\n".utf8))
                }
            }
        }
        return Outcome(response)
    }

    /// A batch as an event; JSON has no line ends of its own.
    private static func event(_ batch: DeltaBatchBytes) -> [UInt8] {
        var event = [UInt8]("id: \(batch.nextVersion)\ndata: ".utf8)
        event.reserveCapacity(event.count + batch.json.count + 2)
        event += batch.json
        event += [10, 10]
        return event
    }
}
