extension Rule {
    static let cImports = Rule(name: "C modules stay in their kits") { file in
        guard let target = file.target else { return [] }
        let own = House.kits[target] ?? []
        return file.imports.compactMap { module, line in
            guard House.cModules.contains(module), !own.contains(module) else { return nil }
            return file.violation(line, "\(target) imports \(module); only its kit may")
        }
    }

    /// Targets that get by with the standard library.
    private static let withoutFoundation: Set = [
        "MartletProtocol", "MartletCore", "SQLiteKit", "SQLiteRecords",
    ]

    static let downwardImports = Rule(name: "imports point down") { file in
        guard let target = file.target, file.isSwift else { return [] }
        guard let allowed = House.imports[target] else {
            guard !House.cModules.contains(target) else { return [] }
            return [file.violation(1, "target \(target) is not in House.imports; add its arrows")]
        }
        return file.imports.compactMap { module, line in
            if House.imports[module] != nil, !allowed.contains(module) {
                return file.violation(line, "\(target) may not import \(module)")
            }
            if module.hasPrefix("Foundation"), withoutFoundation.contains(target) {
                return file.violation(line, "\(target) gets by without \(module)")
            }
            return nil
        }
    }
}
