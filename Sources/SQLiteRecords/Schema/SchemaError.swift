/// The error of a schema that cannot be synchronised, or of a change to a schema that Martlet does
/// not make.
public struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence that names the table, the fault, and what to do.
    public let message: String

    /// Creates an error with a sentence.
    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
