internal import CompressionKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol

/// Answers requests as the script says.
struct MockPlayer: Sendable {
    let book: MockBook

    func answer(_ http: HTTPRequest) async -> HTTPResponse {
        switch http.path {
        case "/mock/requests": return lines(book.requests.map(\.json))
        case "/mock/verdict": return Self.json(book.verdict.json)
        default: break
        }
        let request = MockRequest(http, number: book.number())
        if let token = book.script.token, request.headers["authorization"] != "Bearer \(token)" {
            return Self.refusal(
                Problem(
                    status: 401, kind: "unauthorized",
                    detail: "The script asks for a token, and this is not it."))
        }
        guard let step = book.step(for: request) else {
            guard book.script.fallback == .log else {
                return Self.refusal(
                    Problem(
                        status: 404, kind: "notFound", detail: "No step of the script fits this."))
            }
            return await play(MockAnswer(parts: [MockPart(content: .log)]), for: request)
        }
        return await play(step.answer, for: request)
    }

    private func lines(_ lines: [[UInt8]]) -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: [HTTPField("Content-Type", "application/x-ndjson")],
            body: lines.map { $0 + [10] })
    }

    private static func json(_ bytes: [UInt8]) -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: [HTTPField("Content-Type", "application/json")], body: [bytes])
    }

    static func refusal(_ problem: Problem) -> HTTPResponse {
        var headers = [HTTPField("Content-Type", "application/problem+json")]
        if let seconds = problem.retryAfter {
            headers.append(HTTPField("Retry-After", String(seconds)))
        }
        return HTTPResponse(
            status: problem.status, headers: headers, body: [SyncCoder.encode(problem)])
    }

    // MARK: - Playing

    private func play(_ answer: MockAnswer, for request: MockRequest) async -> HTTPResponse {
        if answer.delay > 0 { try? await Task.sleep(for: .milliseconds(answer.delay)) }
        if answer.hangsUp {
            var response = HTTPResponse(status: 200)
            response.hangsUp = true
            return response
        }
        var whole: [UInt8]?
        var answer = answer
        if let only = answer.onlyPart {
            if case .log = only, let other = await unknown(request) { return other }
            whole = await bytes(of: only, for: request)
            if case .file(let file) = only { whole = answer.takeRange(of: file, for: request) }
            if case .problem(let problem) = only, answer.isWhole {
                var response = Self.refusal(problem)
                response.headers += answer.fields
                return response
            }
        }
        var response = HTTPResponse(status: answer.status, headers: fields(answer, request))
        if let bytes = whole, answer.isWhole {
            response.body = [answer.isCompressed ? Gzip.compress(bytes) : bytes]
            return response
        }
        let (first, played) = (whole, answer)
        response.stream = { writer in
            var sink = MockSink(writer: writer, drip: played.drip)
            do {
                try await perform(played, first: first, request, into: &sink)
            } catch is MockSink.Truncated {
                // The body ends here properly.
            }
        }
        return response
    }

    /// Answers a request for which the log has no answer.
    private func unknown(_ request: MockRequest) async -> HTTPResponse? {
        switch request.endpoint {
        case .schema, .stream, .deltas: return nil
        case .poll:
            guard request.since == nil else { return nil }
            return Self.refusal(
                Problem(
                    status: 400, kind: "malformed", detail: "The query needs “since”."))
        case .sync:
            do throws(WireFault) {
                _ = try SyncCoder.decodeRequest(request.body)
                return nil
            } catch {
                return Self.refusal(
                    Problem(status: 400, kind: "malformed", detail: error.description))
            }
        case .snapshot:
            return Self.refusal(
                Problem(
                    status: 404, kind: "noSnapshot",
                    detail: "The script has no snapshot; begin with POST /sync."))
        case .any:
            return Self.refusal(
                Problem(status: 404, kind: "notFound", detail: "The script has nothing here."))
        }
    }

    private func fields(_ answer: MockAnswer, _ request: MockRequest) -> [HTTPField] {
        var fields = answer.fields
        if !answer.headers.contains(where: { $0.name.lowercased() == "content-type" }) {
            let type: String
            if answer.status >= 400 {
                type = "application/problem+json"
            } else {
                type = request.endpoint == .stream ? "text/event-stream" : "application/json"
            }
            fields.append(HTTPField("Content-Type", type))
        }
        if answer.isCompressed { fields.append(HTTPField("Content-Encoding", "gzip")) }
        return fields
    }

    /// Writes an answer's parts.
    /// - Parameter first: The bytes of the only part, if they are made already.
    private func perform(
        _ answer: MockAnswer, first: [UInt8]?, _ request: MockRequest, into sink: inout MockSink
    ) async throws {
        var cursor = request.since ?? 0
        for part in answer.parts {
            if part.delay > 0 { try await Task.sleep(for: .milliseconds(part.delay)) }
            sink.begin(part)
            for _ in 0..<part.times {
                switch part.content {
                case .end: return
                case .hold: try await hold()
                case .log where request.endpoint == .stream:
                    try await follow(from: cursor, request, into: &sink)
                case .generated(let generator):
                    try await generate(generator, cursor, request, into: &sink)
                    cursor = generator.lastVersion(since: cursor)
                default:
                    let bytes: [UInt8]
                    if let first {
                        bytes = first
                    } else {
                        bytes = await self.bytes(of: part.content, for: request) ?? []
                    }
                    if case .batch(_, let id?) = part.content { cursor = max(cursor, id) }
                    try await sink.write(bytes)
                }
            }
            try await sink.end()
        }
        guard request.endpoint == .stream, answer.status == 200 else { return }
        sink.begin(MockPart(content: .log))
        try await follow(from: cursor, request, into: &sink)
    }

    /// Returns the bytes of a content that is written in one piece; nil for other contents.
    private func bytes(of content: MockPart.Content, for request: MockRequest) async -> [UInt8]? {
        switch content {
        case .bytes(let bytes): return bytes
        case .batch(let json, let id):
            return request.endpoint == .stream ? Self.event(json, id: id) : json
        case .problem(let problem): return SyncCoder.encode(problem)
        case .log: return await logAnswer(request, refusal: nil)
        case .refusal(let reason, let message, let retryAfter):
            return await logAnswer(request) { sent in
                Self.refused(sent, reason, message, retryAfter)
            }
        case .file(let bytes): return bytes
        case .generated, .hold, .end: return nil
        }
    }

    private static func event(_ json: [UInt8], id: Int64?) -> [UInt8] {
        Array((id.map { "id: \($0)\n" } ?? "").utf8) + Array("data: ".utf8) + json + [10, 10]
    }
}

