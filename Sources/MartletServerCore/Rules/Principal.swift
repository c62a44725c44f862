internal import MartletModel

/// The sender of a request, as its token names it.
public struct Principal: Hashable, Sendable {
    /// The token's name, unique among the tokens of a data set.
    public let name: String
    /// The user to whom the token belongs; nil if it belongs to no user.
    public let user: String?
    /// The roles of the user, for `Rules` and policies.
    public let roles: [String]
    /// The claims of the token as texts, for policies.
    public let claims: [String: String]

    /// Makes a principal.
    public init(
        name: String, user: String? = nil, roles: [String] = [], claims: [String: String] = [:]
    ) {
        self.name = name
        self.user = user
        self.roles = roles
        self.claims = claims
    }

    /// The identity to which a device is bound: the user, so that a renewed token finds its device
    /// again, or the token if there is no user.
    public var identity: String {
        user.map { "user:\($0)" } ?? "token:\(name)"
    }
}

extension Principal {
    /// Two principals are equal if all their texts have the same bytes, so that nobody gets the rules that
    /// were made for another person.
    public static func == (left: Principal, right: Principal) -> Bool {
        left.name.hasSameBytes(as: right.name)
            && left.user.map { ExactName($0) } == right.user.map { ExactName($0) }
            && left.roles.elementsEqual(right.roles) { $0.hasSameBytes(as: $1) }
            && left.claims.count == right.claims.count
            && left.claims.allSatisfy { name, value in
                right.claims.value(ofExactName: name).map { $0.hasSameBytes(as: value) } ?? false
            }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(user)
    }
}
