/// A span of a text, such as a condition in a rules file.
struct TextSpan: Hashable, Sendable {
    let start: TextPosition
    let end: TextPosition

    /// Returns the characters of the span.
    func text(in file: String) -> String {
        let scalars = file.unicodeScalars
        let first = scalars.index(scalars.startIndex, offsetBy: start.offset)
        let last = scalars.index(first, offsetBy: end.offset - start.offset)
        return String(scalars[first..<last])
    }
}
