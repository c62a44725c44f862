/// What is wrong in a CSV file, and where.
public struct CSVFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file's name.
    public let file: String
    /// The line, counted from 1.
    public let line: Int
    /// The column's name, where one is to blame.
    public let column: String?
    /// What was expected and found, without repeating the value.
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
