/// The error of a schema that cannot be synchronised, or of a change to a schema that Martlet does
/// not make.
package struct SchemaError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence that names the table, the fault, and what to do.
    package let message: String

    /// Creates an error with a sentence.
    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }
}
