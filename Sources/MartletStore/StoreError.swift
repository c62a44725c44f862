/// A refusal by the local store: nothing was changed.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of refusal; new kinds may be added.
    public struct Kind: Hashable, Sendable {
        let name: String

        /// The schema cannot be used: the message says which table and why.
        public static let schema = Kind(name: "schema")
        /// The file cannot be used as it is.
        public static let file = Kind(name: "file")
        /// No such type, attribute or record.
        public static let unknown = Kind(name: "unknown")
        /// A value the attribute cannot hold, or a constraint it violates.
        public static let value = Kind(name: "value")
        /// One transaction's changes are too many to send as one change set.
        public static let tooLarge = Kind(name: "tooLarge")
        /// What is stored contradicts itself; report it, with the message.
        public static let inconsistent = Kind(name: "inconsistent")
    }

    public let kind: Kind
    /// What was expected, what was found, and what to do. Holds no values.
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    public var description: String { message }
}
