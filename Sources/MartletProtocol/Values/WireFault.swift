/// A body that is not what the wire asks for; the whole request is refused and nothing changed.
public struct WireFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong and what was expected, without repeating any value.
    public let message: String
    /// The byte position at which it was found.
    public let offset: Int
    /// Whether the bytes are sound JSON that says the wrong thing. Inside a change set such a
    /// fault concerns this set alone.
    let concernsShape: Bool

    public init(_ message: String, at offset: Int) {
        self.init(message, at: offset, shape: false)
    }

    init(_ message: String, at offset: Int, shape: Bool) {
        self.message = message
        self.offset = offset
        concernsShape = shape
    }

    public var description: String { "\(message) (at byte \(offset))" }
}
