internal import MartletModel

/// A value that a condition works with.
enum RuleValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    /// A decimal number with all its digits.
    case decimal(ExactDecimal)
    case text(String)
    /// Days since 1970-01-01.
    case date(Int64)

    static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let a), .boolean(let b)): a == b
        case (.integer(let a), .integer(let b)): a == b
        case (.real(let a), .real(let b)): a == b
        case (.decimal(let a), .decimal(let b)): a == b
        case (.text(let a), .text(let b)): a.hasSameBytes(as: b)
        case (.date(let a), .date(let b)): a == b
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .boolean(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .real(let value): hasher.combine(value)
        case .decimal(let value): hasher.combine(value)
        case .text(let text): for byte in text.utf8 { hasher.combine(byte) }
        case .date(let days): hasher.combine(days)
        }
    }
}

/// The types that conditions know.
enum RuleType: Hashable, Sendable {
    case boolean
    case integer
    case real
    case numeric
    case text
    case date
    /// A day that a column has as a text.
    case storedDate
    /// A text in PostgreSQL's form of a UUID.
    case uuid
    /// A text of a column that may have another form of a UUID.
    case storedUUID
    /// One of these texts.
    case enumeration([String])
    /// Values that PostgreSQL compares otherwise: in words, with the remedy.
    case incomparable(words: String, remedy: String)
    case blob
    /// A column without a fixed type: each value has its own.
    case any
    /// A text in quotes or NULL, which takes the type of what it is compared with.
    case unknown

    /// The name in messages.
    var name: String {
        switch self {
        case .boolean: "boolean"
        case .integer: "integer"
        case .real: "double precision"
        case .numeric: "numeric"
        case .text: "text"
        case .date, .storedDate: "date"
        case .uuid, .storedUUID: "uuid"
        case .enumeration: "enum"
        case .incomparable: "another kind"
        case .blob: "bytea"
        case .any: "value of any type"
        case .unknown: "text in quotes"
        }
    }

    init(_ kind: AttributeKind) {
        self =
            switch kind {
            case .integer: .integer
            case .real: .real
            case .text: .text
            case .blob: .blob
            case .boolean: .boolean
            case .numeric: .numeric
            case .any: .any
            }
    }

    /// The type of a column.
    init(_ kind: AttributeKind, _ meaning: ColumnMeaning) {
        self =
            switch meaning {
            case .plain: RuleType(kind)
            case .date: .storedDate
            case .uuid(let isCanonical): isCanonical ? .uuid : .storedUUID
            case .enumeration(let labels): .enumeration(labels)
            case .incomparable(let words, let remedy): .incomparable(words: words, remedy: remedy)
            }
    }

    var isUUID: Bool { self == .uuid || self == .storedUUID }
    var isNumber: Bool { self == .integer || self == .real || self == .numeric }

    /// The type that a name of PostgreSQL stands for in a cast; nil if it is not supported.
    init?(cast name: String) {
        switch name {
        case "integer", "int", "int4", "bigint", "int8", "smallint", "int2": self = .integer
        case "text", "varchar": self = .text
        case "uuid": self = .uuid
        case "date": self = .date
        case "boolean", "bool": self = .boolean
        case "numeric", "decimal": self = .numeric
        case "float8", "double precision": self = .real
        default: return nil
        }
    }
}

/// A value that cannot be computed for a row, such as a division by zero. The row is then not
/// shown, and the operation not allowed.
package struct RuleValueFault: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
