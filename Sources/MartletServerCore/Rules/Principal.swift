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
        left.texts.elementsEqual(right.texts) { $0.hasSameBytes(as: $1) }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(user)
    }

    /// All texts, with the lengths of the lists.
    private var texts: [String] {
        var texts = [name, user == nil ? "" : "user", user ?? "", "\(roles.count)"] + roles
        for (claim, value) in claims.sorted(by: { $0.key < $1.key }) { texts += [claim, value] }
        return texts
    }
}
