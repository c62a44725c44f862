/// Who makes a request: what a token stands for.
public struct Principal: Hashable, Sendable {
    /// The token's name, unique among the tokens of a data set.
    public let name: String
    /// The user the token belongs to, where tokens belong to users.
    public let user: String?
    /// What the user is, for `Rules`.
    public let roles: [String]

    public init(name: String, user: String? = nil, roles: [String] = []) {
        self.name = name
        self.user = user
        self.roles = roles
    }

    /// What a device is bound to: the user, so that a renewed token finds its device again; the
    /// token where there is no user.
    public var identity: String {
        user.map { "user:\($0)" } ?? "token:\(name)"
    }
}
