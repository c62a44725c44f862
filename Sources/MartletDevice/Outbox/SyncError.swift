/// The reason why an exchange, or the synchronisation as a whole, does not work, and what to do.
///
/// ```swift
/// switch error.remedy {
/// case .signIn: showSignIn(error.message)
/// case .wait: break
/// default: show(error.message)
/// }
/// ```
public struct SyncError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of a failure. New kinds may be added.
    public struct Kind: Hashable, Sendable {
        /// The name of the kind, for logs and comparison.
        public let name: String

        /// Creates a kind with a name.
        package init(name: String) {
            self.name = name
        }

        /// The server could not be reached, or the answer was lost.
        public static let offline = Kind(name: "offline")
        /// The program that answers at the server's address cannot prove by a certificate that it
        /// is the server.
        public static let untrusted = Kind(name: "untrusted")
        /// The server's address is not a valid one.
        public static let address = Kind(name: "address")
        /// The token is missing, wrong or revoked.
        public static let unauthorized = Kind(name: "unauthorized")
        /// The device is bound to another user than the token's.
        public static let wrongUser = Kind(name: "wrongUser")
        /// The token's user has as many devices as a user may have, and this one is new.
        public static let tooManyDevices = Kind(name: "tooManyDevices")
        /// The server asks the device to wait.
        public static let busy = Kind(name: "busy")
        /// The server refused the request itself.
        public static let rejected = Kind(name: "rejected")
        /// The server speaks another version of the wire.
        public static let versionUnsupported = Kind(name: "versionUnsupported")
        /// The file belongs to another data set, or the server's data set was recreated or
        /// restored.
        public static let wrongDataSet = Kind(name: "wrongDataSet")
        /// The disk of the device's own file is full, it failed, or it does not let the file be opened.
        public static let storage = Kind(name: "storage")
        /// The device's own file cannot be used as it is: it is damaged, or an index or a table in it refuses
        /// what it should hold. The message says what to do.
        public static let file = Kind(name: "file")
        /// The waiting task was cancelled, or the client was stopped. Queued sets stay queued.
        public static let cancelled = Kind(name: "cancelled")
        /// The server sent an answer that no server should send.
        public static let violation = Kind(name: "violation")
    }

    /// What can be done about it.
    public enum Remedy: Hashable, Sendable {
        /// Nothing: the client tries again automatically, or when it is started again.
        case wait
        /// Give a valid token, or a token of another user. The message says which.
        case signIn
        /// Install a newer version.
        case upgrade
        /// A person must decide.
        case decide
        /// Free space, or check the disk; then sync again.
        case checkStorage
        /// Check the server's address and its certificate; the server's operator can help.
        case checkServer
        /// Tell the developers, with the message.
        case report
    }

    /// The kind of the failure.
    public let kind: Kind
    /// What was expected, what was found, and the next step. The message contains no values.
    public let message: String

    /// Creates an error.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// What the app, its user or its operator can do.
    public var remedy: Remedy {
        switch kind {
        case .offline, .busy, .cancelled: .wait
        case .untrusted, .address: .checkServer
        case .unauthorized, .wrongUser, .tooManyDevices: .signIn
        case .versionUnsupported: .upgrade
        case .wrongDataSet: .decide
        case .storage: .checkStorage
        default: .report
        }
    }

    public var description: String { message }
}
