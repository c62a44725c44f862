extension CommandDescription {
    static let completion = CommandDescription(
        name: "completion",
        summary: "print a completion script for bash, zsh or fish",
        arguments: [Argument(name: "SHELL", help: "bash, zsh or fish")],
        examples: [
            Example("completion bash > /etc/bash_completion.d/martlet", "for all users"),
            Example("completion fish > ~/.config/fish/completions/martlet.fish", "for yourself"),
        ]
    ) { arguments, console in
        let name = arguments.positional[0]
        guard let shell = ShellCompletion(rawValue: name) else {
            let known = ShellCompletion.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError(
                "No completion for “\(name)”; there is \(known).", command: "completion")
        }
        console.print(shell.script(CommandDescription.all))
        return .done
    }
}
