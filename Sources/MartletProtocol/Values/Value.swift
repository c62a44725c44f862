/// One attribute's value as it travels on the wire.
///
/// Binary data travels as base64 text and exact decimals as text; the schema says which text is
/// which. Integers are exact to 64 bits. NaN and infinities cannot be written.
public enum Value: Hashable, Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case text(String)
}
