internal import MartletModel
internal import MartletProtocol

/// A message that a listener sends over WebSocket.
struct SocketMessage {
    /// The token, from `{"token": "…"}`.
    var token: String?
    /// The request, from `{"sync": …}`: JSON as `POST /sync` takes it.
    var sync: [UInt8]?
    /// The `"id"`, as the listener wrote it. The answer repeats it.
    var id: [UInt8]?

    /// Reads a message. Unknown members are ignored.
    ///
    /// - Throws: `Problem` if it is not an object, or a member has the wrong type.
    init(_ bytes: [UInt8]) throws(Problem) {
        var json = JSONReader(bytes)
        do {
            try json.readObject { (json, name) throws(WireFault) in
                switch name {
                case "token": token = try json.readText()
                case "sync": sync = try Self.raw(&json, bytes)
                case "id":
                    guard [.text, .number].contains(json.nextKind()) else {
                        throw WireFault("“id” is a text or a number.", at: json.position)
                    }
                    let text = try Self.raw(&json, bytes)
                    guard text.count <= Limits.nameBytes else {
                        throw WireFault("“id” is too long.", at: json.position)
                    }
                    id = text
                default: try json.skipValue()
                }
            }
            try json.finish()
        } catch {
            throw Problem.malformed(error.description)
        }
    }

    private static func raw(
        _ json: inout JSONReader, _ bytes: [UInt8]
    ) throws(WireFault) -> [UInt8] {
        _ = json.nextKind()
        let start = json.position
        try json.skipValue()
        return Array(bytes[start..<json.position])
    }

    /// Returns the reply: `{"id": …, "answer": …}`.
    ///
    /// - Parameter body: JSON.
    static func reply(_ id: [UInt8]?, _ member: String, _ body: [[UInt8]]) -> [UInt8] {
        var text: [UInt8] = [UInt8(ascii: "{")]
        if let id { text += Array("\"id\":".utf8) + id + [UInt8(ascii: ",")] }
        text += Array("\"\(member)\":".utf8)
        for piece in body { text += piece }
        text.append(UInt8(ascii: "}"))
        return text
    }
}
