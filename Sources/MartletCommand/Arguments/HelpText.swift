/// The texts that `help` and `--help` show.
enum HelpText {
    static func overview(_ commands: [CommandDescription]) -> String {
        let width = commands.map(\.name.count).max() ?? 0
        let list = commands.map { "  \(padded($0.name, width))  \($0.summary)" }
        let codes = ExitCode.allCases.map { "  \($0.rawValue)  \($0.meaning)" }
        return """
            martlet: everybody's data on everybody's device, in step when there is a network

            Usage: martlet COMMAND …

            \(list.joined(separator: "\n"))

            Exit codes:
            \(codes.joined(separator: "\n"))

            `martlet COMMAND --help` shows a command's options and examples.
            """
    }

    static func page(_ command: CommandDescription) -> String {
        var usage = "martlet \(command.name)"
        for argument in command.arguments {
            let name = argument.name + (argument.repeats ? " …" : "")
            usage += argument.isRequired ? " \(name)" : " [\(name)]"
        }
        if !command.options.isEmpty { usage += " [OPTION …]" }
        var parts = ["\(command.summary)\n\nUsage: \(usage)"]
        if !command.discussion.isEmpty { parts.append(command.discussion) }
        if !command.arguments.isEmpty {
            parts.append(
                section("Arguments", command.arguments.map { ($0.name, $0.help) }))
        }
        let options = command.allOptions.map { option in
            ("--\(option.name)" + (option.value.map { " \($0)" } ?? ""), option.help)
        }
        parts.append(section("Options", options))
        if !command.examples.isEmpty {
            let lines = command.examples.map { "  martlet \($0.line)\n      \($0.meaning)" }
            parts.append("Examples:\n" + lines.joined(separator: "\n"))
        }
        return parts.joined(separator: "\n\n")
    }

    private static func section(_ title: String, _ rows: [(String, String)]) -> String {
        let width = rows.map(\.0.count).max() ?? 0
        return "\(title):\n"
            + rows.map { "  \(padded($0.0, width))  \($0.1)" }.joined(separator: "\n")
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
