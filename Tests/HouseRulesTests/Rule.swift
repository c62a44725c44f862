/// What a rule found, and where.
struct Violation: Hashable, CustomStringConvertible {
    let path: String
    let line: Int
    let sentence: String

    var description: String { "\(path):\(line): \(sentence)" }
}

/// One rule of the house: looks at a file and names what breaks it.
struct Rule: Sendable {
    let name: String
    let check: @Sendable (SourceFile) -> [Violation]

    static let all: [Rule] = [
        .fileLength, .functionLength, .nondeterminism, .unsafe, .uncheckedSendable, .cImports,
        .downwardImports, .floors, .forcedTry, .unfinished, .retiredWords, .folderNames,
        .machinePaths,
        .documentation, .throwing, .examples,
        .secrets,
    ]
}

extension SourceFile {
    func violation(_ line: Int, _ sentence: String) -> Violation {
        Violation(path: path, line: line, sentence: sentence)
    }
}
