internal import CLibevent
internal import WebSocketKit

/// The part of a connection that works as a WebSocket.
extension HTTPConnection {
    /// The bytes passed to the session at a time, so that a client's small messages do not
    /// accumulate.
    private static let portionByteCount = 16 << 10

    /// Sends the head, then starts the talk.
    func beginWebSocket(_ response: HTTPResponse, _ talk: WebSocketTalk) {
        releaseRequest()
        forgetHead()
        let state = WebSocketState(
            session: WebSocketSession(
                role: .server, maxMessageByteCount: talk.maxMessageByteCount),
            now: Clock.now(), options: core.options.webSocket,
            claim: RequestClaim(parties: core.parties(address: address)))
        webSocket = state
        phase = .webSocket
        core.counters.openWebSockets += 1
        write(ResponseHead.upgradeBytes(of: response, dateLine: core.dateLine))
        let socket = WebSocket(connection: self)
        task = Task.detached {
            await talk.talk(socket)
            await self.talkEnded()
        }
        readWebSocket()
        scheduleWebSocket()
    }

    private func talkEnded() {
        guard case .webSocket = phase else { return }
        task = nil
        closeWebSocket(.normal, "")
    }

    // MARK: - From the talk

    func nextMessage() async -> WebSocket.Message? {
        guard case .webSocket = phase, let state = webSocket, state.closing == nil else {
            return nil
        }
        precondition(state.receiver == nil, "one caller at a time waits for a message")
        state.dealtWith()
        countHeldBytes()
        if state.inbox.isEmpty { readWebSocket() }
        if let message = state.next() { return message }
        guard case .webSocket = phase, state.closing == nil else { return nil }
        return await withCheckedContinuation { state.receiver = $0 }
    }

    /// Sends a text after the bytes that wait.
    /// - Returns: Whether the sender has to wait for the client.
    func pushMessage(_ text: [UInt8]) throws(WebSocketClosed) -> Bool {
        guard case .webSocket = phase, let state = webSocket, state.closing == nil,
            state.session.send(text: text)
        else { throw WebSocketClosed() }
        core.counters.webSocketMessagesSent += 1
        flush(state)
        return unsentByteCount > core.options.webSocket.bufferByteCount
    }

    /// Waits until there is room for another message.
    func awaitRoom() async throws(WebSocketClosed) {
        guard case .webSocket = phase, let state = webSocket, state.closing == nil else {
            throw WebSocketClosed()
        }
        guard unsentByteCount > core.options.webSocket.bufferByteCount else { return }
        await withCheckedContinuation { state.senders.append($0) }
        guard case .webSocket = phase, state.closing == nil else { throw WebSocketClosed() }
    }

    func closeWebSocket(_ code: WebSocketCode, _ reason: String) {
        guard case .webSocket = phase, let state = webSocket, state.closing == nil else { return }
        state.session.close(code, reason)
        beginClosing(state)
        flush(state)
        finishIfDone(state)
    }

    func allowMessages(upTo byteCount: Int, of party: String) {
        guard let state = webSocket else { return }
        state.session.allowMessages(upTo: byteCount)
        reader = .named(party)
        guard let refusal = core.admit(party: party, to: &state.claim) else { return }
        closeWebSocket(.tryAgainLater, refusal.detail)
    }

    // MARK: - From the client

    /// Handles the arrival of bytes.
    func webSocketReadable() {
        if webSocket?.heard(Clock.now()) == true { scheduleWebSocket() }
        readWebSocket()
    }

    /// Reads the bytes that have arrived, as far as the receiver and the output have room.
    func readWebSocket() {
        guard case .webSocket = phase, let state = webSocket, let bufferevent,
            let input = bufferevent_get_input(bufferevent)
        else { return }
        while state.wantsInput, unsentByteCount <= core.options.webSocket.bufferByteCount {
            let count = min(evbuffer_get_contiguous_space(input), Self.portionByteCount)
            guard count > 0, let start = evbuffer_pullup(input, count) else { break }
            let events = state.session.receive(UnsafeRawBufferPointer(start: start, count: count))
            evbuffer_drain(input, count)
            take(events, state)
            guard case .webSocket = phase else { return }
            countHeldBytes()
        }
        if state.session.isDeaf { evbuffer_drain(input, evbuffer_get_length(input)) }
        if state.session.isInMessage { scheduleWebSocket() }
        flush(state)
        deliver(state)
        finishIfDone(state)
    }

