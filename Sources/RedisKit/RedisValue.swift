internal import CHiredis

/// An answer of Redis.
public enum RedisValue: Hashable, Sendable {
    case null
    case integer(Int64)
    /// A status, such as `OK`.
    case status(String)
    case bytes([UInt8])
    case array([RedisValue])
    /// The error of a refused command. The other commands of its pipeline were run all the same.
    case error(RedisError)

    /// Copies a reply of the library.
    init(_ reply: UnsafePointer<redisReply>) {
        let reply = reply.pointee
        func bytes() -> [UInt8] {
            [UInt8](UnsafeRawBufferPointer(start: reply.str, count: reply.len))
        }
        switch reply.type {
        case REDIS_REPLY_INTEGER: self = .integer(reply.integer)
        case REDIS_REPLY_STATUS: self = .status(String(decoding: bytes(), as: UTF8.self))
        case REDIS_REPLY_STRING: self = .bytes(bytes())
        case REDIS_REPLY_ERROR:
            self = .error(RedisError(reply: String(decoding: bytes(), as: UTF8.self)))
        case REDIS_REPLY_ARRAY:
            self = .array(
                (0..<reply.elements).map { index in
                    reply.element[index].map { RedisValue($0) } ?? .null
                })
        default: self = .null
        }
    }

    /// The bytes as text; nil for other kinds, and for bytes that are not UTF-8.
    public var text: String? {
        switch self {
        case .bytes(let bytes): String(validating: bytes, as: UTF8.self)
        case .status(let text): text
        default: nil
        }
    }
}

/// A command: its name and its arguments, of any bytes.
public struct RedisCommand: Hashable, Sendable {
    let words: [[UInt8]]

    public init(_ words: [[UInt8]]) {
        precondition(!words.isEmpty, "a command has a name")
        self.words = words
    }

    /// - Parameter words: The name and the arguments, as texts.
    public init(_ words: String...) {
        self.init(words.map { [UInt8]($0.utf8) })
    }
}

/// A message that PUBLISH has sent.
public struct RedisMessage: Hashable, Sendable {
    public let channel: String
    public let payload: [UInt8]

    public init(channel: String, payload: [UInt8]) {
        self.channel = channel
        self.payload = payload
    }
}
