/// A statement of a rules file.
struct Statement {
    let position: TextPosition
    let content: Content
    /// The positions of its tokens in the file's.
    var tokens = 0..<0

    /// The roles that it names; none if it is for everyone.
    var roles: [NameText] {
        switch content {
        case .createPolicy(let policy): policy.roles
        case .privileges(let privileges): privileges.roles
        case .rowSecurity: []
        }
    }

    enum Content {
        case createPolicy(PolicyText)
        case privileges(PrivilegeText)
        /// `ALTER TABLE … ROW LEVEL SECURITY`; nil for FORCE, which changes nothing.
        case rowSecurity(type: NameText, isEnabled: Bool?)
    }
}

/// A name as it is written, and its position.
struct NameText: Hashable, Sendable {
    let name: String
    let position: TextPosition
}

/// `CREATE POLICY` as it is written.
struct PolicyText {
    let name: NameText
    let type: NameText
    var isPermissive = true
    var command: PolicyCommand?
    /// The roles; empty for PUBLIC.
    var roles: [NameText] = []
    var using: ConditionText?
    var check: ConditionText?
}

/// A policy's condition, and the spans of the parts that AND or OR joins in it. There is one part if
/// neither does.
struct ConditionText {
    let expression: Expression
    let parts: [TextSpan]
}

/// The commands to which a policy applies.
package enum PolicyCommand: String, Hashable, Sendable, CaseIterable {
    case select
    case insert
    case update
    case delete
}

/// `GRANT` or `REVOKE` as it is written.
struct PrivilegeText {
    let isGrant: Bool
    /// The privileges; nil for ALL.
    let privileges: [Privilege]?
    /// The types; nil for all of the data set.
    let types: [NameText]?
    /// The roles; empty for PUBLIC.
    let roles: [NameText]

    struct Privilege {
        let command: PolicyCommand
        /// The columns; nil for all.
        let columns: [NameText]?
    }
}

/// A condition or a value as it is written.
struct Expression {
    let position: TextPosition
    let content: Content

    indirect enum Content {
        case null
        case boolean(Bool)
        case text(String)
        case integer(String)
        case decimal(String)
        /// A column, with the name of its source if it is written.
        case column(source: String?, name: String)
        case call(name: String, arguments: [Expression])
        case cast(Expression, type: NameText)
        case not(Expression)
        case and([Expression])
        case or([Expression])
        case comparison(Comparison, Expression, Expression)
        case arithmetic(Arithmetic, Expression, Expression)
        case negative(Expression)
        /// `IS [NOT] NULL`, for `truth` nil; `IS [NOT] TRUE` or `FALSE` otherwise.
        case test(Expression, truth: Bool?, isNegated: Bool)
        /// `IS [NOT] DISTINCT FROM`.
        case distinct(Expression, Expression, isNegated: Bool)
        case between(Expression, Expression, Expression, isNegated: Bool)
        case list(Expression, [Expression], isNegated: Bool)
        case among(Expression, Query, isNegated: Bool)
        case like(Expression, Expression, escape: Expression?, isNegated: Bool)
        case exists(Query)
        /// A query in brackets, as a value.
        case scalar(Query)
    }
}

/// `SELECT … FROM … WHERE … ORDER BY … LIMIT …` as it is written.
struct Query {
    struct Source {
        let type: NameText
        let alias: NameText?
    }

    struct Order {
        let value: Expression
        let isDescending: Bool
        /// Whether NULL comes first; nil for the default of the direction.
        let nullsFirst: Bool?
    }

    let position: TextPosition
    /// The selected values; empty for `*`.
    var outputs: [Expression] = []
    var sources: [Source] = []
    /// The conditions of joins and WHERE.
    var conditions: [Expression] = []
    var order: [Order] = []
    var limit: Int?
}
