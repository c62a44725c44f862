/// A schema that cannot be synchronised, or a change to one that Martlet does not make.
public struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence: which table, what is wrong, what to do.
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
