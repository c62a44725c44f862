/// The reason why the server cannot start or continue.
public struct ServerFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence that says what was expected, what was found, and what to do.
    public let message: String

    /// Makes a failure with its sentence.
    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
