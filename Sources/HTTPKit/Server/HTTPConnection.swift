internal import CLibevent
internal import WebSocketKit

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A connection of one client. It reads requests one after another, passes each to the handler, and
/// writes the answers in the same order.
@EventLoop
final class HTTPConnection {
    enum Phase {
        /// The connection is between requests, and no byte of the next one has arrived.
        case idle
        case head
        /// The gate is deciding whether to read the body.
        case admitting
        case body
        /// The handler has the request.
        case handling
        case writing
        /// The handler writes the body.
        case streaming
        /// HTTP has ended; the connection is a WebSocket.
        case webSocket
        /// The last answer has left. The connection discards further bytes of the client, so that
        /// closing does not reset the connection before the client has read the answer.
        case lingering
        case closed
    }

    let core: ServerCore
    let address: String
    /// Whether the connection counts towards the limits. A connection that only receives a refusal
    /// does not.
    let isCounted: Bool
    var phase = Phase.idle
    private(set) var bufferevent: OpaquePointer?
    private(set) var ssl: OpaquePointer?
    private(set) var timer: DeadlineTimer?
    private var scanner = HeadScanner()
    private(set) var head: RequestHead?
    private var body: BodyReader?
    var task: Task<Void, Never>?
    /// The streamed answer under way.
    var stream: StreamState?
    /// The WebSocket that the connection has become.
    var webSocket: WebSocketState?
    /// The current request's share of the server's room; nil if there is no request.
    private var claim: RequestClaim?
    var isLast = false
    var unwrittenByteCount = 0
    private(set) var backlog = Backlog()
    /// The party that the bytes waiting for this client count for.
    var reader: RequestRoom.Party
    private var outputWatch: OpaquePointer?
    private var lingeredByteCount = 0
    private var lingersUntil: UInt64 = 0
    private var hasServed = false

    /// The bytes to read ahead while a handler runs. They suffice to notice that the client has
    /// gone away and to hold a few pipelined requests.
    private static let readAheadByteCount = 64 << 10
    /// The time after which a lingering connection ends if the client sends nothing.
    private static let lingerNanoseconds: UInt64 = 1_000_000_000
    /// The bytes that a lingering connection reads at least, because a proxy sends the rest of a
    /// refused body before it reads the refusal.
    private static let lingerByteCount = 4 << 20

    init(core: ServerCore, address: String, isCounted: Bool) {
        self.core = core
        self.address = address
        self.isCounted = isCounted
        reader = .address(address)
    }

    /// Takes ownership of the socket. Returns false and closes the socket if there is no memory.
    func open(_ socket: Int32) -> Bool {
        if let tls = core.tls {
            ssl = tls.makeSession()
            bufferevent = ssl.flatMap {
                martlet_bufferevent_tls(EventLoop.base, socket, $0)
            }
            // The bufferevent now owns the session.
        } else {
            bufferevent = martlet_bufferevent(EventLoop.base, socket)
        }
        guard let bufferevent else {
            if let ssl { SSL_free(ssl) }
            evutil_closesocket(socket)
            return false
        }
        timer = DeadlineTimer { [unowned self] in deadlinePassed() }
        outputWatch = evbuffer_add_cb(
            bufferevent_get_output(bufferevent),
            { _, change, argument in
                guard let change = change?.pointee else { return }
                let (added, taken) = (Int(change.n_added), Int(change.n_deleted))
                HTTPConnection.callback(argument) { $0.outputChanged(added: added, taken: taken) }
            }, Unmanaged.passUnretained(self).toOpaque())
        bufferevent_setcb(
            bufferevent, { HTTPConnection.callback($1) { $0.readable() } },
            { HTTPConnection.callback($1) { $0.written() } },
            { _, what, argument in
                HTTPConnection.callback(argument) { $0.event(Int32(what)) }
            }, Unmanaged.passUnretained(self).toOpaque())
        bufferevent_setwatermark(bufferevent, Int16(EV_READ), 0, Self.readAheadByteCount)
        bufferevent_enable(bufferevent, Int16(EV_READ | EV_WRITE))
        timer?.set(in: Clock.nanoseconds(core.options.headDeadline))
        return true
    }

