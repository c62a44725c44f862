internal import CWslay

/// One end of a WebSocket as a value machine. It takes the bytes of the other end, and returns
/// events and the bytes to send. It has no socket, no clock and no thread.
///
/// It answers pings and the closing handshake automatically. A violation of the protocol ends the
/// session with the right code: 1002 for frames that are masked wrongly, reserved bits and opcodes,
/// and long or fragmented control frames; 1007 for text that is not UTF-8; 1009 for messages over a
/// limit. One thread at a time may use a session.
public final class WebSocketSession {
    /// The role of this end. A client masks its frames, and a server does not.
    public enum Role: Sendable {
        case server
        /// - Parameter mask: Returns four unpredictable bytes, for each frame.
        case client(mask: @Sendable () -> [UInt8])
    }

    /// A message or a control frame of the other end.
    public enum Event: Hashable, Sendable {
        /// A whole text message, of valid UTF-8.
        case text([UInt8])
        /// A whole binary message.
        case binary([UInt8])
        /// A ping or pong; a ping is already answered.
        case ping
        case pong
        /// The closing frame; it is already answered if it was the first.
        case close(code: WebSocketCode, reason: [UInt8])
    }

    /// The maximum number of frames of one message. More end the session with 1009. The limit
    /// bounds the cost of a message of tiny pieces.
    public static let maxFramesPerMessage = 4_096

    /// The number of bytes of an incomplete message that have arrived.
    public private(set) var partialByteCount = 0
    /// Whether a message has begun and is not complete.
    public private(set) var isInMessage = false

    /// wslay's state, with buffers of 8 KiB; nil while no frame or message is in progress, which
    /// for a quiet listener is nearly always.
    private var held: OpaquePointer?
    private var maxMessageByteCount: Int
    /// The number of bytes received, and how many of them belong to frames with a known head; equal
    /// between frames.
    private var takenByteCount: UInt64 = 0
    private var framedByteCount: UInt64 = 0
    private let role: Role
    private let mask: (@Sendable () -> [UInt8])?
    /// The bytes that are being received; empty otherwise.
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private var frames = JoinedControlFrames()
    /// Whether wslay has asked for bytes and there were none.
    private var isStarved = false
    private var output: [UInt8] = []
    private var events: [Event] = []
    private var frameCount = 0
    private var isInControlFrame = false
    private var isBroken = false
    private var replacedCode: WebSocketCode?
    /// The fault of a closing frame that wslay takes for valid.
    private var fault: WebSocketCode?

    /// - Parameter maxMessageByteCount: The maximum number of bytes of one message. A longer one
    ///   ends the session with 1009.
    public init(role: Role, maxMessageByteCount: Int) {
        self.role = role
        switch role {
        case .server: mask = nil
        case .client(let mask): self.mask = mask
        }
        self.maxMessageByteCount = maxMessageByteCount
    }

    deinit {
        wslay_event_context_free(held)
    }

    /// wslay's state. It is made if there is none.
    private var context: OpaquePointer? {
        if let held { return held }
        var callbacks = Self.callbacks
        let argument = Unmanaged.passUnretained(self).toOpaque()
        let code =
            mask == nil
            ? wslay_event_context_server_init(&held, &callbacks, argument)
            : wslay_event_context_client_init(&held, &callbacks, argument)
        precondition(code == 0 && held != nil, "wslay has no memory for a session")
        wslay_event_config_set_max_recv_msg_length(held, UInt64(maxMessageByteCount))
        return held
    }

    /// Frees wslay's state if it is as good as new: between frames and messages, with nothing to
    /// send and no closing handshake.
    private func freeIfIdle() {
        guard let held, takenByteCount == framedByteCount, !isInMessage, !isBroken,
            wslay_event_get_close_sent(held) == 0, wslay_event_get_close_received(held) == 0,
            wslay_event_get_read_enabled(held) != 0, wslay_event_want_write(held) == 0
        else { return }
        wslay_event_context_free(held)
        self.held = nil
    }

    /// Changes the maximum number of bytes of later messages.
    public func allowMessages(upTo byteCount: Int) {
        precondition(byteCount >= 0, "a limit that is a number of bytes")
        maxMessageByteCount = byteCount
        if let held { wslay_event_config_set_max_recv_msg_length(held, UInt64(byteCount)) }
    }

    // MARK: - What comes in

