package import MartletModel
package import MartletRules

/// All rights to a data set: of roles to types, and of people to rows.
package struct DataSetRules: Sendable {
    package var roles = Rules.everything
    /// The policies; nil if there are none.
    package var policies: RulesProgram?

    /// Makes rules that allow everyone everything.
    package init() {}
}

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
package struct Rules: Hashable, Sendable {
    /// The operations that one role may do.
    package struct Grant: Hashable, Sendable {
        /// The operations by type. A type that is not listed has `others`.
        package var types: [String: Operations]
        /// The operations on types that are not listed.
        package var others: Operations

        /// Makes a grant; without arguments, it allows everything.
        package init(types: [String: Operations] = [:], others: Operations = .all) {
            self.types = types
            self.others = others
        }

        /// Returns the operations that this grant allows on a type.
        package func operations(on type: String) -> Operations {
            types[type] ?? others
        }
    }

    /// The grants by role.
    package var roles: [ExactName: Grant]
    /// The grant of a principal without a listed role.
    package var fallback: Grant

    /// Makes rules; without arguments, they allow everything.
    package init(roles: [ExactName: Grant] = [:], fallback: Grant = Grant()) {
        self.roles = roles
        self.fallback = fallback
    }

    /// The rules that allow everyone every operation.
    package static let everything = Rules()

    /// Returns the operations that a principal may do on records of a type.
    ///
    /// - Complexity: O(*n*) in the number of the principal's roles.
    package func operations(of principal: Principal, on type: String) -> Operations {
        var allowed: Operations = []
        var isListed = false
        for role in principal.roles {
            guard let grant = roles[ExactName(role)] else { continue }
            isListed = true
            allowed.formUnion(grant.operations(on: type))
        }
        return isListed ? allowed : fallback.operations(on: type)
    }
}

/// A set of operations on a record.
package struct Operations: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    package static let create = Operations(rawValue: 1)
    package static let update = Operations(rawValue: 2)
    package static let delete = Operations(rawValue: 4)
    package static let all: Operations = [.create, .update, .delete]

    /// The words for operations in a rules file.
    package static let words: [(word: String, operation: Operations)] = [
        ("create", .create), ("update", .update), ("delete", .delete),
    ]
}
