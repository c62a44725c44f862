/// An import or export that could not be done, with a sentence that says what to do.
public struct TransferError: Error, Hashable, Sendable, CustomStringConvertible {
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
