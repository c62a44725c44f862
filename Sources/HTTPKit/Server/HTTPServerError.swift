/// The reason why a server could not start or renew its TLS files.
public struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence that says what was tried, what happened, and what to do.
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
