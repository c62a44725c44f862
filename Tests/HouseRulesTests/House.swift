/// Which targets keep which rules. What each may import stands in Package.swift.
enum House {
    /// Modules of the platform that only one kit imports.
    private static let platform = ["SystemKit": "Security"]

    private static let targets = (try? Manifest.own.get())?.targets ?? []
    private static let libraries = Set(targets.filter { $0.kind == "system" }.map(\.name))

    /// Each kit, with the modules that nobody else may import.
    static let kits: [String: Set<String>] = Dictionary(
        uniqueKeysWithValues: targets.filter { $0.kind == "kit" }.map { kit in
            (
                kit.name,
                libraries.intersection(kit.imports).union(platform[kit.name].map { [$0] } ?? [])
            )
        })

    /// All modules of C libraries, and those of the platform that belong to a kit.
    static let cModules = Set(kits.values.flatMap(\.self))

    /// What each target imports, as Package.swift names it.
    static let imports: [String: Set<String>] = Dictionary(
        uniqueKeysWithValues: targets.filter { $0.kind != "system" }.map {
            ($0.name, Set($0.imports))
        })

    /// Targets that take time, randomness and identifiers from their callers and do no input or
    /// output but SQLite's.
    private static let deterministic: Set = [
        "MartletProtocol", "MartletModel", "SQLiteRecords", "MartletServerCore",
        "MartletEmbedded", "MartletStore", "MartletDevice",
    ]

    /// Folders of such targets that are shells all the same: queues, timers and files live there.
    private static let shells = ["Sources/MartletStore/Pool/", "Sources/MartletStore/State/"]

    static func isDeterministic(_ file: SourceFile) -> Bool {
        if shells.contains(where: { file.path.hasPrefix($0) }) { return false }
        return file.target.map { deterministic.contains($0) } ?? false
    }

    static func isKit(_ file: SourceFile) -> Bool {
        file.target.map { kits[$0] != nil } ?? false
    }
}
