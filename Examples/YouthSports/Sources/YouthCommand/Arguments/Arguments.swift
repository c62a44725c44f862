/// A command line, taken apart and checked against its command.
struct Arguments: Sendable {
    let command: Command
    private(set) var operands: [String] = []
    private(set) var values: [String: [String]] = [:]
    private(set) var isHelp = false

    /// - Throws: `UsageError`.
    init(_ words: some Sequence<String>, command: Command) throws {
        self.command = command
        var rest = Array(words)[...]
        var isOver = false
        while let word = rest.popFirst() {
            if isOver || !word.hasPrefix("--") {
                operands.append(word)
            } else if word == "--" {
                isOver = true
            } else {
                try take(word.dropFirst(2), &rest)
            }
        }
        if !isHelp { try check() }
    }

    private mutating func take(_ word: Substring, _ rest: inout ArraySlice<String>) throws {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = (command.options + Command.common).first(where: { $0.name == name })
        else {
            throw UsageError("“\(command.name)” has no option --\(name); see --help.")
        }
        var value = ""
        if let wanted = option.value {
            guard let given = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
                throw UsageError("--\(name) needs a value: --\(name) \(wanted).")
            }
            value = given
        } else if parts.count == 2 {
            throw UsageError("--\(name) takes no value.")
        }
        guard option.isRepeated || values[name] == nil else {
            throw UsageError("--\(name) was given twice; give it once.")
        }
        if name == "help" { isHelp = true }
        values[name, default: []].append(value)
    }

    private func check() throws {
        let least = command.operands.count { !$0.isOptional }
        guard operands.count >= least else {
            throw UsageError(
                "“\(command.name)” needs \(command.operands[operands.count].name); see --help.")
        }
        guard operands.count <= command.operands.count else {
            throw UsageError(
                "“\(command.name)” was given “\(operands[command.operands.count])” too much;"
                    + " put words with spaces in quotes.")
        }
        for option in command.options where option.isRequired && values[option.name] == nil {
            throw UsageError(
                "“\(command.name)” needs --\(option.name) \(option.value ?? ""); see --help.")
        }
    }

    /// The operand at an index that must be given.
    func operand(_ index: Int) -> String { operands[index] }

    /// The operand at an index; nil if it was left out.
    func optionalOperand(_ index: Int) -> String? {
        operands.indices.contains(index) ? operands[index] : nil
    }

    /// The value of an option; nil where it was not given.
    func value(_ name: String) -> String? { values[name]?.last }

    /// All values of an option that may be repeated.
    func all(_ name: String) -> [String] { values[name] ?? [] }

    /// Whether a switch was given.
    func has(_ name: String) -> Bool { values[name] != nil }
}
