internal import MartletModel
internal import MartletProtocol

/// A message of a listener over WebSocket.
struct SocketMessage {
    /// `{"token": "…"}`: who is asking.
    var token: String?
    /// `{"sync": …}`: the JSON of a request as `POST /sync` takes it.
    var sync: [UInt8]?
    /// `"id"`, as it was written: the answer carries it.
    var id: [UInt8]?

    /// - Throws: `Problem` for what is not an object of these members. Others are passed over.
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

    /// What goes back: `{"id": …, "answer": …}`.
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
