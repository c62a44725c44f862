internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

/// Follows a data set for one listener, by whichever transport the batches travel.
struct Listening: Sendable {
    /// The reason why the listening ended.
    enum Ending: Sendable {
        /// The token is no longer good.
        case unauthorized(TokenDenial)
        case stopping
        case problem(Problem)
    }

    /// The most bytes of one batch, apart from its first change set.
    static let batchBytes = 256 << 10
    /// The size in bytes above which a listener that also exchanges fetches a batch itself. At 23
    /// kbit/s, so many bytes take 11 s.
    static let entryBytes = 32 << 10

    let handler: RequestHandler
    let service: DataSetService
    let token: [UInt8]
    /// The token's record when the listening began.
    let record: TokenRecord

    /// Sends the batches that exist, then new ones as they arise, until one of the endings.
    ///
    /// Nothing is queued. The next batch is made when the last one has been sent, and it holds
    /// everything that exists by then.
    ///
    /// - Parameters:
    ///   - first: The batch after the request's revision; nil if it has still to be made.
    ///   - send: Sends a batch, and waits while the listener reads slowly.
    ///   - quiet: Gives a sign of life, once in each `heartbeat` of the handler.
    /// - Throws: The errors of `send` and `quiet`, `CancellationError`, and the storage's failures.
    func run(
        _ request: DeltaRequest, _ first: DeltaBatchBytes? = nil,
        send: (DeltaBatchBytes) async throws -> Void, quiet: () async throws -> Void
    ) async throws -> Ending {
        var request = request
        let generation = try await handler.tokenWatch.generation(handler.tokens)
        if let first {
            if !first.isEmpty { try await send(first) }
            request.advance(past: first)
        }
        return try await follow(request, generation, send: send, quiet: quiet)
    }

    private func follow(
        _ start: DeltaRequest, _ tokens: Int64,
        send: (DeltaBatchBytes) async throws -> Void, quiet: () async throws -> Void
    ) async throws -> Ending {
        var request = start
        var generation = tokens
        var sign = ContinuousClock.now
        while true {
            try Task.checkCancellation()
            let current = try await handler.tokenWatch.generation(handler.tokens)
            if current != generation || left.map({ $0 <= .zero }) ?? false {
                do {
                    let principal = try await handler.record(of: token).principal
                    if principal != request.principal {
                        // With other roles, the listener may be sent other records.
                        (request.principal, request.mustExchange) = (principal, true)
                    }
                } catch let denial as TokenDenial {
                    return .unauthorized(denial)
                }
                generation = current
            }
            switch await batch(request) {
            case .failure(let problem):
                return service.signal.isStopped ? .stopping : .problem(problem)
            case .success(let batch) where !batch.isEmpty:
                try await send(batch)
                request.advance(past: batch)
                if ContinuousClock.now - sign >= handler.heartbeat {
                    sign = .now
                    try await quiet()
                }
                if batch.more || request.wantsRows { continue }
            case .success(let batch): request.note(empty: batch)
            }
            let pause = min(handler.heartbeat, max(left ?? handler.heartbeat, .milliseconds(1)))
            if await !service.signal.wait(
                beyond: request.known, for: pause, concerning: request.concern)
            {
                try Task.checkCancellation()
                if service.signal.isStopped { return .stopping }
                sign = .now
                try await quiet()
            }
        }
    }

    /// The time for which the token is still good; nil if it does not expire.
    private var left: Duration? {
        record.expires.map { .milliseconds($0 - handler.now()) }
    }

    private func batch(_ request: DeltaRequest) async -> Result<DeltaBatchBytes, Problem> {
        if let made = service.madeDeltas(request) { return .success(made) }
        // The claim ends with this call, so that another batch can be made meanwhile. Bytes that
        // wait for a listener are counted elsewhere.
        let claim = AnswerClaim(of: RequestHandler.party(record))
        defer { claim.giveBack() }
        return await service.deltas(request, claim)
    }
}
