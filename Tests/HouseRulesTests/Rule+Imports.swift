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
        "MartletProtocol", "MartletModel", "SQLiteKit", "SQLiteRecords", "MartletDevice",
    ]

    static let downwardImports = Rule(name: "imports stand in Package.swift") { file in
        guard file.isSwift, let manifest = try? Manifest.own.get() else { return [] }
        guard let target = manifest.target(of: file)?.name else {
            guard let target = file.target else { return [] }
            return [file.violation(1, "target \(target) is not in Package.swift")]
        }
        return file.imports.compactMap { module, line in
            if House.imports[module] != nil, House.imports[target]?.contains(module) != true {
                return file.violation(line, "Package.swift does not name \(module) for \(target)")
            }
            if module.hasPrefix("Foundation"), withoutFoundation.contains(target) {
                return file.violation(line, "\(target) gets by without \(module)")
            }
            return nil
        }
    }
}