    /// Receives bytes of the other end, in pieces of any size.
    ///
    /// Bytes after a closing frame or a fault are ignored.
    /// - Returns: The events that are complete now, in order. Answers to them may be in
    ///   `takeOutput`.
    public func receive(_ bytes: UnsafeRawBufferPointer) -> [Event] {
        input = bytes
        isStarved = false
        takenByteCount += UInt64(bytes.count)
        defer { freeIfIdle() }
        // wslay buffers up to 4 KiB, and returns before it has used them up if a head is
        // incomplete. It has done all it can only when it asks for bytes and there are none.
        while !isStarved, !isBroken, wslay_event_get_read_enabled(context) != 0 {
            let code = wslay_event_recv(context)
            if let fault {
                end(fault)
            } else if code != 0 {
                // The callbacks do not fail, so the head of a frame is wrong.
                let isFault = code == Int32(WSLAY_ERR_CALLBACK_FAILURE.rawValue)
                end(isFault ? .protocolError : .internalError)
            } else {
                collect()
            }
        }
        input = UnsafeRawBufferPointer(start: nil, count: 0)
        defer { events.removeAll() }
        return events
    }

    /// Receives bytes of the other end, in pieces of any size; see the other `receive`.
    public func receive(_ bytes: [UInt8]) -> [Event] {
        bytes.withUnsafeBytes { receive($0) }
    }

    // MARK: - What goes out

    /// Queues a text message. Does nothing once this end has sent its closing frame.
    /// - Parameter text: The text, in UTF-8.
    /// - Returns: True if the message will be sent.
    @discardableResult
    public func send(text: [UInt8]) -> Bool {
        queue(WSLAY_TEXT_FRAME, text)
    }

    /// Queues a binary message; see `send(text:)`.
    @discardableResult
    public func send(binary: [UInt8]) -> Bool {
        queue(WSLAY_BINARY_FRAME, binary)
    }

    /// Queues a ping.
    public func ping() {
        queue(WSLAY_PING, [])
    }

    /// Begins the closing handshake. Does nothing if it has begun already.
    /// - Parameter reason: A sentence, which is cut off after 123 bytes.
    public func close(_ code: WebSocketCode, _ reason: String) {
        var bytes: [UInt8] = []
        for scalar in reason.unicodeScalars {
            let encoded = Array(String(scalar).utf8)
            guard bytes.count + encoded.count <= 123 else { break }
            bytes += encoded
        }
        // wslay refuses this if a closing frame is already queued.
        _ = wslay_event_queue_close(context, code.rawValue, bytes, bytes.count)
        collect()
    }

    /// Returns the bytes to send now, in order, and removes them.
    public func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    /// Ends the session for a fault that wslay accepts, or that it would close without a code. The
    /// queued bytes are dropped, and a new session makes the frame with the code.
    private func end(_ code: WebSocketCode) {
        guard sentCode == nil else { return }
        isBroken = true
        replacedCode = code
        let last = WebSocketSession(role: role, maxMessageByteCount: 0)
        last.close(code, "")
        output += last.takeOutput()
    }

    /// The code of the closing frame that this end has sent; nil if it has sent none.
    public var sentCode: WebSocketCode? {
        if let replacedCode { return replacedCode }
        guard let held, wslay_event_get_close_sent(held) != 0 else { return nil }
        return WebSocketCode(rawValue: wslay_event_get_status_code_sent(held))
    }

    /// Whether no more events follow, because the other end has closed the session or broken the
    /// protocol.
    public var isDeaf: Bool {
        isBroken || held.map { wslay_event_get_read_enabled($0) == 0 } ?? false
    }

    /// Whether the session is complete. The bytes that `takeOutput` then returns are the last, and
    /// the connection can be closed after them.
    public var isFinished: Bool {
        isBroken
            || held.map { wslay_event_want_read($0) == 0 && wslay_event_want_write($0) == 0 }
                ?? false
    }

    @discardableResult
    private func queue(_ opcode: wslay_opcode, _ bytes: [UInt8]) -> Bool {
        guard !isBroken, held.map({ wslay_event_get_close_sent($0) == 0 }) ?? true else {
            return false
        }
        defer { freeIfIdle() }
        let code = bytes.withUnsafeBufferPointer { bytes in
            var message = wslay_event_msg(
                opcode: UInt8(opcode.rawValue), msg: bytes.baseAddress, msg_length: bytes.count)
            return wslay_event_queue_msg(context, &message)
        }
        collect()
        return code == 0
    }