    private nonisolated static func callback(
        _ argument: UnsafeMutableRawPointer?, _ body: @EventLoop (HTTPConnection) -> Void
    ) {
        // libevent passes the argument to this thread, on which it was set.
        nonisolated(unsafe) let argument = argument
        EventLoop.assume {
            guard let argument else { return }
            body(Unmanaged<HTTPConnection>.fromOpaque(argument).takeUnretainedValue())
        }
    }

    func close() {
        guard phase != .closed else { return }
        // Without a task, the handler or the gate has ended, and nobody else releases the request.
        let isHandled = task != nil && (phase == .handling || phase == .admitting)
        if case .streaming = phase { core.counters.openStreams -= 1 }
        phase = .closed
        endWebSocket()
        stream?.resume()
        stream = nil
        if let task {
            core.counters.abortedRequests += 1
            task.cancel()
        }
        // If the client is gone, its request counts until the handler or the gate ends.
        if !isHandled { releaseRequest() }
        task = nil
        timer?.cancel()
        timer = nil
        if let ssl {
            SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN)
            SSL_shutdown(ssl)
            ERR_clear_error()
        }
        if let bufferevent {
            core.waitingByteCount -= unsentByteCount
            if let outputWatch {
                evbuffer_remove_cb_entry(bufferevent_get_output(bufferevent), outputWatch)
            }
            bufferevent_free(bufferevent)
        }
        outputWatch = nil
        bufferevent = nil
        ssl = nil
        core.closed(self)
    }

    /// Handles the stop of the server. A request that has begun is still answered, and is the last.
    func serverStops() {
        isLast = true
        switch phase {
        case .idle: close()
        case .streaming: task?.cancel()
        case .webSocket: closeWebSocket(.goingAway, "The server stops.")
        default: break
        }
    }

    /// Releases the request if its client is gone. The handler calls this when it has ended.
    private func releaseIfClosed() {
        if phase == .closed { releaseRequest() }
    }

    func releaseRequest() {
        if let claim { core.release(claim) }
        claim = nil
    }

    // MARK: - Events

    private func event(_ what: Int32) {
        guard what & (BEV_EVENT_EOF | BEV_EVENT_ERROR) != 0 else { return }
        if case .writing = phase, what & BEV_EVENT_EOF != 0 {
            // The client sends nothing more, but it may still be reading.
            isLast = true
        } else {
            close()
        }
    }

    private func deadlinePassed() {
        switch phase {
        case .idle, .lingering: close()
        case .head: refuse(Self.timeout("head", core.options.headDeadline))
        case .body: refuse(Self.timeout("body", core.options.bodyDeadline))
        case .writing:
            guard let bufferevent else { return }
            let left = evbuffer_get_length(bufferevent_get_output(bufferevent))
            guard left < unwrittenByteCount else { return close() }
            unwrittenByteCount = left
            timer?.set(in: Clock.nanoseconds(core.options.idleTimeout))
        case .streaming: streamDeadlinePassed()
        case .webSocket: webSocketDeadlinePassed()
        case .admitting, .handling, .closed: break
        }
    }

    private static func timeout(_ part: String, _ deadline: Duration) -> HTTPRefusal {
        HTTPRefusal(
            status: 408, kind: "timeout",
            detail: "The request's \(part) did not arrive within \(deadline.components.seconds) s.")
    }

    // MARK: - Reading

    func readable() {
        while true {
            switch phase {
            case .idle, .head:
                guard readHead() else { return }
            case .body:
                guard readBody() else { return }
            case .webSocket:
                return webSocketReadable()
            case .lingering:
                return discard()
            case .admitting, .handling, .writing, .streaming, .closed:
                return
            }
        }
    }

    private func readHead() -> Bool {
        guard let bufferevent, let input = bufferevent_get_input(bufferevent) else { return false }
        let limit = core.options.maxHeadBytes
        let count = min(evbuffer_get_length(input), limit)
        guard count > 0, let start = evbuffer_pullup(input, count) else { return false }
        if case .idle = phase {
            phase = .head
            scanner = HeadScanner()
            if hasServed { timer?.set(in: Clock.nanoseconds(core.options.headDeadline)) }
        }
        do {
            let bytes = UnsafeRawBufferPointer(start: start, count: count)
            guard let end = try scanner.end(in: bytes, limit: limit) else { return false }
            let head = try HeadParser.parse(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
            evbuffer_drain(input, end)
            try begin(head)
            return true
        } catch {
            refuse(error)
            return false
        }
    }

    private func begin(_ head: RequestHead) throws(HTTPRefusal) {
        let reader = try BodyReader(head.framing, limit: core.options.maxBodyBytes)
        var claim = RequestClaim(parties: core.parties(address: address))
        let claimed = reader.claimedByteCount
        if let refusal = core.admit(
            RequestRoom.Usage(requests: 1), to: &claim, claimed: claimed ?? 0)
        {
            throw refusal
        }
        self.claim = claim
        self.head = head
        body = reader
        if reader.isDone { return handle() }
        let arrived = bufferevent.map { evbuffer_get_length(bufferevent_get_input($0)) } ?? 0
        // A body that has arrived costs no waiting, and the handler checks the request just as soon
        // as the gate would.
        guard let gate = core.gate, claimed.map({ $0 > arrived }) ?? true else {
            return beginBody()
        }
        phase = .admitting
        timer?.cancel()
        let request = HTTPRequest(head, address: address)
        task = Task.detached {
            let admission = await gate(request)
            await self.decided(admission)
        }
    }

    private func decided(_ admission: HTTPAdmission) {
        guard case .admitting = phase, head != nil else { return releaseIfClosed() }
        task = nil
        switch admission {
        case .refused(let response):
            isLast = true
            send(response, isHead: head?.method == "HEAD")
        case .admitted(let party):
            if let party, var claim {
                if let refusal = core.admit(party: party, to: &claim) { return refuse(refusal) }
                self.claim = claim
            }
            beginBody()
            readable()
        }
    }

    private func beginBody() {
        phase = .body
        timer?.set(in: Clock.nanoseconds(core.options.bodyDeadline))
        if head?.expectsContinue == true, let bufferevent,
            evbuffer_get_length(bufferevent_get_input(bufferevent)) == 0
        {
            let line = "HTTP/1.1 100 Continue\r\n\r\n"
            bufferevent_write(bufferevent, line, line.utf8.count)
        }
    }

    private func readBody() -> Bool {
        guard let bufferevent, let input = bufferevent_get_input(bufferevent) else { return false }
        do {
            while body?.isDone == false {
                let count = evbuffer_get_contiguous_space(input)
                guard count > 0, let start = evbuffer_pullup(input, Int(count)) else {
                    return false
                }
                let bytes = UnsafeRawBufferPointer(start: start, count: Int(count))
                let used = try body?.read(bytes) ?? 0
                evbuffer_drain(input, used)
                try countBody()
            }
        } catch {
            refuse(error)
            return false
        }
        handle()
        return true
    }

    /// Counts the bytes of a body when they arrive.
    private func countBody() throws(HTTPRefusal) {
        guard let body, var claim else { return }
        let more = body.body.count - claim.usage.bytes
        guard more > 0 else { return }
        if let refusal = core.admit(RequestRoom.Usage(bytes: more), to: &claim) { throw refusal }
        self.claim = claim
    }

    private func discard() {
        guard let bufferevent, let input = bufferevent_get_input(bufferevent) else { return }
        let count = evbuffer_get_length(input)
        lingeredByteCount += count
        evbuffer_drain(input, count)
        guard lingeredByteCount <= max(Self.lingerByteCount, 4 * core.options.maxBodyBytes),
            Clock.now() <= lingersUntil
        else { return close() }
        if count > 0 { timer?.set(in: Self.lingerNanoseconds) }
    }

    // MARK: - Answering

    private func handle() {
        guard let head, let body else { return }
        self.body = nil
        phase = .handling
        timer?.cancel()
        core.counters.requests += 1
        var request = HTTPRequest(head, address: address)
        request.body = body.body
        request.connection = self
        let handler = core.handler
        task = Task.detached {
            var response = await handler(request)
            response.pack()
            await self.finish(response)
        }
    }

    private func finish(_ response: HTTPResponse) {
        guard case .handling = phase, let head else { return releaseIfClosed() }
        task = nil
        reader = response.party.map { .named($0) } ?? .address(address)
        if response.hangsUp { return close() }
        if response.closesConnection || !head.keepsAlive || core.isStopping { isLast = true }
        if let talk = response.webSocket {
            guard !core.isStopping else { return refuse(Self.stopping) }
            return beginWebSocket(response, talk)
        }
        if let stream = response.stream, head.method != "HEAD", !core.isStopping {
            return beginStream(response, stream)
        }
        send(response, isHead: head.method == "HEAD")
        readable()
    }

    private static let stopping = HTTPRefusal(
        status: 503, kind: "busy", detail: "The server is stopping; try again in a moment.",
        retryAfterSeconds: 2)

    /// Answers without a handler, and closes the connection.
    func refuse(_ refusal: HTTPRefusal) {
        core.counters.refusedRequests += 1
        isLast = true
        var response = core.options.refusal(refusal)
        if let seconds = refusal.retryAfterSeconds {
            response.headers.append(HTTPField("Retry-After", String(seconds)))
        }
        send(response, isHead: false)
    }

    private func send(_ response: HTTPResponse, isHead: Bool) {
        guard let bufferevent, let out = evbuffer_new() else { return close() }
        defer { evbuffer_free(out) }
        let bytes = ResponseHead.bytes(
            of: response, dateLine: core.dateLine, keepsAlive: !isLast)
        evbuffer_add(out, bytes, bytes.count)
        if !isHead, ResponseHead.hasBody(response.status) {
            response.packedBody?.move(to: out)
            for piece in response.body {
                evbuffer_add(out, piece, piece.count)
            }
        }
        // Most answers fit into the socket's buffer. Written at once, they need one call to the
        // kernel in place of four.
        if ssl == nil, evbuffer_get_length(bufferevent_get_output(bufferevent)) == 0,
            evbuffer_write(out, bufferevent_getfd(bufferevent)) < 0,
            errno != EAGAIN, errno != EWOULDBLOCK, errno != EINTR
        {
            return close()
        }
        phase = .writing
        unwrittenByteCount = evbuffer_get_length(out)
        if unwrittenByteCount == 0 { return answered() }
        bufferevent_write_buffer(bufferevent, out)
        timer?.set(in: Clock.nanoseconds(core.options.idleTimeout))
        core.makeRoom(besides: self)
    }

    private func written() {
        if case .streaming = phase { return streamDrained() }
        if case .webSocket = phase { return webSocketDrained() }
        guard case .writing = phase, let bufferevent,
            evbuffer_get_length(bufferevent_get_output(bufferevent)) == 0
        else { return }
        answered()
        readable()
    }

    /// Counts bytes that begin to wait, and bytes that have left.
    private func outputChanged(added: Int, taken: Int) {
        core.waitingByteCount += added - taken
        backlog.note(taken: taken, hasMore: unsentByteCount > 0, Clock.now())
    }

    /// Discards the request's head, since a connection may stay without a request for hours.
    func forgetHead() {
        head = nil
        body = nil
    }

    /// Continues when the complete answer has left for the client.
    func answered() {
        releaseRequest()
        forgetHead()
        hasServed = true
        guard isLast else {
            phase = .idle
            timer?.set(in: Clock.nanoseconds(core.options.idleTimeout))
            return
        }
        linger()
    }

    /// Shuts the sending half down, and waits a moment for the client to do the same.
    func linger() {
        phase = .lingering
        if let ssl {
            SSL_shutdown(ssl)
            ERR_clear_error()
        }
        if let bufferevent { shutdown(bufferevent_getfd(bufferevent), Int32(SHUT_WR)) }
        lingersUntil = Clock.now() + Clock.nanoseconds(core.options.headDeadline)
        timer?.set(in: Self.lingerNanoseconds)
        discard()
    }
}
