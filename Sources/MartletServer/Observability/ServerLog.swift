internal import Foundation

/// The server's log: one JSON object per line, with identifiers and counts, but never values or
/// tokens.
///
/// ```swift
/// var configuration = ServerConfiguration(dataDirectory: "/srv/martlet", schema: script)
/// configuration.log = ServerLog(minimum: .warning) { line in print(line) }
/// ```
public struct ServerLog: Sendable {
    /// The importance of a line.
    public enum Level: Int, Comparable, Sendable {
        case debug
        case info
        case warning
        case error

        public static func < (left: Level, right: Level) -> Bool {
            left.rawValue < right.rawValue
        }

        var word: String {
            switch self {
            case .debug: "debug"
            case .info: "info"
            case .warning: "warning"
            case .error: "error"
            }
        }
    }

    /// The value of a field that a line has in addition to its event.
    enum Field: Sendable {
        case text(String)
        case number(Int)
    }

    let minimum: Level
    private let write: @Sendable (String) -> Void

    /// Makes a log that writes its lines with a function.
    ///
    /// - Parameters:
    ///   - minimum: The lowest level of the lines that are made.
    ///   - write: Takes a line, without its line end.
    public init(minimum: Level = .info, write: @escaping @Sendable (String) -> Void) {
        self.minimum = minimum
        self.write = write
    }

    /// Returns a log that writes to standard error, in order, without making callers wait. A line
    /// that cannot be written is lost, and nothing else happens.
    public static func standardError(minimum: Level = .info) -> ServerLog {
        let output = LogOutput(to: .standardError)
        return ServerLog(minimum: minimum) { output.add($0) }
    }

    /// A log that writes nothing.
    public static let silent = ServerLog(minimum: .error) { _ in }

    func log(_ level: Level, _ event: String, _ fields: [(String, Field)] = []) {
        guard level >= minimum else { return }
        write(Self.line(level, event, fields))
    }

    /// Returns the line that replaces missing lines.
    static func lineOfLoss(_ count: Int) -> String {
        line(
            .warning, "log",
            [
                ("lost", .number(count)),
                ("reason", .text("Lines could not be written, or were not read in time.")),
            ])
    }

    private static func line(
        _ level: Level, _ event: String, _ fields: [(String, Field)]
    ) -> String {
        var line = "{\"time\":\"\(time())\",\"level\":\"\(level.word)\",\"event\":\"\(event)\""
        for (name, field) in fields {
            line += ",\"\(name)\":"
            switch field {
            case .text(let text): line += quoted(text)
            case .number(let number): line += String(number)
            }
        }
        return line + "}"
    }

    private static func time() -> String {
        Date.now.formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// The most characters of a text; the rest is cut off. A database's message and the advice
    /// after it fit.
    private static let mostCharacters = 2_000

    /// Returns a text as a JSON string, and escapes every character that could end the string or
    /// the line. A text that is cut ends with “…”.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        let isCut = text.unicodeScalars.count > mostCharacters
        for scalar in text.unicodeScalars.prefix(mostCharacters) {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + (isCut ? "…\"" : "\"")
    }
}
