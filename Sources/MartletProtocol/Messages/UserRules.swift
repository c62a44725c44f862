/// The rules that concern a device's user, so that the device can say at once what the server would
/// refuse.
package struct UserRules: Hashable, Sendable {
    /// A name for all of this, by which a device says that it has it.
    package var fingerprint: String
    /// Statements of a rules file; empty if everything is allowed.
    package var text: String
    /// The user, the roles and the claims, as far as the statements ask for them.
    package var user: String?
    package var roles: [String]
    package var claims: [String: String]

    package init(
        fingerprint: String, text: String, user: String? = nil, roles: [String] = [],
        claims: [String: String] = [:]
    ) {
        self.fingerprint = fingerprint
        self.text = text
        self.user = user
        self.roles = roles
        self.claims = claims
    }

    /// The rules of a data set that has none.
    package static let none = UserRules(fingerprint: "none", text: "")
}
