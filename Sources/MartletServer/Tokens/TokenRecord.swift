internal import MartletModel
public import MartletServerCore

/// What the server keeps of a token: everything but the token.
public struct TokenRecord: Hashable, Sendable {
    /// Names the token in lists, logs and for revoking; no secret.
    public let identifier: String
    /// The data set the token opens, the only one.
    public let dataSet: String
    public let user: String?
    /// What the user is, for the rules.
    public let roles: [String]
    /// What the person calls the device the token is for.
    public let device: String?
    /// Milliseconds since 1970.
    public let created: Int64
    /// Milliseconds since 1970; nil while the token is good.
    public let revoked: Int64?
    /// When it ends by itself, in milliseconds since 1970; nil for those that do not.
    var expires: Int64?

    /// Whether its own time has not run out.
    /// - Parameter now: Milliseconds since 1970.
    func isGood(at now: Int64) -> Bool {
        expires.map { now < $0 } ?? true
    }

    /// Who makes a request with this token.
    public var principal: Principal {
        Principal(name: identifier, user: user, roles: roles)
    }
}
