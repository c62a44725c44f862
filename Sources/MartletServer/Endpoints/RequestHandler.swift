internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import SystemKit

/// Answers requests: finds the path, checks the token, and informs the log and the metrics.
struct RequestHandler: Sendable {
    let tokens: Confined<TokenAuthenticator>
    let dataSets: DataSetDirectory
    let redis: RedisHub?
    let metrics: Metrics
    let log: ServerLog
    let counters: @Sendable () async -> HTTPServerCounters
    let origins: OriginRule
    /// The time in which the first message of a WebSocket without a token must arrive.
    let tokenDeadline: Duration
    /// The interval at which a listener gets a sign of life and the server checks its token again.
    let heartbeat: Duration
    /// Returns the time, in milliseconds since 1970.
    let now: @Sendable () -> Int64
    let tokenWatch = TokenWatch()
    let reading = RequestReading()
    let uploads = UploadShelf()

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
        let start = ContinuousClock.now
        let outcome = await outcome(of: request)
        note(outcome, requestByteCount: request.body.count, ContinuousClock.now - start)
        return Self.guarded(outcome.response, request)
    }

    private func outcome(of request: HTTPRequest) async -> Outcome {
        var outcome: Outcome
        switch request.path {
        case "/sync": outcome = await only(["POST"], request, sync)
        case "/deltas": outcome = await only(["GET"], request, deltas)
        case "/schema": outcome = await only(["GET", "HEAD"], request, schema)
        case "/snapshot": outcome = await only(["GET", "HEAD"], request, snapshot)
        case let path where path.hasPrefix(Self.snapshotPrefix):
            outcome = await only(["GET", "HEAD"], request, snapshotFile)
            outcome.endpoint = "/snapshot/"
            return outcome
        case "/healthz": outcome = await only(["GET", "HEAD"], request, health)
        case "/readyz": outcome = await only(["GET", "HEAD"], request, readiness)
        case "/metrics": outcome = await only(["GET", "HEAD"], request, metricsText)
        default: return Outcome(Problem.notFound)
        }
        outcome.endpoint = request.path
        return outcome
    }

    private func only(
        _ methods: [String], _ request: HTTPRequest,
        _ answer: (HTTPRequest) async -> Outcome
    ) async -> Outcome {
        guard methods.contains(request.method) else {
            let allowed = methods.joined(separator: ", ")
            var outcome = Outcome(Problem.methodNotAllowed(allowed))
            outcome.response.headers.append(HTTPField("Allow", allowed))
            return outcome
        }
        return await answer(request)
    }

    // MARK: - Authentication

    /// Returns the record of the request's token.
    ///
    /// - Throws: `TokenDenial` if there is no good token; the storage's errors.
    func admitted(_ request: HTTPRequest) async throws -> TokenRecord {
        guard let token = Self.bearer(request) else { throw TokenDenial(.unknown) }
        return try await record(of: token)
    }

    /// Returns the token of a request; nil if there is none that could be one.
    static func bearer(_ request: HTTPRequest) -> [UInt8]? {
        // Two headers could name two principals.
        guard request.headers.lineCount("authorization") == 1,
            let header = request.headers["authorization"]
        else { return nil }
        return BearerToken.parse(header)
    }

    /// Returns the record of a token.
    ///
    /// - Throws: `TokenDenial` if it is not good; the storage's errors.
    func record(of token: [UInt8]) async throws -> TokenRecord {
        let asked = ContinuousClock.now
        let known = try tokens.atOnce { try $0.recordAtOnce(of: token, asked: asked) }
        if let record = known ?? nil { return record }
        return try await tokens.run { try $0.record(of: token, asked: asked) }
    }

    private static func unauthorized(_ denial: TokenDenial) -> Outcome {
        var outcome = Outcome(denial.problem)
        let error = if case .unknown = denial.reason { "" } else { ", error=\"invalid_token\"" }
        outcome.response.headers.append(
            HTTPField("WWW-Authenticate", "Bearer realm=\"martlet\"\(error)"))
        return outcome
    }

    /// Returns the answer to a denied token or a failure of the server. The log gets the reason,
    /// and the client gets a sentence.
    func failed(_ error: any Error, _ dataSet: String? = nil) -> Outcome {
        if let denial = error as? TokenDenial { return Self.unauthorized(denial) }
        if error is OwnerStopped { return Outcome(Problem.stopping) }
        if let problem = error as? Problem { return Outcome(problem) }
        // The log named the reason when the data set failed to open.
        if error is DataSetCannotBeOpened { return Outcome(Problem.dataSetCannotBeOpened) }
        if error is DataSetNotServed { return Outcome(Problem.dataSetNotServed) }
        var fields = [("reason", ServerLog.Field.text(String(describing: error)))]
        if let dataSet { fields.append(("dataSet", .text(dataSet))) }
        log.log(.error, "storage", fields)
        return Outcome(Problem.storage)
    }

    // MARK: - Logging

    func note(_ outcome: Outcome, requestByteCount: Int, _ duration: Duration) {
        let status = outcome.response.status
        metrics.countRequest(
            endpoint: outcome.endpoint, status: status, kind: outcome.kind,
            answerBytes: outcome.response.bodyByteCount)
        let level: ServerLog.Level = status >= 500 ? .warning : status >= 400 ? .info : .debug
        guard level >= log.minimum else { return }
        let (seconds, attoseconds) = duration.components
        var fields: [(String, ServerLog.Field)] = [
            ("endpoint", .text(outcome.endpoint)), ("status", .number(status)),
            ("kind", .text(outcome.kind)),
            ("microseconds", .number(Int(seconds * 1_000_000 + attoseconds / 1_000_000_000_000))),
            ("requestBytes", .number(requestByteCount)),
            ("answerBytes", .number(outcome.response.bodyByteCount)),
        ]
        if let token = outcome.token { fields.append(("token", .text(token))) }
        if let dataSet = outcome.dataSet { fields.append(("dataSet", .text(dataSet))) }
        if let device = outcome.device { fields.append(("device", .text(device))) }
        if outcome.accepted > 0 { fields.append(("accepted", .number(outcome.accepted))) }
        if outcome.refused > 0 { fields.append(("refused", .number(outcome.refused))) }
        log.log(level, "request", fields)
    }
}
