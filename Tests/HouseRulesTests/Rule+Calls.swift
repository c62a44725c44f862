extension Rule {
    /// Calls that read a clock, draw randomness, wait, or reach the network, each as it stands in
    /// code.
    private static let banned: [[String]] = [
        ["Date", "(", ")"], ["Date", ".", "now"], ["UUID", "(", ")"], ["sleep", "("],
        ["ContinuousClock"], ["SuspendingClock"], ["clock_gettime"], ["gettimeofday"],
        ["SystemRandomNumberGenerator"], ["arc4random"], ["arc4random_uniform"], ["getentropy"],
        ["getrandom"], ["socket", "("], ["getaddrinfo"], ["URLSession"], ["Thread"],
        ["usleep"], ["nanosleep"],
    ]
    /// Members that take the process's random source unless `using:` names another.
    private static let drawing: Set = ["random", "randomElement", "shuffle", "shuffled"]

    static let nondeterminism = Rule(name: "nondeterminism") { file in
        guard House.isDeterministic(file) else { return [] }
        var found: [Violation] = []
        for words in banned {
            for index in file.occurrences(of: words) {
                found.append(
                    file.violation(
                        file.tokens[index].line,
                        "\(words.joined()) in a core target; let the caller pass it in"))
            }
        }
        for (index, token) in file.tokens.enumerated() {
            if token.text.hasPrefix("Dispatch") {
                found.append(file.violation(token.line, "\(token.text) in a core target"))
            }
            if drawing.contains(token.text), isCallWithoutUsing(file.tokens, index) {
                found.append(
                    file.violation(
                        token.line, "\(token.text) without `using:` in a core target"))
            }
        }
        return found
    }

    private static func isCallWithoutUsing(_ tokens: [Token], _ index: Int) -> Bool {
        guard index > 0, tokens[index - 1].text == ".", index + 1 < tokens.count,
            tokens[index + 1].text == "("
        else { return false }
        var depth = 0
        for token in tokens[(index + 1)...] {
            if token.text == "(" { depth += 1 }
            if token.text == ")" {
                depth -= 1
                if depth == 0 { return true }
            }
            if depth == 1, token.text == "using" { return false }
        }
        return true
    }

    static let unsafe = Rule(name: "unsafe outside kits") { file in
        guard file.target != nil, !House.isKit(file) else { return [] }
        return file.tokens.compactMap { token in
            let isPointer =
                token.text == "unsafe" || token.text.hasPrefix("Unsafe")
                || token.text.hasPrefix("withUnsafe") || token.text.hasPrefix("unsafeB")
            guard isPointer else { return nil }
            return file.violation(
                token.line, "\(token.text) outside a kit; let a kit offer a call without pointers")
        }
    }

    static let uncheckedSendable = Rule(name: "@unchecked Sendable explained") { file in
        file.occurrences(of: ["@", "unchecked", "Sendable"]).compactMap { index in
            let line = file.tokens[index].line
            let nearby = file.lines[max(0, line - 5)..<min(line, file.lines.count)]
            guard !nearby.contains(where: { $0.contains("//") }) else { return nil }
            return file.violation(
                line, "@unchecked Sendable without a comment naming what protects the value")
        }
    }

    static let forcedTry = Rule(name: "forced try and fatalError") { file in
        let forced = file.occurrences(of: ["try", "!"]).filter {
            file.tokens[$0 + 1].isAttached
        }
        let tries = forced.map {
            file.violation(file.tokens[$0].line, "a forced try; handle or pass on the error")
        }
        guard file.target != nil else { return tries }
        return tries
            + file.occurrences(of: ["fatalError", "("]).map {
                file.violation(
                    file.tokens[$0].line,
                    "fatalError; use precondition for our mistakes, errors for the world's")
            }
    }
}
