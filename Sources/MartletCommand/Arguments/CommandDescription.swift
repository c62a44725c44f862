/// A command: what it takes, and what its help says.
struct CommandDescription: Sendable {
    /// One word, or two for commands of a group: `token create`.
    let name: String
    /// One line.
    let summary: String
    /// What it does in a few sentences.
    var discussion = ""
    var arguments: [Argument] = []
    var options: [Option] = []
    /// Command lines without `martlet`, each with what it does.
    var examples: [Example] = []
    let run: @Sendable (ParsedArguments, Console) async throws -> ExitCode

    /// What stands in a fixed place.
    struct Argument: Hashable, Sendable {
        let name: String
        let help: String
        var isRequired = true
        var repeats = false
    }

    /// What is named with two dashes.
    struct Option: Hashable, Sendable {
        /// Without the dashes.
        let name: String
        /// What stands for the value; nil for a switch.
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

    /// The options every command takes.
    static let common = [
        Option(name: "json", help: "print the result as JSON"),
        Option(name: "help", help: "show this help"),
    ]

    var allOptions: [Option] { options + Self.common }
}
