internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import WebSocketKit
internal import WebTokens

/// One listener over WebSocket. The server sends batches, and the listener sends change sets.
struct DeltaSocket: Sendable {
    /// The server refused the request and sent the problem before. The same request would end the
    /// same.
    static let refused = WebSocketCode(rawValue: 4000)
    /// The listener has no good token, or sent none in time.
    static let unauthorized = WebSocketCode(rawValue: 4001)
    /// The listener reads too slowly. It catches up by polling.
    static let tooSlow = WebSocketCode(rawValue: 4008)
    /// The most bytes of the message that carries the token.
    static let tokenMessageBytes = TokenVerifier.longestToken + 1_024

    let handler: RequestHandler
    let query: DeltaQuery
    let peer: String

    /// Talks until one of the two sides ends it.
    ///
    /// - Parameters:
    ///   - given: The token of the request's header; nil if the first message brings it.
    ///   - first: The batch after the request's revision; nil if it has still to be made.
    func talk(
        _ socket: WebSocket, token given: [UInt8]?, _ first: Listening.FirstBatch?
    ) async {
        do {
            guard let token = await tokenBytes(socket, given) else {
                return await Self.end(socket, TokenDenial(.unknown))
            }
            let record = try await handler.record(of: token)
            await socket.allowMessages(
                upTo: Limits.requestBytes, of: RequestHandler.party(record))
            try await handler.dataSets.use(record.dataSet) { service in
                let listening = Listening(
                    handler: handler, service: service, token: token, record: record)
                await withTaskGroup { group in
                    group.addTask { await follow(listening, first, socket) }
                    // The task that ends first has closed the socket, which ends the other one.
                    await hear(socket, token)
                    group.cancelAll()
                }
            }
        } catch let denial as TokenDenial {
            await Self.end(socket, denial)
        } catch {
            _ = handler.failed(error)
            await socket.close(.internalError, "The server could not reach its storage.")
        }
    }

    private func tokenBytes(_ socket: WebSocket, _ given: [UInt8]?) async -> [UInt8]? {
        if let given { return given }
        let deadline = Task { [tokenDeadline = handler.tokenDeadline] in
            do { try await Task.sleep(for: tokenDeadline) } catch { return }
            await Self.end(socket, TokenDenial(.unknown))
        }
        defer { deadline.cancel() }
        guard case .text(let text) = await socket.receive(),
            let token = (try? SocketMessage(text))?.token.map({ [UInt8]($0.utf8) }),
            BearerToken.isValid(token)
        else { return nil }
        return token
    }

    // MARK: - Down

    private func follow(
        _ listening: Listening, _ first: Listening.FirstBatch?, _ socket: WebSocket
    ) async {
        do {
            // The WebSocket itself pings when it is quiet, so nothing is sent here.
            let ending = try await listening.run(
                query.deltaRequest(listening.record.principal), first
            ) {
                (batch: consuming DeltaBatchBytes, handedOver) in
                try await socket.send((consume batch).json, handedOver: handedOver)
            } quiet: {
            }
            switch ending {
            case .unauthorized(let denial): await Self.end(socket, denial)
            case .stopping: await socket.close(.goingAway, "The server stops.")
            case .problem(let problem): await Self.end(socket, problem)
            }
        } catch is WebSocketClosed {
            // The listener left, or the server has told it why it must leave.
        } catch is CancellationError {
            await socket.close(.goingAway, "")
        } catch {
            _ = handler.failed(error)
            await socket.close(.internalError, "The server could not reach its storage.")
        }
    }

    // MARK: - Up

    private func hear(_ socket: WebSocket, _ token: [UInt8]) async {
        while let message = await socket.receive() {
            guard case .text(let text) = message else {
                return await socket.close(.unsupportedData, "Messages are JSON, as text.")
            }
            do {
                let record = try await handler.record(of: token)
                try await socket.send(await handler.reply(to: text, record, peer: peer))
            } catch is WebSocketClosed {
                return
            } catch let denial as TokenDenial {
                return await Self.end(socket, denial)
            } catch {
                _ = handler.failed(error)
                return await socket.close(
                    .internalError, "The server could not reach its storage.")
            }
        }
        // This ends the other half, which would otherwise wait for the next change.
        await socket.close(.normal, "")
    }

    // MARK: - Endings

    private static func end(_ socket: WebSocket, _ denial: TokenDenial) async {
        await socket.close(unauthorized, denial.problem.kind)
    }

    private static func end(_ socket: WebSocket, _ problem: Problem) async {
        let text = SocketMessage.reply(nil, "problem", [SyncCoder.encode(problem)])
        do { try await socket.send(text) } catch { return }
        await socket.close(refused, problem.kind)
    }
}

extension RequestHandler {
    /// Answers a `GET /deltas` that asks for an upgrade to a WebSocket.
    func socket(_ request: HTTPRequest, _ handshake: WebSocketHandshake) async -> Outcome {
        guard origins.allows(request.headers) else { return Outcome(Problem.originRefused) }
        do {
            let query = try DeltaQuery(request, isEvents: false)
            let socket = DeltaSocket(handler: self, query: query, peer: request.peer)
            guard request.headers.lineCount("authorization") > 0 else {
                return upgrade(handshake, socket, token: nil, nil)
            }
            let record = try await admitted(request)
            let deltaRequest = query.deltaRequest(record.principal)
            let claim = AnswerClaim(of: Self.party(record))
            let answer = try await dataSets.ask(record.dataSet) {
                await $0.deltas(deltaRequest, claim)
            }
            var outcome =
                switch answer {
                case .success(let batch):
                    upgrade(
                        handshake, socket, token: Self.bearer(request),
                        Listening.FirstBatch(batch, claim, for: record.principal))
                case .failure(let problem): Outcome(problem)
                }
            outcome.note(record)
            outcome.device = query.clientID
            return outcome
        } catch let problem as Problem {
            return Outcome(problem)
        } catch {
            return failed(error)
        }
    }

    private func upgrade(
        _ handshake: WebSocketHandshake, _ socket: DeltaSocket, token: [UInt8]?,
        _ first: Listening.FirstBatch?
    ) -> Outcome {
        let limit = token == nil ? DeltaSocket.tokenMessageBytes : Limits.requestBytes
        return Outcome(
            .webSocket(handshake, maxMessageByteCount: limit) {
                await socket.talk($0, token: token, first)
            })
    }

    /// Decides on a message as on the body of a `POST /sync`.
    func reply(to text: [UInt8], _ token: TokenRecord, peer: String) async -> [UInt8] {
        let start = ContinuousClock.now
        var id: [UInt8]?
        var outcome: Outcome
        do throws(Problem) {
            let message = try SocketMessage(text)
            id = message.id
            guard let sync = message.sync else {
                throw Problem.malformed("A message holds “sync”, the request, and an “id”.")
            }
            let request = try await reading.read(json: sync)
            outcome = await answer(
                AdmittedRequest(principal: token.principal, request: request, source: sync),
                token)
            outcome.device = request.clientID
        } catch {
            outcome = Outcome(error)
        }
        outcome.endpoint = "/deltas#sync"
        outcome.note(token)
        note(outcome, requestByteCount: text.count, ContinuousClock.now - start)
        let member = outcome.kind == "ok" ? "answer" : "problem"
        return SocketMessage.reply(id, member, outcome.response.body)
    }
}
