/// A failure of a Redis server or of the connection to it, with a remedy.
public struct RedisError: Error, Hashable, Sendable {
    /// The kinds of failures, by their remedy.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The URL cannot be read.
        case malformedAddress
        /// No server answers at the address.
        case unreachable
        /// The password is wrong, or the user lacks the permission.
        case unauthorized
        /// The server is loading its data, or busy with a script.
        case restarting
        /// The server is a replica.
        case readOnly
        /// The server has no memory left.
        case full
        /// The connection was lost; the commands under way may have been carried out or not.
        case lost
        /// The answer did not come in time; the connection was given up, as after `lost`.
        case timedOut
        /// The commands were given up because their task was cancelled, as after `lost`.
        case cancelled
        /// The answer is not in Redis's protocol, or is longer than allowed; the connection was
        /// given up.
        case garbled
        /// The server refused the command.
        case refused
        /// The program used the connection wrongly.
        case misuse
    }

    public let kind: Kind
    /// The server's or the library's words.
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// Creates the error of an error reply, whose first word is a code.
    init(reply: String) {
        let kind: Kind =
            switch reply.prefix(while: { $0 != " " }) {
            case "NOAUTH", "WRONGPASS", "NOPERM": .unauthorized
            case "LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN": .restarting
            case "READONLY": .readOnly
            case "OOM", "MISCONF": .full
            default: .refused
            }
        self.init(kind, reply)
    }

    /// Whether the connection is lost.
    public var endsConnection: Bool {
        switch kind {
        case .malformedAddress, .unreachable, .lost, .timedOut, .cancelled, .garbled: true
        default: false
        }
    }

    /// Whether trying again later may succeed. Requests to a cache can always be repeated.
    public var mayPass: Bool {
        switch kind {
        case .unreachable, .restarting, .full, .lost, .timedOut, .garbled: true
        default: false
        }
    }

    /// A sentence with the remedy.
    public var remedy: String {
        switch kind {
        case .malformedAddress: "Write the address as redis://USER:PASSWORD@HOST:PORT/NUMBER."
        case .unreachable: "Check host and port, and that the server runs and listens there."
        case .unauthorized: "Check user and password in the address, and the user's rights (ACL)."
        case .restarting: "Try again in a moment."
        case .readOnly: "Connect to the primary server."
        case .full: "Raise maxmemory, or let the server evict (maxmemory-policy allkeys-lru)."
        case .lost, .timedOut: "Try again; do without Redis meanwhile."
        case .cancelled: "Nothing; somebody no longer wanted it."
        case .garbled: "Check that a Redis server listens at the address."
        case .refused: "Check the server's version; Redis 7 is expected."
        case .misuse: "Report this; the program used the connection wrongly."
        }
    }
}

extension RedisError: CustomStringConvertible {
    public var description: String { "Redis error (\(kind.rawValue)): \(message)" }
}
