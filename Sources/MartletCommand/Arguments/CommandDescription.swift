/// A command: its arguments and options, and its help text.
struct CommandDescription: Sendable {
    /// The name: one word, or two for commands of a group (`token create`).
    let name: String
    /// A summary in one line.
    let summary: String
    /// A description in a few sentences.
    var discussion = ""
    var arguments: [Argument] = []
    var options: [Option] = []
    /// Command lines without `martlet`, each with its effect.
    var examples: [Example] = []
    let run: @Sendable (ParsedArguments, Console) async throws -> ExitCode

    /// An argument in a fixed position.
    struct Argument: Hashable, Sendable {
        let name: String
        let help: String
        var isRequired = true
        var repeats = false
    }

    /// An option, which begins with two dashes.
    struct Option: Hashable, Sendable {
        /// The name without the dashes.
        let name: String
        /// The placeholder for the value; nil for a switch.
        var value: String?
        let help: String
        var repeats = false
        /// Whether the shell completes file names.
        var isPath: Bool { ["FILE", "FOLDER", "DIR"].contains(value) }
    }

    struct Example: Hashable, Sendable {
        let line: String
        let meaning: String

        init(_ line: String, _ meaning: String) {
            self.line = line
            self.meaning = meaning
        }
    }

    /// The options of every command.
    static let common = [
        Option(name: "json", help: "print the result as JSON"),
        Option(name: "help", help: "show this help"),
    ]

    var allOptions: [Option] { options + Self.common }
}
