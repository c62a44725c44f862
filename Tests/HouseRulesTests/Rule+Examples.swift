extension Rule {
    /// The types that app developers and operators meet first.
    static let exemplified: Set = [
        // A device.
        "MartletClient", "ClientOptions", "PullPolicy", "Seeding", "SyncError", "ParkedSet",
        "Receipt", "CheckReport", "EntityHandler",
        // Its database.
        "DatabaseAccess", "DatabasePool", "ReadContext", "WriteContext", "WriteHooks", "StoreError",
        "Record", "Table", "PlainTable", "DataCenter", "LargeWrite", "Value", "RecordID",
        "Query", "Column", "Condition", "Ordering", "FullTextTable", "FullTextPattern",
        "DatabaseObservation", "ObservedValue", "DatabaseChange", "Draft",
        "Migrations", "Migration", "MigrationContext",
        "Settings", "SettingKey", "SecretStore", "FileStore",
        // A server, and tests.
        "MartletServer", "ServerConfiguration", "TokenStore",
        "Simulation", "SimulatedWorld", "SimulatedDevice", "MockServer",
    ]

    static let examples = Rule(name: "a main public type has an example") { file in
        guard file.target != nil else { return [] }
        return exemplifiedTypes(of: file).compactMap { name, line in
            let comment = comment(of: file, above: line).reversed()
            guard let fault = exampleFault(comment.map { $0.drop { $0 == " " } }) else {
                return nil
            }
            return file.violation(line, "\(name) \(fault)")
        }
    }

    /// Returns the main types that a file declares in no other type, each with the line of its declaration.
    static func exemplifiedTypes(of file: SourceFile) -> [(name: String, line: Int)] {
        var depth = 0
        var found: [(name: String, line: Int)] = []
        for (index, token) in file.tokens.enumerated() {
            switch token.text {
            case "{": depth += 1
            case "}": depth -= 1
            case "public" where depth == 0:
                guard let kind = declaration(file.tokens, after: index),
                    file.tokens[kind].text != "func", kind + 1 < file.tokens.count,
                    exemplified.contains(file.tokens[kind + 1].text)
                else { continue }
                found.append((file.tokens[kind + 1].text, token.line))
            default: break
            }
        }
        return found
    }

    /// Returns what a doc comment lacks; nil if one of its ```swift blocks has code and an end.
    private static func exampleFault(_ comment: [Substring]) -> String? {
        guard let start = comment.firstIndex(of: "/// ```swift") else { return "has no example" }
        let rest = comment[(start + 1)...]
        guard let end = rest.firstIndex(of: "/// ```") else { return "has an example without end" }
        return end == start + 1 ? "has an empty example" : nil
    }
}
