/// Something the organisation's rules do not allow, in a sentence for the person at the screen.
public struct OrganisationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was expected, what was found, what to do.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
