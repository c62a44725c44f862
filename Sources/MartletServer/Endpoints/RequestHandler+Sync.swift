internal import DeflateKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

extension RequestHandler {
    /// Answers `POST /sync`: takes the device's change sets, and returns the changes that it
    /// missed.
    func sync(_ request: HTTPRequest) async -> Outcome {
        do {
            let token = try await admitted(request)
            var outcome = await inPieces(request, token)
            outcome.note(token)
            return outcome
        } catch {
            return failed(error)
        }
    }

    /// Collects a body that arrives in pieces, and answers the request once it is complete. Until
    /// then each answer says how many bytes have arrived.
    private func inPieces(_ request: HTTPRequest, _ token: TokenRecord) async -> Outcome {
        guard request.query != nil else { return await sync(request, token) }
        do {
            let items = try QueryItems(
                request.query, names: ["upload", "from", "total", "answer", "most"])
            let bytes = Int64(Limits.requestBytes)
            guard let name = try items.name("upload"),
                let from = try items.integer("from", in: 0...bytes),
                let total = try items.integer("total", in: 1...bytes)
            else {
                throw Problem.malformed("A piece of a body needs “upload”, “from” and “total”.")
            }
            let key = UploadShelf.Key(
                token: token.identifier, name: name,
                party: token.user.map { "\(token.dataSet) \($0)" })
            let (received, whole) = uploads.add(
                request.body, at: Int(from), of: Int(total), key)
            guard let whole else { return Self.received(received) }
            let answer = try items.integer("answer", in: 0...Int64(Limits.inflatedBytes))
            let most = try items.integer("most", in: 1...Int64(Limits.inflatedBytes))
            // If the line was cut, the kept answer is sent again from there.
            if let answer, answer > 0, let kept = uploads.answer(key) {
                guard try await maySend(kept, to: token, key) else {
                    // The device sends its request again, and gets another answer.
                    uploads.remove(key)
                    return Self.received(0)
                }
                return Self.piece(of: kept, from: Int(answer), most: Int(most ?? 1))
            }
            var all = request
            all.query = nil
            all.body = whole
            let outcome = await sync(all, token)
            guard let most else { return outcome }
            let response = outcome.response
            let kept = UploadShelf.Answer(
                status: response.status,
                isGzip: response.headers.contains { $0.name == "Content-Encoding" },
                bytes: Array(response.body.joined()), view: outcome.view)
            uploads.keep(kept, key)
            var first = Self.piece(of: kept, from: 0, most: Int(most))
            (first.accepted, first.refused, first.device) =
                (outcome.accepted, outcome.refused, outcome.device)
            first.kind = outcome.kind
            return first
        } catch {
            return failed(error, token.dataSet)
        }
    }

    /// Returns whether the user may be sent the rest of an answer. Since it was made, records may have left
    /// his view.
    private func maySend(
        _ kept: UploadShelf.Answer, to token: TokenRecord, _ key: UploadShelf.Key
    ) async throws -> Bool {
        // A problem has no records.
        guard kept.status == 200 else { return true }
        let view = try await dataSets.use(token.dataSet) { service in
            try await service.stillShows(kept.view, to: token.principal)
        }
        guard let view else { return false }
        if view != kept.view { uploads.renew(view, key) }
        return true
    }

    /// Returns the answer to a piece of a body if other bytes of the body are still missing.
    private static func received(_ count: Int) -> Outcome {
        var outcome = Outcome.json([UInt8]("{\"received\":\(count)}".utf8), gzip: nil)
        outcome.response.status = 202
        return outcome
    }

    /// Returns some bytes of an answer, with its status, coding and length in a header field.
    private static func piece(
        of answer: UploadShelf.Answer, from start: Int, most: Int
    ) -> Outcome {
        let start = min(start, answer.bytes.count)
        let end = start + min(most, answer.bytes.count - start)
        let words = "\(answer.status) \(answer.isGzip ? "gzip" : "plain") \(answer.bytes.count)"
        return Outcome(
            HTTPResponse(
                status: 206,
                headers: [
                    HTTPField("Content-Type", "application/octet-stream"), Outcome.notStored,
                    HTTPField("Martlet-Answer", words),
                ], body: [Array(answer.bytes[start..<end])]))
    }

    private func sync(_ request: HTTPRequest, _ token: TokenRecord) async -> Outcome {
        do throws(Problem) {
            let (message, source) = try await reading.read(request)
            var outcome = await answer(
                AdmittedRequest(
                    principal: token.principal, request: message, source: source,
                    acceptsGzip: ContentCoding.acceptsGzip(request.headers["accept-encoding"])),
                token)
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

    func answer(_ admitted: AdmittedRequest, _ token: TokenRecord) async -> Outcome {
        let claim = AnswerClaim(of: Self.party(token))
        do {
            switch try await dataSets.ask(token.dataSet, { await $0.answer(admitted, claim) }) {
            case .failure(let problem): return Outcome(problem)
            case .success(let answer):
                var outcome = outcome(answer)
                outcome.response.attachment = claim
                return outcome
            }
        } catch {
            return failed(error, token.dataSet)
        }
    }

    private func outcome(_ answer: PreparedAnswer) -> Outcome {
        let gzip = answer.gainsByGzip ? OneShotGzip.compress(answer.body) : nil
        var outcome = Outcome.json(answer.body, gzip: answer.isGzip ? answer.body : gzip)
        let refused = answer.refused.flatMap { reason, count in
            [String](repeating: reason.rawValue, count: count)
        }
        outcome.accepted = answer.accepted
        outcome.refused = refused.count
        outcome.view = answer.view
        if answer.isDifference { metrics.countDifference() }
        metrics.countVerdicts(accepted: answer.accepted, refused: refused)
        return outcome
    }
}
