/// A span of a text, such as a condition in a rules file.
struct TextSpan: Hashable, Sendable {
    let start: TextPosition
    let end: TextPosition

    /// Returns the characters of the span, of those of a file.
    func text(in file: [Unicode.Scalar]) -> String {
        String(String.UnicodeScalarView(file[start.offset..<end.offset]))
    }
}
