/// Reads command lines by the descriptions of the commands.
struct ArgumentParser {
    let commands: [CommandDescription]

    /// The request that a command line makes.
    enum Request {
        case run(CommandDescription, ParsedArguments)
        case help(CommandDescription)
        case overview
        case version
    }

    /// - Parameter words: The command line without the program's name.
    /// - Throws: `UsageError` if the command line is wrong.
    func parse(_ words: [String]) throws -> Request {
        guard let first = words.first else { return .overview }
        switch first {
        case "help" where words.count == 1, "--help", "-h": return .overview
        case "--version": return .version
        case "help": return .help(try command(Array(words.dropFirst())).command)
        default: break
        }
        let (command, rest) = try command(words)
        return try parse(Array(rest), for: command)
    }

    /// Returns the command that the first words name, and the words after them.
    private func command(
        _ words: [String]
    ) throws -> (command: CommandDescription, rest: ArraySlice<String>) {
        for count in [2, 1] where words.count >= count {
            let name = words.prefix(count).joined(separator: " ")
            if let found = commands.first(where: { $0.name == name }) {
                return (found, words.dropFirst(count))
            }
        }
        let first = words.first ?? ""
        let group = commands.filter { $0.name.hasPrefix(first + " ") }
        if !first.isEmpty, !group.isEmpty {
            let names = group.map(\.name).joined(separator: ", ")
            throw UsageError("“\(first)” is a group of commands: \(names).")
        }
        let nearest = Nearest.word(to: first, in: commands.map(\.name))
        let hint = nearest.map { " Did you mean “\($0)”?" } ?? ""
        throw UsageError("There is no command “\(first)”.\(hint)")
    }

    private func parse(
        _ words: [String], for command: CommandDescription
    ) throws -> Request {
        var parsed = ParsedArguments(command: command.name)
        var index = 0
        var onlyArguments = false
        while index < words.count {
            let word = words[index]
            index += 1
            // A negative number is an id.
            if onlyArguments || word == "-" || !word.hasPrefix("-") || Int64(word) != nil {
                parsed.positional.append(word)
            } else if word == "--" {
                onlyArguments = true
            } else if word == "--help" || word == "-h" {
                return .help(command)
            } else {
                try parseOption(word, words, &index, command, &parsed)
            }
        }
        try checkArguments(parsed, command)
        return .run(command, parsed)
    }

    private func parseOption(
        _ word: String, _ words: [String], _ index: inout Int, _ command: CommandDescription,
        _ parsed: inout ParsedArguments
    ) throws {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0].drop { $0 == "-" })
        guard word.hasPrefix("--"),
            let option = command.allOptions.first(where: { $0.name == name })
        else {
            let nearest = Nearest.word(to: name, in: command.allOptions.map(\.name))
            let hint = nearest.map { " Did you mean --\($0)?" } ?? ""
            throw UsageError("Unknown option \(parts[0]).\(hint)", command: command.name)
        }
        guard let placeholder = option.value else {
            guard parts.count == 1 else {
                throw UsageError("--\(name) takes no value.", command: command.name)
            }
            parsed.switches.insert(name)
            return
        }
        let value: String
        if parts.count == 2 {
            value = String(parts[1])
        } else {
            guard index < words.count, !words[index].hasPrefix("--") else {
                throw UsageError("--\(name) needs a value: \(placeholder).", command: command.name)
            }
            value = words[index]
            index += 1
        }
        guard option.repeats || parsed.values[name] == nil else {
            throw UsageError("--\(name) is given twice.", command: command.name)
        }
        parsed.values[name, default: []].append(value)
    }

    private func checkArguments(
        _ parsed: ParsedArguments, _ command: CommandDescription
    ) throws {
        let required = command.arguments.filter(\.isRequired)
        if parsed.positional.count < required.count {
            let missing = required[parsed.positional.count]
            throw UsageError(
                "Missing \(missing.name): \(missing.help).", command: command.name)
        }
        let repeats = command.arguments.last?.repeats ?? false
        if let empty = zip(command.arguments, parsed.positional).first(where: { $1.isEmpty }) {
            throw UsageError(
                "\(parsed.command)'s \(empty.0.name) is empty. Is a variable of the shell not set?",
                command: parsed.command)
        }
        if !repeats, parsed.positional.count > command.arguments.count {
            let extra = parsed.positional[command.arguments.count]
            throw UsageError("Nothing is expected at “\(extra)”.", command: command.name)
        }
    }
}