    /// Moves the bytes that wslay has queued into `output`.
    private func collect() {
        if !isBroken, wslay_event_send(context) != 0 { isBroken = true }
    }
}

// MARK: - wslay's calls

extension WebSocketSession {
    /// Returns the session of a context. The session lives as long as the context.
    private static func of(_ argument: UnsafeMutableRawPointer?) -> WebSocketSession? {
        argument.map { Unmanaged<WebSocketSession>.fromOpaque($0).takeUnretainedValue() }
    }

    private static var callbacks: wslay_event_callbacks {
        wslay_event_callbacks(
            recv_callback: { context, buffer, count, _, argument in
                WebSocketSession.of(argument)?.fill(buffer, count, context) ?? -1
            },
            send_callback: { _, bytes, count, _, argument in
                WebSocketSession.of(argument)?.output.append(
                    contentsOf: UnsafeBufferPointer(start: bytes, count: count))
                return count
            },
            genmask_callback: { _, buffer, count, argument in
                guard let bytes = WebSocketSession.of(argument)?.mask?(), bytes.count >= count
                else {
                    return -1
                }
                for position in 0..<count { buffer?[position] = bytes[position] }
                return 0
            },
            on_frame_recv_start_callback: { context, frame, argument in
                guard let frame else { return }
                WebSocketSession.of(argument)?.frameBegins(frame.pointee, context)
            },
            on_frame_recv_chunk_callback: { _, chunk, argument in
                guard let session = WebSocketSession.of(argument), let chunk else { return }
                if !session.isInControlFrame {
                    session.partialByteCount += chunk.pointee.data_length
                }
            },
            on_frame_recv_end_callback: nil,
            on_msg_recv_callback: { _, message, argument in
                guard let message else { return }
                WebSocketSession.of(argument)?.messageCame(message.pointee)
            })
    }

    private func fill(
        _ buffer: UnsafeMutablePointer<UInt8>?, _ count: Int, _ context: OpaquePointer?
    ) -> Int {
        let room = UnsafeMutableRawBufferPointer(start: buffer, count: count)
        let part = frames.move(&input, to: room)
        guard part > 0 else {
            isStarved = true
            wslay_event_set_error(context, Int32(WSLAY_ERR_WOULDBLOCK.rawValue))
            return -1
        }
        return part
    }

    private func frameBegins(
        _ frame: wslay_event_on_frame_recv_start_arg, _ context: OpaquePointer?
    ) {
        // A head of two bytes, an extended length, and the mask.
        let length = frame.payload_length
        framedByteCount += 2 + length + (length < 126 ? 0 : length < 65_536 ? 2 : 8)
        if mask == nil { framedByteCount += 4 }
        isInControlFrame = frame.opcode >= 8
        guard !isInControlFrame else { return }
        isInMessage = true
        frameCount += 1
        if frameCount > Self.maxFramesPerMessage {
            let reason = [UInt8]("too many frames".utf8)
            _ = wslay_event_queue_close(
                context, WebSocketCode.tooBig.rawValue, reason, reason.count)
            wslay_event_shutdown_read(context)
        }
    }

    private func messageCame(_ message: wslay_event_on_msg_recv_arg) {
        func payload(from start: Int = 0) -> [UInt8] {
            let bytes = UnsafeBufferPointer(start: message.msg, count: message.msg_length)
            return start < bytes.count ? Array(bytes[start...]) : []
        }
        switch UInt32(message.opcode) {
        case WSLAY_PING.rawValue: events.append(.ping)
        case WSLAY_PONG.rawValue: events.append(.pong)
        case WSLAY_CONNECTION_CLOSE.rawValue:
            let reason = payload(from: 2)
            if message.msg_length == 1 { fault = .protocolError }
            if String(validating: reason, as: UTF8.self) == nil { fault = .invalidText }
            // A faulty frame makes no event, whether wslay or this type has found the fault.
            guard fault == nil else { return }
            let code = message.status_code
            events.append(
                .close(code: code == 0 ? .none : WebSocketCode(rawValue: code), reason: reason))
        case let opcode:
            frameCount = 0
            partialByteCount = 0
            isInMessage = false
            events.append(
                opcode == WSLAY_TEXT_FRAME.rawValue ? .text(payload()) : .binary(payload()))
        }
    }
}
