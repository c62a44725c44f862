public import MartletModel
internal import SQLiteRecords

/// A value as SQLite stores it.
///
/// Two texts are equal if their bytes are equal.
public enum SQLValue: Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
}

extension SQLValue: Hashable {
    public static func == (left: SQLValue, right: SQLValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.integer(let a), .integer(let b)): a == b
        case (.real(let a), .real(let b)): a == b
        case (.text(let a), .text(let b)): a == b && a.utf8.elementsEqual(b.utf8)
        case (.blob(let a), .blob(let b)): a == b
        default: false
        }
    }
}

extension SQLValue {
    /// Whether the value is null.
    public var isNull: Bool { self == .null }

    /// Converts a value of the wire to the value that a column of a kind stores. A boolean becomes
    /// 0 or 1. For binary data, the wire has base64 text; any other text stays as it is.
    package init(_ value: Value, kind: AttributeKind) {
        self =
            switch value {
            case .null: .null
            case .boolean(let flag): .integer(flag ? 1 : 0)
            case .integer(let number): .integer(number)
            case .real(let number): .real(number)
            case .text(let text):
                if kind == .blob, let bytes = Base64.decode(text) {
                    .blob(bytes)
                } else {
                    .text(text)
                }
            }
    }

    /// Converts a record's id.
    public init(_ id: RecordID) {
        self =
            switch id {
            case .integer(let number): .integer(number)
            case .text(let text): .text(text)
            }
    }

    /// The name of the value's kind, for use in a sentence.
    var kindName: String {
        switch self {
        case .null: "null"
        case .integer: "an integer"
        case .real: "a real number"
        case .text: "text"
        case .blob: "binary data"
        }
    }
}

extension SQLValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringInterpolation, ExpressibleByBooleanLiteral
{
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .real(value) }
    public init(stringLiteral value: String) { self = .text(value) }
    public init(booleanLiteral value: Bool) { self = .integer(value ? 1 : 0) }
}

extension RecordID {
    /// Converts a stored value to an id; nil if the value is neither an integer nor a text.
    public init?(_ value: SQLValue) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .text(let text): self = .text(text)
        case .null, .real, .blob: return nil
        }
    }
}
