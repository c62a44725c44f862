/// The error of a body that violates the wire's format. The whole request is refused, and nothing
/// is changed.
package struct WireFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The fault and the expected form, without any value.
    package let message: String
    /// The byte position of the fault.
    package let offset: Int
    /// Whether the bytes are sound JSON with wrong content. Inside a change set, such a fault
    /// concerns this set alone.
    let concernsShape: Bool

    /// Creates a fault.
    package init(_ message: String, at offset: Int) {
        self.init(message, at: offset, shape: false)
    }

    init(_ message: String, at offset: Int, shape: Bool) {
        self.message = message
        self.offset = offset
        concernsShape = shape
    }

    package var description: String { "\(message) (at byte \(offset))" }
}
