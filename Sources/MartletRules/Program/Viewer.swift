package import MartletModel

/// The person for whom rules are judged.
package struct Viewer: Hashable, Sendable {
    /// The user; nil if the token belongs to none.
    package var user: String?
    package var roles: NameSet
    /// The claims of the token, as texts.
    package var claims: [String: String]
    /// The day of the server, in days since 1970-01-01.
    package var today: Int64

    package init(
        user: String? = nil, roles: some Sequence<String> = [String](),
        claims: [String: String] = [:],
        today: Int64 = 0
    ) {
        self.user = user
        self.roles = NameSet(roles)
        self.claims = claims
        self.today = today
    }
}
