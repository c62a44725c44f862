/// The id of a record within its type: an integer, or a text such as a UUID.
///
/// Negative integers are temporary ids: a device makes them, and the server answers with the
/// permanent one. Zero is never an id. Texts are equal if their bytes are, as in databases; Swift's
/// own comparison would treat differently composed accents as equal.
///
/// ```swift
/// let player = try await client.write { try $0.insert("players", ["name": "Ann"]) }
/// if player.isTemporary { try await client.sync() }
/// let permanent = try await client.read { try $0.currentID("players", player) }
/// ```
public enum RecordID: Hashable, Sendable {
    case integer(Int64)
    case text(String)

    /// Whether this is a temporary id, which the server replaces.
    public var isTemporary: Bool {
        if case .integer(let number) = self { return number < 0 }
        return false
    }

    /// The id as an attribute's value, for attributes that are references.
    public var value: Value {
        switch self {
        case .integer(let number): .integer(number)
        case .text(let text): .text(text)
        }
    }

    /// Creates the id from a reference attribute's value; nil if the value is null, or cannot be an
    /// id.
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
    /// Orders integers by size and before all texts, and texts by their UTF-8 bytes.
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
    /// Returns whether two texts have the same UTF-8 bytes.
    package func hasSameBytes(as other: String) -> Bool {
        // Texts that are not even canonically equal differ in bytes; that comparison is fast.
        self == other && utf8.elementsEqual(other.utf8)
    }
}
