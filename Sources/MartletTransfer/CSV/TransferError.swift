/// The error of an import or export, with a sentence that contains the remedy.
public struct TransferError: Error, Hashable, Sendable, CustomStringConvertible {
    public let message: String

    public init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
