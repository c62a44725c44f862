internal import WebSocketKit

/// The state of a connection while it is a WebSocket.
@EventLoop
final class WebSocketState {
    /// The server's knowledge of whether a client is still there.
    enum Life: Hashable {
        case fine
        /// The server should send a ping.
        case ask
        case gone
    }

    let session: WebSocketSession
    /// The messages that no caller has taken yet, and the bytes of the last one taken.
    private(set) var inbox: [WebSocket.Message] = []
    private var takenByteCount = 0
    /// The caller that waits for a message, and the callers that wait for room to send.
    var receiver: CheckedContinuation<WebSocket.Message?, Never>?
    var senders: [CheckedContinuation<Void, Never>] = []
    /// The moment when the connection is cut if the closing handshake is not over; nil before it
    /// begins.
    private(set) var closing: UInt64?
    /// The share of the server's room that the messages hold.
    var claim: RequestClaim

    private let pingInterval: UInt64
    private let pongTimeout: UInt64
    private let stallTimeout: UInt64
    private var lastHeard: UInt64
    /// The moment of the last ping that has no answer yet.
    private var asked: UInt64?
    /// The moment since which the client has taken nothing, and the bytes that it had taken then.
    private var stall: (since: UInt64, taken: Int)?
    private var messageBy: UInt64?

    init(
        session: WebSocketSession, now: UInt64, options: WebSocketOptions, claim: RequestClaim
    ) {
        self.session = session
        self.claim = claim
        lastHeard = now
        pingInterval = Clock.nanoseconds(options.pingInterval)
        pongTimeout = Clock.nanoseconds(options.pongTimeout)
        stallTimeout = Clock.nanoseconds(options.stallTimeout)
    }

    // MARK: - Messages

    /// Whether the connection should read more.
    var wantsInput: Bool { !session.isDeaf && (inbox.isEmpty || closing != nil) }

    /// The bytes that have arrived and are not processed yet.
    var heldByteCount: Int {
        session.partialByteCount + takenByteCount + inbox.reduce(0) { $0 + $1.byteCount }
    }

    func add(_ message: WebSocket.Message) {
        if closing == nil { inbox.append(message) }
    }

    /// Returns the oldest message, which the caller then processes.
    func next() -> WebSocket.Message? {
        guard !inbox.isEmpty else { return nil }
        let message = inbox.removeFirst()
        takenByteCount = message.byteCount
        return message
    }

    /// Notes that the last message taken has been processed.
    func dealtWith() {
        takenByteCount = 0
    }

    // MARK: - The end

    func beginClosing(by moment: UInt64) {
        closing = moment
        inbox = []
        release()
    }

    /// Resumes all waiting callers.
    func release() {
        receiver?.resume(returning: nil)
        receiver = nil
        releaseSenders()
    }

    func releaseSenders() {
        let waiting = senders
        senders = []
        waiting.forEach { $0.resume() }
    }

    // MARK: - Time

    /// Notes the arrival of bytes.
    /// - Returns: Whether a ping was waiting for them, which changes the next deadline.
    @discardableResult
    func heard(_ now: UInt64) -> Bool {
        lastHeard = now
        defer { asked = nil }
        return asked != nil
    }

    /// Sets the deadline of a message that has begun, and removes it when the message is complete.
    func watchMessage(_ now: UInt64, deadline: Duration) {
        guard session.isInMessage else { return messageBy = nil }
        if messageBy == nil { messageBy = now + Clock.nanoseconds(deadline) }
    }

    func isMessageLate(_ now: UInt64) -> Bool {
        messageBy.map { $0 <= now } ?? false
    }

    /// Notes how many bytes the client has taken so far. If `isAll`, no bytes wait for it.
    func noteTaken(_ taken: Int, isAll: Bool, _ now: UInt64) {
        if isAll {
            stall = nil
        } else if stall.map({ $0.taken < taken }) ?? true {
            stall = (now, taken)
        }
    }

    func isStalled(_ now: UInt64) -> Bool {
        stall.map { $0.since + stallTimeout <= now } ?? false
    }

    /// Returns whether the client needs a ping or is gone. A client gets more time if the server
    /// does not read from it, or if bytes before the ping wait for it.
    func life(_ now: UInt64) -> Life {
        if !wantsInput || stall != nil { heard(now) }
        if let asked { return asked + pongTimeout <= now ? .gone : .fine }
        guard lastHeard + pingInterval <= now else { return .fine }
        asked = now
        return .ask
    }

    /// The moment of the next deadline.
    var nextDeadline: UInt64 {
        if let closing { return closing }
        var next = asked.map { $0 + pongTimeout } ?? (lastHeard + pingInterval)
        if let stall { next = min(next, stall.since + stallTimeout) }
        if let messageBy { next = min(next, messageBy) }
        return next
    }
}

extension WebSocket.Message {
    var byteCount: Int {
        switch self {
        case .text(let bytes), .binary(let bytes): bytes.count
        }
    }
}
