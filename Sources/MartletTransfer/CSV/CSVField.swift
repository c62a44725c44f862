/// One field of a CSV record.
package struct CSVField: Hashable, Sendable {
    package var text: String
    /// Whether the field was in quotes: `""` is an empty text, and an empty field without quotes is
    /// null.
    package var isQuoted: Bool

    package init(_ text: String, isQuoted: Bool = false) {
        self.text = text
        self.isQuoted = isQuoted
    }

    package var isNull: Bool { text.isEmpty && !isQuoted }
}