    private func take(_ events: [WebSocketSession.Event], _ state: WebSocketState) {
        for event in events {
            switch event {
            case .text(let text): state.add(.text(text))
            case .binary(let bytes): state.add(.binary(bytes))
            case .ping, .pong, .close: continue
            }
            core.counters.webSocketMessagesReceived += 1
        }
        state.watchMessage(Clock.now(), deadline: core.options.webSocket.messageDeadline)
        guard state.session.isDeaf, state.closing == nil else { return }
        let faults: Set<WebSocketCode?> = [.protocolError, .invalidText, .tooBig]
        if faults.contains(state.session.sentCode) { core.counters.webSocketFaults += 1 }
        beginClosing(state)
    }

    private func deliver(_ state: WebSocketState) {
        guard let receiver = state.receiver, let message = state.next() else { return }
        state.receiver = nil
        receiver.resume(returning: message)
    }

    /// Counts the received bytes that are not processed yet among the bodies of requests.
    private func countHeldBytes() {
        guard let state = webSocket else { return }
        let more = state.heldByteCount - state.claim.usage.bytes
        if more < 0 { core.release(bytes: -more, of: &state.claim) }
        guard more > 0,
            let refusal = core.admit(RequestRoom.Usage(bytes: more), to: &state.claim)
        else { return }
        closeWebSocket(.tryAgainLater, refusal.detail)
    }

    // MARK: - To the client

    /// Writes the output of the session.
    private func flush(_ state: WebSocketState) {
        let bytes = state.session.takeOutput()
        guard !bytes.isEmpty else { return }
        write(bytes)
        guard unsentByteCount > 0 else { return }
        state.noteTaken(backlog.takenByteCount, isAll: false, Clock.now())
        scheduleWebSocket()
    }

    /// Continues when all written bytes have left.
    func webSocketDrained() {
        guard let state = webSocket else { return }
        state.noteTaken(backlog.takenByteCount, isAll: true, Clock.now())
        state.releaseSenders()
        finishIfDone(state)
        // Reading may have paused because the output had no room.
        readWebSocket()
    }

    // MARK: - The end

    /// Begins the closing handshake. From then on the talk neither receives nor sends.
    private func beginClosing(_ state: WebSocketState) {
        let deadline = Clock.nanoseconds(core.options.webSocket.closeDeadline)
        state.beginClosing(by: Clock.now() + deadline)
        scheduleWebSocket()
    }

    /// Ends the connection when both ends have sent a close frame and all bytes are written.
    private func finishIfDone(_ state: WebSocketState) {
        guard case .webSocket = phase, state.session.isFinished, unsentByteCount == 0 else {
            return
        }
        endWebSocket()
        linger()
    }

    /// Releases everything that belongs to the WebSocket.
    func endWebSocket() {
        guard let state = webSocket else { return }
        webSocket = nil
        core.release(state.claim)
        core.counters.openWebSockets -= 1
        state.release()
        task?.cancel()
        task = nil
    }

    // MARK: - Time

    private func scheduleWebSocket() {
        guard let state = webSocket else { return }
        let now = Clock.now()
        let next = state.nextDeadline
        timer?.set(in: next > now ? next - now : 0)
    }

    func webSocketDeadlinePassed() {
        guard let state = webSocket else { return }
        let now = Clock.now()
        if let closing = state.closing, closing <= now { return close() }
        state.noteTaken(backlog.takenByteCount, isAll: unsentByteCount == 0, now)
        if state.isStalled(now) {
            core.counters.webSocketsStalled += 1
            closeWebSocket(
                core.options.webSocket.stalledCode, core.options.webSocket.stalledReason)
        }
        if state.isMessageLate(now) {
            closeWebSocket(.policy, "The message did not arrive in time.")
        }
        switch state.life(now) {
        case .fine: break
        case .ask:
            state.session.ping()
            flush(state)
        case .gone:
            core.counters.webSocketsLost += 1
            return close()
        }
        scheduleWebSocket()
    }
}
