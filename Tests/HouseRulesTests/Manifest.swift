import Foundation

/// The targets as Package.swift lists them, in its order.
struct Manifest {
    struct Target {
        /// The function that declares it: `system`, `kit`, `code` …
        let kind: String
        let name: String
        /// The targets that it names as imported.
        let imports: [String]
        /// The folder of its files, relative to the repository.
        let folder: String
        /// Folders in it that are not its own.
        let without: [String]
    }

    let targets: [Target]

    /// Reads the calls that declare targets: `kind("Name", "Import", …, in: "Folder", without: ["Folder"])`.
    init(_ text: String) {
        let call =
            #/(?m)^ +(system|kit|code|command|helper|program|suite|safeSuite)\(\s*((?:"[^"]+"(?:,\s*)?)+)(?:in: "([^"]+)"(?:,\s*)?)?(?:without: \[([^\]]*)\])?\),/#
        let quoted = #/"([^"]+)"/#
        targets = text.matches(of: call).map { match in
            let kind = String(match.1)
            let names = match.2.matches(of: quoted).map { String($0.1) }
            let folder =
                switch kind {
                case "helper", "program": "Tests/Support/"
                case "suite", "safeSuite": "Tests/"
                default: "Sources/"
                }
            return Target(
                kind: kind, name: names[0],
                imports: kind == "system" ? [] : Array(names.dropFirst()),
                folder: match.3.map(String.init) ?? folder + names[0],
                without: match.4?.matches(of: quoted).map { String($0.1) } ?? [])
        }
    }

    static let own = Result {
        Manifest(
            try String(
                contentsOf: Repository.root.appendingPathComponent("Package.swift"), encoding: .utf8
            ))
    }

    /// The target that a file belongs to; nil for other files.
    func target(of file: SourceFile) -> Target? {
        targets.first { target in
            file.path.hasPrefix(target.folder + "/")
                && !target.without.contains { file.path.hasPrefix("\(target.folder)/\($0)/") }
        }
    }

    /// What is wrong with the lists, in sentences: a target that names one which does not stand before it, or one
    /// that none of its `files` imports.
    func faults(_ files: [SourceFile]) -> [String] {
        var imported: [String: Set<String>] = [:]
        for file in files where file.isSwift {
            guard let target = target(of: file) else { continue }
            imported[target.name, default: []].formUnion(file.imports.map(\.module))
        }
        var before: Set<String> = []
        var faults: [String] = []
        for target in targets {
            for name in target.imports where !before.contains(name) {
                faults.append("\(target.name) names \(name), which does not stand before it")
            }
            for name in target.imports where !imported[target.name, default: []].contains(name) {
                faults.append("\(target.name) names \(name), which none of its files imports")
            }
            before.insert(target.name)
        }
        return faults
    }
}
