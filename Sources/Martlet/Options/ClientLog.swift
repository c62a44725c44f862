internal import Foundation

/// The log of a client: it reports unusual events with identifiers, types and counts, never with
/// values or tokens.
public struct ClientLog: Sendable {
    /// The importance of a line.
    public enum Level: Int, Comparable, Sendable {
        case debug
        case info
        case warning

        public static func < (left: Level, right: Level) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    let minimum: Level
    private let write: @Sendable (Level, String) -> Void

    /// - Parameters:
    ///   - minimum: Lines of a lower level are left out.
    ///   - write: Receives a line without its end, on the device's queue.
    public init(
        minimum: Level = .info, write: @escaping @Sendable (_ level: Level, _ line: String) -> Void
    ) {
        self.minimum = minimum
        self.write = write
    }

    /// Writes lines to standard error.
    public static func standardError(minimum: Level = .info) -> ClientLog {
        ClientLog(minimum: minimum) { _, line in
            FileHandle.standardError.write(Data(("martlet: " + line + "\n").utf8))
        }
    }

    /// Writes nothing.
    public static let silent = ClientLog(minimum: .warning) { _, _ in }

    func note(_ level: Level, _ line: @autoclosure () -> String) {
        if level >= minimum { write(level, line()) }
    }
}
