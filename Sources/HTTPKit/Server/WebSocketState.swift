internal import WebSocketKit

/// What a connection keeps while it is a WebSocket.
@EventLoop
final class WebSocketState {
    /// Whether a client still lives, as far as one can tell.
    enum Life: Hashable {
        case fine
        /// It is to be pinged.
        case ask
        case gone
    }

    let session: WebSocketSession
    /// Messages nobody has taken yet, and the bytes of the one that was taken last.
    private(set) var inbox: [WebSocket.Message] = []
    private var takenByteCount = 0
    /// Who waits for a message, and who waits until there is room to send.
    var receiver: CheckedContinuation<WebSocket.Message?, Never>?
    var senders: [CheckedContinuation<Void, Never>] = []
    /// When the connection is cut if the closing handshake is not over; nil before it begins.
    private(set) var closing: UInt64?
    /// The share of the server's room that the messages hold.
    var claim: RequestClaim

    private let pingInterval: UInt64
    private let pongTimeout: UInt64
    private let stallTimeout: UInt64
    private var lastHeard: UInt64
    /// When the client was asked for a sign of life.
    private var asked: UInt64?
    /// Since when the client has taken nothing, and how much it had taken then.
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

    /// Whether more should be taken in.
    var wantsInput: Bool { !session.isDeaf && (inbox.isEmpty || closing != nil) }

    /// Bytes that have come in and are not dealt with.
    var heldByteCount: Int {
        session.partialByteCount + takenByteCount + inbox.reduce(0) { $0 + $1.byteCount }
    }

    func add(_ message: WebSocket.Message) {
        if closing == nil { inbox.append(message) }
    }

    /// The oldest message, taken by the one who deals with it.
    func next() -> WebSocket.Message? {
        guard !inbox.isEmpty else { return nil }
        let message = inbox.removeFirst()
        takenByteCount = message.byteCount
        return message
    }

    /// The message taken last was dealt with.
    func dealtWith() {
        takenByteCount = 0
    }

    // MARK: - The end

    func beginClosing(by moment: UInt64) {
        closing = moment
        inbox = []
        release()
    }

    /// Lets go all who wait.
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

    /// Bytes have come.
    /// - Returns: Whether they had been asked for, so that the next deadline is another.
    @discardableResult
    func heard(_ now: UInt64) -> Bool {
        lastHeard = now
        defer { asked = nil }
        return asked != nil
    }

    /// Gives a message that has begun its time, and takes it away once it is whole.
    func watchMessage(_ now: UInt64, deadline: Duration) {
        guard session.isInMessage else { return messageBy = nil }
        if messageBy == nil { messageBy = now + Clock.nanoseconds(deadline) }
    }

    func isMessageLate(_ now: UInt64) -> Bool {
        messageBy.map { $0 <= now } ?? false
    }

    /// Notes how much the client has taken so far; nothing is left to take where `isAll`.
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

    /// A client that is not listened to, or has things to read before the ping, is given time.
    func life(_ now: UInt64) -> Life {
        if !wantsInput || stall != nil { heard(now) }
        if let asked { return asked + pongTimeout <= now ? .gone : .fine }
        guard lastHeard + pingInterval <= now else { return .fine }
        asked = now
        return .ask
    }

    /// When to look again.
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
