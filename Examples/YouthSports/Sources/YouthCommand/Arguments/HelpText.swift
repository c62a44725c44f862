/// The help.
enum HelpText {
    static func overview(_ commands: [Command]) -> String {
        let width = commands.map(\.name.count).max() ?? 0
        let lines = commands.map { "  \(padded($0.name, width))  \($0.summary)" }
        return """
            youth: teams, players and health checks of a youth sports organisation, on every
            device, with and without a network.

            usage: youth COMMAND … [--data FOLDER] [--server URL]

            \(lines.joined(separator: "\n"))

            “youth COMMAND --help” explains one. It ends with 0 when all is done, 1 when something
            was refused, 2 when the command line was wrong, 3 when conflicts wait for a decision,
            4 when the server was not reached.
            """
    }

    static func page(_ command: Command) -> String {
        let operands = command.operands.map { $0.isOptional ? "[\($0.name)]" : $0.name }
        let required = command.options.filter(\.isRequired).map { "--\($0.name) \($0.value ?? "")" }
        let usage = (["usage: youth", command.name] + operands + required + ["[options]"])
            .joined(separator: " ")
        let options = command.options + Command.common
        let names = options.map { "--\($0.name)\($0.value.map { " \($0)" } ?? "")" }
        let width = names.map(\.count).max() ?? 0
        let lines = zip(names, options).map { "  \(padded($0, width))  \($1.help)" }
        let notes = command.notes.isEmpty ? "" : "\n\n\(command.notes)"
        return """
            \(command.summary)

            \(usage)

            \(lines.joined(separator: "\n"))\(notes)
            """
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
