/// One field of a CSV record.
public struct CSVField: Hashable, Sendable {
    public var text: String
    /// Whether the field was in quotes: `""` is an empty text, and an empty field without quotes is
    /// null.
    public var isQuoted: Bool

    public init(_ text: String, isQuoted: Bool = false) {
        self.text = text
        self.isQuoted = isQuoted
    }

    public var isNull: Bool { text.isEmpty && !isQuoted }
}
