extension Rule {
    /// Where tokens, signatures and seals are judged.
    private static let guarded = [
        "Sources/MartletServer/Tokens/", "Sources/WebTokens/",
        "Sources/MartletRedis/Blocks/SealedBlock.swift",
    ]
    /// What a secret, or something made of one, is called there.
    private static let names: Set = ["token", "hash", "secret", "signature", "seal", "code"]

    /// `==` ends at the first byte that differs: its time tells a guesser how far the guess was right.
    /// In `SealedBlock` `hash` is the log's chained hash, which is no secret.
    static let secrets = Rule(name: "secrets compared in constant time") { file in
        guard guarded.contains(where: { file.path.hasPrefix($0) }) else { return [] }
        let names = file.path.contains("SealedBlock") ? names.subtracting(["hash"]) : names
        let tokens = file.tokens
        return tokens.indices.dropLast(2).compactMap { index in
            guard ["=", "!"].contains(tokens[index].text), tokens[index + 1].text == "=",
                tokens[index + 1].isAttached, index > 0
            else { return nil }
            let sides = [tokens[index - 1].text, tokens[index + 2].text]
            guard sides.contains(where: names.contains), !sides.contains("nil") else { return nil }
            return file.violation(
                tokens[index].line, "compare “\(sides[0])” with constantTimeEqual")
        }
    }
}
