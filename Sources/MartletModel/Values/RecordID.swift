/// The identity of a record within its type: an integer, or a text such as a UUID.
///
/// Negative integers are temporary: a device made them, and the server answers with the permanent
/// one. Zero is never an identity. Texts are the same when their bytes are the same, as databases
/// see it; Swift's own comparison would take differently composed accents for one text.
public enum RecordID: Hashable, Sendable {
    case integer(Int64)
    case text(String)

    /// Whether a device made this id and the server has yet to replace it.
    public var isTemporary: Bool {
        if case .integer(let number) = self { return number < 0 }
        return false
    }

    /// The id as an attribute's value, for reference attributes.
    public var value: Value {
        switch self {
        case .integer(let number): .integer(number)
        case .text(let text): .text(text)
        }
    }

    /// The id a reference attribute's value stands for; nil for a null or a value no id can be.
    public init?(_ value: Value) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .text(let text): self = .text(text)
        case .null, .boolean, .real: return nil
        }
    }
}

extension RecordID {
    public static func == (left: RecordID, right: RecordID) -> Bool {
        switch (left, right) {
        case (.integer(let a), .integer(let b)): a == b
        case (.text(let a), .text(let b)): a.hasSameBytes(as: b)
        default: false
        }
    }
}

extension RecordID: Comparable {
    /// Integers by size, before all texts; texts by their UTF-8 bytes.
    public static func < (left: RecordID, right: RecordID) -> Bool {
        switch (left, right) {
        case (.integer(let a), .integer(let b)): a < b
        case (.integer, .text): true
        case (.text, .integer): false
        case (.text(let a), .text(let b)): a.utf8.lexicographicallyPrecedes(b.utf8)
        }
    }
}

extension RecordID: CustomStringConvertible {
    public var description: String {
        switch self {
        case .integer(let number): String(number)
        case .text(let text): text
        }
    }
}

extension String {
    /// Whether two texts have the same UTF-8 bytes.
    package func hasSameBytes(as other: String) -> Bool {
        // Texts that differ even canonically differ in bytes; that comparison is quick.
        self == other && utf8.elementsEqual(other.utf8)
    }
}
