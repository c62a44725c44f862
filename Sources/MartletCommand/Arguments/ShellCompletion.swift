/// Scripts for shells that complete Martlet's command line. They are made from the descriptions of
/// the commands.
enum ShellCompletion: String, CaseIterable {
    case bash
    case zsh
    case fish

    func script(_ commands: [CommandDescription]) -> String {
        switch self {
        case .bash: bash(commands)
        case .zsh: "autoload -U +X bashcompinit && bashcompinit\n" + bash(commands)
        case .fish: fish(commands)
        }
    }

    /// Returns the first words of the commands, each once.
    private func words(_ commands: [CommandDescription]) -> [String] {
        var seen: Set<String> = []
        return (commands.map { String($0.name.prefix { $0 != " " }) } + ["help"])
            .filter { seen.insert($0).inserted }
    }

    private func bash(_ commands: [CommandDescription]) -> String {
        var cases = ""
        for command in commands {
            let options = command.allOptions.map { "--\($0.name)" }.joined(separator: " ")
            cases += "        '\(command.name)') words='\(options)' ;;\n"
        }
        let groups = commands.filter { $0.name.contains(" ") }
        for group in Set(groups.map { String($0.name.prefix { $0 != " " }) }).sorted() {
            let names = groups.filter { $0.name.hasPrefix(group + " ") }
                .map { String($0.name.dropFirst(group.count + 1)) }
            cases += "        '\(group)') words='\(names.joined(separator: " "))' ;;\n"
        }
        return """
            # martlet completion: put it where your shell reads completions, or:
            #   eval "$(martlet completion \(rawValue))"
            _martlet() {
                local current=${COMP_WORDS[COMP_CWORD]} words=''
                local command="${COMP_WORDS[1]:-}"
                COMPREPLY=()
                if [ "$COMP_CWORD" -eq 1 ]; then
                    words='\(words(commands).joined(separator: " "))'
                else
                    case "$command ${COMP_WORDS[2]:-}" in
                        \(groups.map { "'\($0.name)'" }.joined(separator: "|")))
                            [ "$COMP_CWORD" -eq 2 ] || command="$command ${COMP_WORDS[2]}" ;;
                    esac
                    case "$command" in
            \(cases)        esac
                fi
                if [[ "$current" == -* || "$COMP_CWORD" -eq 1 || "$words" != --* ]]; then
                    COMPREPLY=($(compgen -W "$words" -- "$current"))
                fi
                [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
            }
            complete -o filenames -F _martlet martlet
            """
    }

    private func fish(_ commands: [CommandDescription]) -> String {
        var lines = [
            "# martlet completion for fish; save as ~/.config/fish/completions/martlet.fish"
        ]
        for word in words(commands) {
            let summary = commands.first { $0.name == word }?.summary ?? ""
            lines.append(
                "complete -c martlet -f -n __fish_use_subcommand -a '\(word)' -d '\(escaped(summary))'"
            )
        }
        for command in commands {
            let words = command.name.split(separator: " ")
            var condition = "__fish_seen_subcommand_from \(words[0])"
            if words.count == 2 {
                lines.append(
                    "complete -c martlet -f -n '\(condition)' -a '\(words[1])'"
                        + " -d '\(escaped(command.summary))'")
                condition += "; and __fish_seen_subcommand_from \(words[1])"
            }
            for option in command.allOptions {
                let value = option.value == nil ? "" : option.isPath ? " -r -F" : " -x"
                lines.append(
                    "complete -c martlet -n '\(condition)' -l \(option.name)\(value)"
                        + " -d '\(escaped(option.help))'")
            }
        }
        return lines.joined(separator: "\n")
    }

    private func escaped(_ text: String) -> String {
        text.unicodeScalars.split(separator: "'", omittingEmptySubsequences: false).map {
            String($0)
        }.joined(separator: "\\'")
    }
}
