/// The value of one attribute, as it is sent on the wire.
///
/// Binary data is sent as base64 text, and an exact decimal as text; the schema says which text is
/// which. Integers are exact to 64 bits. NaN and infinities cannot be written.
///
/// Texts are equal if their bytes are equal. So an edit that only composes an accent differently is
/// an edit.
///
/// ```swift
/// let attributes: Attributes = ["name": "Ann", "birthday": "2014-05-31", "shirt": .null]
/// ```
public enum Value: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case text(String)
}

extension Value {
    public static func == (left: Value, right: Value) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let a), .boolean(let b)): a == b
        case (.integer(let a), .integer(let b)): a == b
        case (.real(let a), .real(let b)): a == b
        case (.text(let a), .text(let b)): a.hasSameBytes(as: b)
        default: false
        }
    }
}
