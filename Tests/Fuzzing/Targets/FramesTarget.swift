import WebSocketKit

/// One end of a WebSocket. The first two bytes say which end, how long messages may be and how what
/// follows is cut.
enum FramesTarget: FuzzTarget {
    static let name = "frames"

    static func check(_ input: [UInt8]) throws {
        guard input.count >= 2 else { return }
        let role: WebSocketSession.Role =
            input[0] & 1 == 0 ? .server : .client(mask: { [1, 2, 3, 4] })
        let limit = 1 << Int(input[0] >> 4)
        let frames = input[2...]
        let whole = try listen([Array(frames)], role, limit)
        let cut = try listen(pieces(of: frames, seed: input[1]), role, limit)
        try hold(
            isSame(whole, cut),
            "what is heard does not depend on how it is cut: \(whole), then \(cut)")
        try checkOther(whole, role)
        try checkSpeech(Array(frames), role)
    }

    /// What an end has made of the bytes.
    private struct Heard: Hashable {
        var events: [WebSocketSession.Event] = []
        var output: [UInt8] = []
        var code: WebSocketCode?
        var isDeaf = false
    }

    /// What was to be answered before a fault is left where both come at once, of two faults in one frame
    /// either may be named, and one in a frame that is not whole yet may be seen sooner or later. A ping that
    /// comes together with the end needs no answer.
    private static func isSame(_ one: Heard, _ other: Heard) -> Bool {
        func isFaulty(_ heard: Heard) -> Bool {
            heard.code.map { faults.contains($0) && heard.isDeaf } ?? false
        }
        guard isFaulty(one) || isFaulty(other) else {
            let isClosing = one.code != nil && one.code == other.code
            return one.events == other.events && one.isDeaf == other.isDeaf
                && one.code == other.code && (isClosing || one.output == other.output)
        }
        let isWaiting = !one.isDeaf || !other.isDeaf
        return one.events == other.events && (isWaiting || (isFaulty(one) && isFaulty(other)))
    }

    private static let faults: Set<WebSocketCode> = [.protocolError, .invalidText, .tooBig]

    private static func listen(
        _ pieces: [[UInt8]], _ role: WebSocketSession.Role, _ limit: Int
    ) throws -> Heard {
        let session = WebSocketSession(role: role, maxMessageByteCount: limit)
        var heard = Heard()
        for piece in pieces {
            heard.events += session.receive(piece)
            heard.output += session.takeOutput()
            try hold(
                session.partialByteCount <= limit + 4_096,
                "no more of a message is kept than it may have")
        }
        heard.code = session.sentCode
        heard.isDeaf = session.isDeaf
        for event in heard.events {
            switch event {
            case .text(let bytes):
                try hold(bytes.count <= limit, "no message over the limit")
                try hold(
                    String(validating: bytes, as: UTF8.self) != nil, "text is sound UTF-8")
            case .binary(let bytes): try hold(bytes.count <= limit, "no message over the limit")
            default: break
            }
        }
        return heard
    }

    /// What this end answers keeps to the protocol: the other end finds nothing wrong with it.
    private static func checkOther(_ heard: Heard, _ role: WebSocketSession.Role) throws {
        let other = WebSocketSession(role: opposite(role), maxMessageByteCount: 1 << 16)
        _ = other.receive(heard.output)
        // A closing frame is answered with its code.
        try hold(
            other.sentCode == heard.code || other.sentCode.map { !faults.contains($0) } ?? true,
            "what this end answers keeps to the protocol")
    }

    /// What one end says the other hears.
    private static func checkSpeech(_ bytes: [UInt8], _ role: WebSocketSession.Role) throws {
        let speaker = WebSocketSession(role: role, maxMessageByteCount: 0)
        let listener = WebSocketSession(role: opposite(role), maxMessageByteCount: bytes.count)
        speaker.send(binary: bytes)
        try hold(
            listener.receive(speaker.takeOutput()) == [.binary(bytes)],
            "what one end says the other hears")
    }

    private static func opposite(_ role: WebSocketSession.Role) -> WebSocketSession.Role {
        switch role {
        case .server: .client(mask: { [9, 8, 7, 6] })
        case .client: .server
        }
    }
}
