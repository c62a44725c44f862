/// A fault in a CSV file, with its line and column.
package struct CSVFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file's name.
    package let file: String
    /// The line, counted from 1.
    package let line: Int
    /// The column's name; nil if the fault is not in one column.
    package let column: String?
    /// A sentence that says what was expected and found, without the value.
    package let message: String

    package init(file: String, line: Int, column: String? = nil, message: String) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    package var description: String {
        let columnText = column.map { ", column \($0)" } ?? ""
        return "\(file), line \(line)\(columnText): \(message)"
    }
}
