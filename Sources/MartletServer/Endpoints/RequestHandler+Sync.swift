internal import DeflateKit
internal import HTTPKit
internal import MartletProtocol
internal import MartletServerCore

extension RequestHandler {
    /// `POST /sync`: what a device changed goes up, what it missed comes down.
    func sync(_ request: HTTPRequest) async -> Outcome {
        do {
            let token = try await admitted(request)
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
            let (message, source) = try await reading.read(request)
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

    func answer(_ admitted: AdmittedRequest, dataSet: String) async -> Outcome {
        do {
            switch try await dataSets.ask(dataSet, { await $0.answer(admitted) }).answer {
            case .failure(let problem): return Outcome(problem)
            case .success(let answer): return outcome(answer)
            }
        } catch {
            return failed(error, dataSet)
        }
    }

    private func outcome(_ answer: PreparedAnswer) -> Outcome {
        let gzip = answer.gainsByGzip ? WholeGzip.compress(answer.body) : nil
        var outcome = Outcome.json(answer.body, gzip: answer.isGzip ? answer.body : gzip)
        let refused = answer.refused.flatMap { reason, count in
            [String](repeating: reason.rawValue, count: count)
        }
        outcome.accepted = answer.accepted
        outcome.refused = refused.count
        if answer.isDifference { metrics.countDifference() }
        metrics.countVerdicts(accepted: answer.accepted, refused: refused)
        return outcome
    }
}
