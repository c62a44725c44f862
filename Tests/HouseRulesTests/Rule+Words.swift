extension Rule {
    /// Put together here so that this file does not break its own rule.
    private static let notes = ["TO" + "DO", "FIX" + "ME"]

    static let unfinished = Rule(name: "nothing unfinished") { file in
        file.lines.enumerated().compactMap { index, line in
            guard let note = notes.first(where: { containsWord(line, $0) }) else { return nil }
            return file.violation(index + 1, "“\(note)”: finish it, or open an issue")
        }
    }

    private static func containsWord(_ line: Substring, _ word: String) -> Bool {
        guard let range = line.firstRange(of: word) else { return false }
        let before = line[..<range.lowerBound].utf8.last
        let after = line[range.upperBound...].utf8.first
        return !(before.map(SwiftScanner.isWordByte) ?? false)
            && !(after.map(SwiftScanner.isWordByte) ?? false)
    }

    private static let vagueFolders: Set = [
        "util", "utils", "utility", "utilities", "helper", "helpers", "manager", "managers",
        "common", "misc", "new", "stuff", "extensions",
    ]

    static let folderNames = Rule(name: "folder names") { file in
        file.components.dropLast().compactMap { folder in
            if vagueFolders.contains(folder.lowercased()) {
                return file.violation(1, "folder \(folder): name what is inside")
            }
            if folder.contains(" ") {
                return file.violation(1, "folder “\(folder)” has a space in its name")
            }
            return nil
        }
    }

    private static let ownedPaths = ["/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/", "/wo" + "rk/"]

    static let machinePaths = Rule(name: "no machine's paths") { file in
        file.lines.enumerated().compactMap { index, line in
            for path in ownedPaths {
                guard let range = line.firstRange(of: path) else { continue }
                // The same words inside a longer relative path or an address are not absolute.
                let before = line[..<range.lowerBound].utf8.last
                let isRelative =
                    before.map {
                        SwiftScanner.isWordByte($0) || $0 == UInt8(ascii: ".")
                            || $0 == UInt8(ascii: "}") || $0 == UInt8(ascii: ")")
                    } ?? false
                if !isRelative {
                    return file.violation(index + 1, "an absolute path (\(path)…) of one machine")
                }
            }
            return nil
        }
    }
}
