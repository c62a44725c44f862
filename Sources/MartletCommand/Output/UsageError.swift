/// The error for a wrong command line, with a sentence.
struct UsageError: Error, Hashable, CustomStringConvertible {
    let message: String
    /// The command that was meant, for the hint at its help.
    var command: String?

    init(_ message: String, command: String? = nil) {
        self.message = message
        self.command = command
    }

    var description: String {
        let help = command.map { "martlet \($0) --help" } ?? "martlet help"
        return "\(message) See: \(help)"
    }
}

/// The error of a command, with a sentence that names the next step.
struct CommandError: Error, Hashable, CustomStringConvertible {
    let message: String
    let code: ExitCode

    init(_ message: String, code: ExitCode = .failed) {
        self.message = message
        self.code = code
    }

    var description: String { message }
}
