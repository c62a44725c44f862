/// Why a server could not start.
public struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence: what was tried, what came of it, what to do.
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
