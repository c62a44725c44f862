internal import Foundation

/// A log that reports unusual events of a client. Its lines hold identifiers, types and counts, but
/// never values or tokens.
public struct ClientLog: Sendable {
    /// The importance of a line.
    public enum Level: Int, Comparable, Sendable {
        case debug
        case info
        case warning

        /// Orders levels by importance.
        public static func < (left: Level, right: Level) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    let minimum: Level
    private let write: @Sendable (Level, String) -> Void

    /// Creates a log that hands each line to a closure.
    /// - Parameters:
    ///   - minimum: The log leaves out lines of a lower level.
    ///   - write: Receives each line without a line end, on the device's queue.
    public init(
        minimum: Level = .info, write: @escaping @Sendable (_ level: Level, _ line: String) -> Void
    ) {
        self.minimum = minimum
        self.write = write
    }

    /// Returns a log that writes its lines to standard error.
    public static func standardError(minimum: Level = .info) -> ClientLog {
        ClientLog(minimum: minimum) { _, line in
            FileHandle.standardError.write(Data(("martlet: " + line + "\n").utf8))
        }
    }

    /// A log that writes nothing.
    public static let silent = ClientLog(minimum: .warning) { _, _ in }

    func note(_ level: Level, _ line: @autoclosure () -> String) {
        if level >= minimum { write(level, line()) }
    }
}
