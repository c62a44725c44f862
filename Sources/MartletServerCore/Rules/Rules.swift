/// Which roles may create, update and delete records of which types.
///
/// A principal may do what any of its roles may; one without a role that is listed here may do
/// what `fallback` allows.
public struct Rules: Hashable, Sendable {
    /// What one role may do.
    public struct Grant: Hashable, Sendable {
        /// By type; a type that is not listed takes `others`.
        public var types: [String: Operations]
        /// For types not listed.
        public var others: Operations

        public init(types: [String: Operations] = [:], others: Operations = .all) {
            self.types = types
            self.others = others
        }

        /// What this grant allows on a type.
        public func operations(on type: String) -> Operations {
            types[type] ?? others
        }
    }

    /// By role.
    public var roles: [String: Grant]
    /// For a principal none of whose roles is listed.
    public var fallback: Grant

    public init(roles: [String: Grant] = [:], fallback: Grant = Grant()) {
        self.roles = roles
        self.fallback = fallback
    }

    /// Everybody may do everything.
    public static let everything = Rules()

    /// What a principal may do to records of a type.
    public func operations(of principal: Principal, on type: String) -> Operations {
        var allowed: Operations = []
        var isListed = false
        for role in principal.roles {
            guard let grant = roles[role] else { continue }
            isListed = true
            allowed.formUnion(grant.operations(on: type))
        }
        return isListed ? allowed : fallback.operations(on: type)
    }
}

/// A set of the three things one can do to a record.
public struct Operations: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    public static let create = Operations(rawValue: 1)
    public static let update = Operations(rawValue: 2)
    public static let delete = Operations(rawValue: 4)
    public static let all: Operations = [.create, .update, .delete]

    /// The words of a rules file.
    public static let words: [(word: String, operation: Operations)] = [
        ("create", .create), ("update", .update), ("delete", .delete),
    ]
}
