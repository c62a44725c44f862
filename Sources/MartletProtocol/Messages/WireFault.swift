/// A body that is not what the wire asks for; the whole request is refused and nothing changed.
public struct WireFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong and what was expected, without repeating any value.
    public let message: String
    /// The byte position at which it was found.
    public let offset: Int

    public init(_ message: String, at offset: Int) {
        self.message = message
        self.offset = offset
    }

    public var description: String { "\(message) (at byte \(offset))" }
}
