/// A command: how it is called, and what it does.
struct Command: Sendable {
    /// Something named by its position.
    struct Operand: Sendable {
        /// As in the usage line: “PLAYER”.
        let name: String
        var isOptional = false
    }

    /// Something named by a word with two dashes.
    struct Option: Sendable {
        /// Without the dashes.
        let name: String
        /// As in the help: “TEAM”; nil for a switch.
        let value: String?
        let help: String
        var isRequired = false
        /// Whether it may be given several times.
        var isRepeated = false
    }

    let name: String
    let summary: String
    var operands: [Operand] = []
    var options: [Option] = []
    /// Words for the help, below the options.
    var notes = ""
    let run: @Sendable (Session) async throws -> ExitCode

    /// Options every command takes.
    static let common = [
        Option(
            name: "data", value: "FOLDER", help: "where this device keeps its data (youth-data)"),
        Option(
            name: "server", value: "URL",
            help: "exchange with this server; without it the command works on this device alone"),
        Option(name: "help", value: nil, help: "explain the command"),
    ]
}