// MARK: - What the log says

extension MockPlayer {
    private func logAnswer(
        _ request: MockRequest, refusal: (@Sendable (ChangeSet) -> ChangeSet)?
    ) async -> [UInt8]? {
        switch request.endpoint {
        case .schema: return schemaDocument
        case .sync: return syncAnswer(request, refusal: refusal)
        case .poll:
            let since = request.since ?? 0
            let seconds = min(60, max(0, request.number(inQuery: "wait") ?? 0))
            if !request.wantsRows { await book.wait(beyond: since, seconds: seconds) }
            return SyncCoder.encode(batch(since, request))
        case .stream, .deltas, .snapshot, .any: return nil
        }
    }

    private func batch(_ since: Revision, _ request: MockRequest) -> DeltaBatch {
        var batch = book.withLog { log in
            log.rise(to: since)
            return log.batch(
                since: since, client: request.client, wantsRows: request.wantsRows)
        }
        batch.dataSet = book.script.dataSet
        return batch
    }

    private var schemaDocument: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("hash", book.script.schema.fingerprint)
        json.member("protocol", WireVersion.current)
        json.member("ddl", book.script.ddl)
        json.endObject()
        return json.bytes
    }

    private func syncAnswer(
        _ request: MockRequest, refusal: (@Sendable (ChangeSet) -> ChangeSet)?
    ) -> [UInt8]? {
        guard let message = try? SyncCoder.decodeRequest(request.body) else { return nil }
        var answer = book.withLog { $0.answer(message, refusal: refusal) }
        answer.dataSet = book.script.dataSet
        return try? SyncCoder.encode(answer)
    }

    private static func refused(
        _ sent: ChangeSet, _ reason: RefusalReason, _ message: String, _ retryAfter: Int64?
    ) -> ChangeSet {
        // New records do not exist, and the answer does not contain the others.
        var set = ChangeSet(
            types: sent.types.map { TypeChanges(name: $0.name, delete: $0.create) })
        set.identifier = sent.identifier
        set.sequence = sent.sequence
        set.conflict = true
        set.reason = reason
        set.message = message
        set.retryAfter = retryAfter
        return set
    }

    /// Sends the log's present and future entries as events, until the client leaves.
    private func follow(
        from start: Revision, _ request: MockRequest, into sink: inout MockSink
    ) async throws {
        var cursor = start
        while true {
            try Task.checkCancellation()
            let batch = batch(cursor, request)
            if batch.nextVersion > cursor {
                try await sink.write(
                    Self.event(SyncCoder.encode(batch), id: batch.nextVersion))
                cursor = batch.nextVersion
            }
            await book.wait(beyond: cursor)
        }
    }

    /// Sends nothing until the client leaves.
    private func hold() async throws {
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }
}

