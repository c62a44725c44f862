/// The rules that say which roles may create, update and delete records of which types.
///
/// A principal may do the operations of any of its roles. A principal without a listed role may do
/// the operations of `fallback`.
///
/// ```swift
/// let rules = Rules(
///     roles: ["admin": Rules.Grant()],
///     fallback: Rules.Grant(types: ["teams": []], others: [.create, .update]))
/// ```
public struct Rules: Hashable, Sendable {
    /// The operations that one role may do.
    public struct Grant: Hashable, Sendable {
        /// The operations by type. A type that is not listed has `others`.
        public var types: [String: Operations]
        /// The operations on types that are not listed.
        public var others: Operations

        /// Makes a grant; without arguments, it allows everything.
        public init(types: [String: Operations] = [:], others: Operations = .all) {
            self.types = types
            self.others = others
        }

        /// Returns the operations that this grant allows on a type.
        public func operations(on type: String) -> Operations {
            types[type] ?? others
        }
    }

    /// The grants by role.
    public var roles: [String: Grant]
    /// The grant of a principal without a listed role.
    public var fallback: Grant

    /// Makes rules; without arguments, they allow everything.
    public init(roles: [String: Grant] = [:], fallback: Grant = Grant()) {
        self.roles = roles
        self.fallback = fallback
    }

    /// The rules that allow everyone every operation.
    public static let everything = Rules()

    /// Returns the operations that a principal may do on records of a type.
    ///
    /// - Complexity: O(*n*) in the number of the principal's roles.
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

/// A set of operations on a record.
public struct Operations: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    public static let create = Operations(rawValue: 1)
    public static let update = Operations(rawValue: 2)
    public static let delete = Operations(rawValue: 4)
    public static let all: Operations = [.create, .update, .delete]

    /// The words for operations in a rules file.
    public static let words: [(word: String, operation: Operations)] = [
        ("create", .create), ("update", .update), ("delete", .delete),
    ]
}
