internal import CompressionKit
internal import DeflateKit
internal import HTTPKit
internal import MartletProtocol
internal import MartletServerCore

extension RequestHandler {
    /// `POST /sync`: what a device changed goes up, what it missed comes down.
    func sync(_ request: HTTPRequest) async -> Outcome {
        do {
            guard let token = try await admitted(request) else { return Self.unauthorized() }
            var outcome = await sync(request, token)
            outcome.token = token.identifier
            outcome.dataSet = token.dataSet
            return outcome
        } catch {
            return failed(error)
        }
    }

    private func sync(_ request: HTTPRequest, _ token: TokenRecord) async -> Outcome {
        do throws(Problem) {
            let (message, source) = try Self.read(request)
            var outcome = await answer(
                AdmittedRequest(
                    principal: token.principal, request: message, source: source,
                    acceptsGzip: ContentCoding.acceptsGzip(request.headers["accept-encoding"])),
                dataSet: token.dataSet)
            outcome.device = message.clientID
            return outcome
        } catch {
            var outcome = Outcome(error)
            if error.kind == Problem.unsupportedEncoding.kind {
                outcome.response.headers.append(HTTPField("Accept-Encoding", "gzip"))
            }
            return outcome
        }
    }

    private func answer(_ admitted: AdmittedRequest, dataSet: String) async -> Outcome {
        do {
            let service = try await dataSets.service(dataSet)
            switch await service.answer(admitted) {
            case .failure(let problem): return Outcome(problem)
            case .success(let answer): return outcome(answer)
            }
        } catch {
            return failed(error, dataSet)
        }
    }

    private func outcome(_ answer: PreparedAnswer) -> Outcome {
        var outcome = Outcome.json(answer.body, gzip: answer.isGzip ? answer.body : nil)
        let refused = answer.refused.flatMap { reason, count in
            [String](repeating: reason.rawValue, count: count)
        }
        outcome.accepted = answer.accepted
        outcome.refused = refused.count
        metrics.countVerdicts(accepted: answer.accepted, refused: refused)
        return outcome
    }

    // MARK: - Reading

    /// The message in a request's body, and the bytes it was read from.
    static func read(_ request: HTTPRequest) throws(Problem) -> (SyncRequest, [UInt8]) {
        guard ContentCoding.isJSON(request.headers["content-type"]) else {
            throw .unsupportedMediaType
        }
        let bytes = try inflated(request)
        let message = try decoded(bytes)
        let version = message.protocolVersion ?? WireVersion.current
        guard WireVersion.oldest...WireVersion.current ~= version else {
            throw .versionUnsupported
        }
        return (message, bytes)
    }

    private static func inflated(_ request: HTTPRequest) throws(Problem) -> [UInt8] {
        let codings = request.headers.lineCount("content-encoding")
        switch ContentCoding.request(request.headers["content-encoding"]) {
        case .plain where codings <= 1: return request.body
        case .gzip where codings == 1: break
        default: throw .unsupportedEncoding
        }
        do {
            return try WholeGzip.inflate(
                request.body, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
                ratioFloor: Limits.inflationRatioFloor)
        } catch {
            switch error.kind {
            case .tooLarge, .ratio: throw .tooLarge(sentence(error.message))
            default:
                throw .malformed("The body is not gzip: \(error.message).")
            }
        }
    }

    private static func decoded(_ bytes: [UInt8]) throws(Problem) -> SyncRequest {
        do {
            return try SyncCoder.decodeRequest(bytes)
        } catch {
            // A version this server does not know may look different from here on.
            if let version = version(in: bytes),
                !(WireVersion.oldest...WireVersion.current ~= version)
            {
                throw .versionUnsupported
            }
            throw .malformed(error.description)
        }
    }

    /// The `protocol` member of a message that is otherwise not ours.
    private static func version(in bytes: [UInt8]) -> Int64? {
        var version: Int64?
        var json = JSONReader(bytes)
        do {
            try json.readObject { (json, name) throws(WireFault) in
                if name == "protocol" {
                    version = try json.readInteger()
                } else {
                    try json.skipValue()
                }
            }
        } catch {
            return nil
        }
        return version
    }

    private static func sentence(_ text: String) -> String {
        text.prefix(1).uppercased() + text.dropFirst() + "."
    }
}
