internal import DeflateKit
internal import HTTPKit
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

extension RequestHandler {
    /// Answers `GET /deltas` with the changes after a version: at once, after a wait, or as a
    /// stream of events.
    func deltas(_ request: HTTPRequest) async -> Outcome {
        do throws(HTTPRefusal) {
            if let handshake = try WebSocketHandshake(request) {
                return await socket(request, handshake)
            }
        } catch {
            return Self.badUpgrade(error)
        }
        do {
            let token = try await admitted(request)
            var outcome = try await deltas(request, token)
            outcome.note(token)
            return outcome
        } catch {
            return failed(error)
        }
    }

    private func deltas(
        _ request: HTTPRequest, _ token: TokenRecord
    ) async throws -> Outcome {
        let begin = ContinuousClock.now
        do {
            let isStream = request.headers["accept"]?.contains("text/event-stream") == true
            let query = try DeltaQuery(request, isEvents: isStream)
            // The server compresses single answers, but not streams.
            let deltaRequest =
                isStream
                ? query.deltaRequest(token.principal)
                : query.deltaRequest(
                    token.principal, byteLimit: Limits.answerBytes, mostEntryBytes: .max)
            let claim = AnswerClaim(of: Self.party(token))
            let first = try await dataSets.ask(token.dataSet) {
                await $0.deltas(deltaRequest, claim)
            }.get()
            var outcome: Outcome
            if isStream {
                outcome = stream(
                    deltaRequest, Listening.FirstBatch(first, claim, for: token.principal), token,
                    request, begin)
            } else {
                outcome = try await poll(
                    deltaRequest, first, query.wait, token.dataSet, request, claim)
                outcome.response.attachment = claim
            }
            outcome.device = deltaRequest.clientID
            return outcome
        } catch let problem as Problem {
            return Outcome(problem)
        }
    }

    /// Returns the answer to a malformed request for a WebSocket.
    private static func badUpgrade(_ refusal: HTTPRefusal) -> Outcome {
        var outcome = Outcome(Problem(refusal))
        if refusal.status == 426 {
            outcome.response.headers += [
                HTTPField("Upgrade", "websocket"), HTTPField("Sec-WebSocket-Version", "13"),
            ]
        }
        return outcome
    }

    // MARK: - Once

    private func poll(
        _ deltaRequest: DeltaRequest, _ first: DeltaBatchBytes, _ wait: Int64,
        _ dataSet: String, _ request: HTTPRequest, _ claim: AnswerClaim
    ) async throws -> Outcome {
        var batch = first
        if batch.isEmpty, wait > 0 {
            // A waiting poll needs no memory for an answer, so it must not keep other requests out.
            claim.giveBack()
            await request.stopCounting()
            var waiting = deltaRequest
            waiting.note(empty: first)
            try await dataSets.use(dataSet) { [waiting] service in
                _ = await service.signal.wait(
                    beyond: waiting.known, for: .seconds(wait), concerning: waiting.concern)
            }
            // The token may have been revoked during the wait.
            _ = try await admitted(request)
            batch = try await dataSets.ask(dataSet) { await $0.deltas(deltaRequest, claim) }.get()
        }
        let isWorthwhile = batch.json.count > 512
        let acceptsGzip = ContentCoding.acceptsGzip(request.headers["accept-encoding"])
        return Outcome.json(
            batch.json, gzip: isWorthwhile && acceptsGzip ? OneShotGzip.compress(batch.json) : nil)
    }

    // MARK: - As events

    private func stream(
        _ deltaRequest: DeltaRequest, _ first: Listening.FirstBatch, _ token: TokenRecord,
        _ request: HTTPRequest, _ begin: ContinuousClock.Instant
    ) -> Outcome {
        var response = HTTPResponse(
            status: 200,
            headers: [
                HTTPField("Content-Type", "text/event-stream"), Outcome.notStored,
                HTTPField("X-Accel-Buffering", "no"),
            ])
        let bearer = Self.bearer(request) ?? []
        response.stream = { writer in
            try await writer.write([UInt8]("retry: 2000\n\n".utf8))
            try await dataSets.use(token.dataSet) { service in
                let listening = Listening(
                    handler: self, service: service, token: bearer, record: token)
                _ = try await listening.run(deltaRequest, first) {
                    (batch: consuming DeltaBatchBytes, handedOver) in
                    try await writer.write(
                        pieces: Self.event(consume batch), handedOver: handedOver)
                } quiet: {
                    // The comment line has the milliseconds since the request. A listener that
                    // noted when it asked can tell from it how late the stream is.
                    let elapsed = (ContinuousClock.now - begin) / .milliseconds(1)
                    try await writer.write([UInt8](":\(Int64(elapsed))\n\n".utf8))
                }
            }
        }
        return Outcome(response)
    }

    /// Returns the pieces of a batch as an event. The JSON has no line ends, so it is one line of data.
    ///
    /// A part of a difference has no id: a listener that reconnects with only a version restarts
    /// the difference. A batch that sends the listener to `POST /sync` has no id either.
    private static func event(_ batch: DeltaBatchBytes) -> [[UInt8]] {
        let isPart = batch.isDifference && batch.more || batch.isBehind
        let head = isPart ? "data: " : "id: \(batch.nextVersion)\ndata: "
        return [[UInt8](head.utf8), batch.json, [10, 10]]
    }
}
