/// Why records could not be moved in or out, in a sentence that says what to do.
public struct TransferError: Error, Hashable, Sendable, CustomStringConvertible {
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
