/// A fault in a CSV file, with its place.
public struct CSVFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file's name.
    public let file: String
    /// The line, counted from 1.
    public let line: Int
    /// The column's name; nil if the fault is not in one column.
    public let column: String?
    /// A sentence that says what was expected and found, without the value.
    public let message: String

    public init(file: String, line: Int, column: String? = nil, message: String) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    public var description: String {
        let place = column.map { ", column \($0)" } ?? ""
        return "\(file), line \(line)\(place): \(message)"
    }
}