// MARK: - What is generated

extension MockPlayer {
    /// The number of bytes that are gathered before they are written.
    private static let pieceBytes = 32 << 10

    private func generate(
        _ generator: MockGenerator, _ since: Int64, _ request: MockRequest,
        into sink: inout MockSink
    ) async throws {
        let last = generator.lastVersion(since: since)
        book.withLog { log in
            log.reserve(generator.type, upTo: generator.firstID + generator.count - 1)
        }
        if request.endpoint == .sync {
            try await generateAnswer(generator, since, into: &sink)
            return
        }
        let isStream = request.endpoint == .stream
        var index = generator.start(since: since)
        var from = since
        while index < generator.count {
            var end = generator.count
            if isStream, let size = generator.perBatch { end = min(end, index + size) }
            // A version is never split over two batches.
            while end < generator.count,
                generator.version(at: end, since: since)
                    == generator.version(at: end - 1, since: since)
            {
                end += 1
            }
            let next = end == generator.count ? last : generator.version(at: end - 1, since: since)
            var batch = DeltaBatch(from: from, deltas: [], nextVersion: next)
            batch.dataSet = book.script.dataSet
            var piece = isStream ? [UInt8]("id: \(next)\ndata: ".utf8) : []
            piece += SyncCoder.deltaHead(batch)
            for position in index..<end {
                if position > index { piece.append(UInt8(ascii: ",")) }
                piece += generator.delta(at: position, since: since)
                try await sink.write(&piece, beyond: Self.pieceBytes)
            }
            piece += SyncCoder.deltaTail(nextVersion: next)
            if isStream { piece += [10, 10] }
            try await sink.write(piece)
            (index, from) = (end, next)
        }
    }

    /// Writes the generated records as an answer to `POST /sync`.
    private func generateAnswer(
        _ generator: MockGenerator, _ since: Int64, into sink: inout MockSink
    ) async throws {
        var answer = SyncAnswer(maxRevision: generator.lastVersion(since: since))
        answer.dataSet = book.script.dataSet
        var piece = try SyncCoder.answerHead(answer)
        let start = generator.start(since: since)
        var index = start
        while index < generator.count {
            if index > start { piece.append(UInt8(ascii: ",")) }
            let (set, next) = generator.changeSet(at: index, since: since)
            piece += set
            index = next
            try await sink.write(&piece, beyond: Self.pieceBytes)
        }
        try await sink.write(piece + SyncCoder.tail)
    }
}

extension MockAnswer {
    /// The content of the only part; nil if there are several, or if it is written gradually.
    fileprivate var onlyPart: MockPart.Content? {
        parts.count == 1 && parts[0].times == 1 ? parts[0].content : nil
    }

    /// Whether the body is sent in one piece, with its length in the head.
    fileprivate var isWhole: Bool {
        drip == nil && parts.count == 1 && parts[0].times == 1 && parts[0].cut == nil
            && parts[0].truncate == nil
    }

    fileprivate var fields: [HTTPField] { headers.map { HTTPField($0.name, $0.value) } }
}
