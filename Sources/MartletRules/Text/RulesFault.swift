/// A rules file that cannot be used: what is wrong, at which line and column, and what to write.
///
/// ```swift
/// let fault = RulesFault("“teem” is no type of the data set", line: 3, column: 27,
///     remedy: "write “teams”")
/// print(fault)  // line 3, column 27: “teem” is no type of the data set; write “teams”
/// ```
package struct RulesFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The fault in words, without a full stop.
    package let message: String
    /// The line of the file, from 1 on.
    package let line: Int
    /// The column of the line in characters, from 1 on.
    package let column: Int
    /// The advice for the reader, without a full stop; nil if the message is enough.
    package let remedy: String?

    package init(_ message: String, line: Int, column: Int, remedy: String? = nil) {
        self.message = message
        self.line = line
        self.column = column
        self.remedy = remedy
    }

    init(_ message: String, at position: TextPosition, remedy: String? = nil) {
        self.init(message, line: position.line, column: position.column, remedy: remedy)
    }

    package var description: String {
        "line \(line), column \(column): \(message)" + (remedy.map { "; \($0)" } ?? "")
    }
}

/// A line and a column of a rules file, from 1 on.
struct TextPosition: Hashable, Sendable {
    var line = 1
    var column = 1
    /// The number of characters before it in the file.
    var offset = 0
}
