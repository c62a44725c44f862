internal import MartletModel
public import MartletServerCore

/// The record of a token that the server stores. It does not contain the token itself.
public struct TokenRecord: Hashable, Sendable {
    /// The name of the token in lists and logs and for revoking. It is no secret.
    public let identifier: String
    /// The only data set that the token opens.
    public let dataSet: String
    public let user: String?
    /// The roles of the user, for the rules.
    public let roles: [String]
    /// The name that a person gave to the token's device.
    public let device: String?
    /// The time when the token was created, in milliseconds since 1970.
    public let created: Int64
    /// The time when the token was revoked, in milliseconds since 1970; nil if it was not.
    public let revoked: Int64?
    /// The time when the token expires, in milliseconds since 1970; nil if it does not expire.
    var expires: Int64?
    /// The claims of a signed token as texts, for policies.
    var claims: [String: String] = [:]

    /// Returns whether the token has not expired.
    ///
    /// - Parameter now: Milliseconds since 1970.
    func isGood(at now: Int64) -> Bool {
        expires.map { now < $0 } ?? true
    }

    /// The principal of a request with this token.
    public var principal: Principal {
        Principal(name: identifier, user: user, roles: roles, claims: claims)
    }
}
