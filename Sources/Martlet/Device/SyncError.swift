/// Why an exchange, or keeping in step at all, does not work, and what to do about it.
public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure; new kinds may be added.
    public struct Kind: Hashable, Sendable {
        public let name: String

        public init(name: String) {
            self.name = name
        }

        /// The server could not be reached, or the answer was lost.
        public static let offline = Kind(name: "offline")
        /// The token is missing, wrong or revoked.
        public static let unauthorized = Kind(name: "unauthorized")
        /// The server asks to wait.
        public static let busy = Kind(name: "busy")
        /// The server refused the request itself.
        public static let rejected = Kind(name: "rejected")
        /// The server speaks another version of the wire.
        public static let versionUnsupported = Kind(name: "versionUnsupported")
        /// The file belongs to another data set, or the server's was made anew or restored.
        public static let wrongDataSet = Kind(name: "wrongDataSet")
        /// The device's own file failed.
        public static let storage = Kind(name: "storage")
        /// The server sent what no server should.
        public static let violation = Kind(name: "violation")
    }

    /// What can be done about it.
    public enum Remedy: Hashable, Sendable {
        /// Nothing: it is tried again by itself.
        case wait
        /// Give a valid token.
        case signIn
        /// Install a newer version.
        case upgrade
        /// A person must decide.
        case decide
        /// Free space, or check the disk; then sync again.
        case checkStorage
        /// Tell the developers, with the message.
        case report
    }

    public let kind: Kind
    /// What was expected, what was found, and the next step. Holds no values.
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    public var remedy: Remedy {
        switch kind {
        case .offline, .busy: .wait
        case .unauthorized: .signIn
        case .versionUnsupported: .upgrade
        case .wrongDataSet: .decide
        case .storage: .checkStorage
        default: .report
        }
    }

    public var description: String { message }
}
