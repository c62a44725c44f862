/// Why the server cannot start or go on.
public struct ServerFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence: what was expected, what was found, what to do.
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
