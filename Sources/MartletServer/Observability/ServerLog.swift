internal import Dispatch
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

    /// Lines on standard error, in order, without making anyone wait.
    public static func standardError(minimum: Level = .info) -> ServerLog {
        let queue = DispatchQueue(label: "martlet.log")
        return ServerLog(minimum: minimum) { line in
            queue.async { FileHandle.standardError.write(Data((line + "\n").utf8)) }
        }
    }

    /// Nothing at all.
    public static let silent = ServerLog(minimum: .error) { _ in }

    func log(_ level: Level, _ event: String, _ fields: [(String, Field)] = []) {
        guard level >= minimum else { return }
        var line = "{\"time\":\"\(Self.time())\",\"level\":\"\(level.word)\",\"event\":\"\(event)\""
        for (name, field) in fields {
            line += ",\"\(name)\":"
            switch field {
            case .text(let text): line += Self.quoted(text)
            case .number(let number): line += String(number)
            }
        }
        write(line + "}")
    }

    private static func time() -> String {
        Date.now.formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// At most 200 characters, with everything that could end the string or the line escaped.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars.prefix(200) {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
