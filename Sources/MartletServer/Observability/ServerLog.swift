internal import Foundation

/// The server's log: one JSON object a line, with identifiers and counts, never values or tokens.
public struct ServerLog: Sendable {
    /// How much a line matters.
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

    /// What a line can tell besides its event.
    enum Field: Sendable {
        case text(String)
        case number(Int)
    }

    let minimum: Level
    private let write: @Sendable (String) -> Void

    /// - Parameters:
    ///   - minimum: Lines below are not made.
    ///   - write: Takes a line without its end.
    public init(minimum: Level = .info, write: @escaping @Sendable (String) -> Void) {
        self.minimum = minimum
        self.write = write
    }

    /// Lines on standard error, in order, without making anyone wait. Lines that cannot be written
    /// are lost, and nothing else happens.
    public static func standardError(minimum: Level = .info) -> ServerLog {
        let output = LogOutput(to: .standardError)
        return ServerLog(minimum: minimum) { output.add($0) }
    }

    /// Nothing at all.
    public static let silent = ServerLog(minimum: .error) { _ in }

    func log(_ level: Level, _ event: String, _ fields: [(String, Field)] = []) {
        guard level >= minimum else { return }
        write(Self.line(level, event, fields))
    }

    /// Returns the line that stands in place of missing lines.
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

    /// The most characters of a text; the rest is cut off. The database's message and the advice
    /// after it fit.
    private static let mostCharacters = 2_000

    /// Escapes everything that could end the string or the line. A text that is cut ends with “…”.
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
