import Foundation

/// The order of a target's folders, bottom first: a file names types of its own folder and of folders below it only.
/// Files outside any folder stand on top.
struct Floors {
    let order: [String]
    /// The folder of each type that files of other folders can name.
    private var homes: [String: String] = [:]

    /// - Parameter files: The target's files.
    init(_ order: [String], files: [SourceFile]) {
        self.order = order
        for file in files {
            for name in file.declaredTypes where homes[name] == nil {
                homes[name] = Self.folder(of: file)
            }
        }
    }

    /// Returns the folder of a file in its target; nil if it is in none.
    static func folder(of file: SourceFile) -> String? {
        let parts = file.components
        return parts.count > 3 ? String(parts[2]) : nil
    }

    private func floor(_ folder: String?) -> Int {
        folder.flatMap(order.firstIndex) ?? order.count
    }

    /// Returns where a file names a type of a folder above its own.
    func violations(in file: SourceFile) -> [Violation] {
        let own = Self.folder(of: file)
        let hidden = file.ownNames
        return file.tokens.indices.compactMap { index in
            let token = file.tokens[index]
            guard token.isTypeName, index == 0 || file.tokens[index - 1].text != ".",
                let home = homes[token.text], floor(home) > floor(own),
                !hidden.contains(token.text)
            else { return nil }
            return file.violation(
                token.line, "\(own ?? "the target") names \(token.text) of \(home), which is above")
        }
    }

    // MARK: - The orders

    /// Reads the table of ARCHITECTURE.md: a name in backquotes, then the folders.
    static func orders(_ text: String) -> [String: [String]] {
        let row = #/(?m)^\| `(\w+)` \| ([\w, ]+) \|$/#
        return Dictionary(
            text.matches(of: row).map { match in
                (String(match.1), match.2.split(separator: ", ").map(String.init))
            }, uniquingKeysWith: { first, _ in first })
    }

    /// The floors of every target that has folders, by its name.
    static let own = Result {
        let files = try Repository.files().filter { $0.isSwift && $0.target != nil }
        let page = try String(
            contentsOf: Repository.root.appendingPathComponent("ARCHITECTURE.md"), encoding: .utf8)
        let orders = Self.orders(page)
        return Dictionary(grouping: files) { $0.target ?? "" }.compactMapValues { files in
            let folders = Set(files.compactMap(folder))
            guard let target = files.first?.target, !folders.isEmpty else { return nil as Floors? }
            return Floors(orders[target] ?? [], files: files)
        }
    }

    /// Returns what is wrong with the orders, in sentences: a folder that a target's order lacks, or one that is not
    /// there.
    static func faults(_ files: [SourceFile], _ orders: [String: [String]]) -> [String] {
        var folders: [String: Set<String>] = [:]
        for file in files where file.isSwift {
            guard let target = file.target, let folder = folder(of: file) else { continue }
            folders[target, default: []].insert(folder)
        }
        return folders.sorted { $0.key < $1.key }.flatMap { target, found -> [String] in
            guard let order = orders[target] else {
                return ["no order for the folders of \(target)"]
            }
            let listed = Set(order)
            return found.subtracting(listed).sorted().map { "\(target)/\($0) has no place" }
                + listed.subtracting(found).sorted().map { "\(target)/\($0) is not there" }
                + (listed.count == order.count ? [] : ["\(target) names a folder twice"])
        }
    }
}

extension Token {
    fileprivate var isTypeName: Bool {
        text.utf8.first.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) } ?? false
    }
}

extension SourceFile {
    private static let kinds: Set = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    private static let hiding: Set = ["private", "fileprivate"]

    /// The types declared in no other type, apart from those that only this file sees.
    fileprivate var declaredTypes: [String] {
        var depth = 0
        var found: [String] = []
        for (index, token) in tokens.enumerated() {
            switch token.text {
            case "{": depth += 1
            case "}": depth -= 1
            case let kind where depth == 0 && Self.kinds.contains(kind):
                guard index + 1 < tokens.count else { continue }
                let modifiers = tokens[..<index].reversed().prefix { $0.line == token.line }
                if !modifiers.contains(where: { Self.hiding.contains($0.text) }) {
                    found.append(tokens[index + 1].text)
                }
            default: break
            }
        }
        return found
    }

    /// Names that mean something of the file's own: its types, and the parameters of its generic declarations.
    fileprivate var ownNames: Set<String> {
        var names: Set<String> = []
        for (index, token) in tokens.enumerated() where index + 1 < tokens.count {
            if Self.kinds.contains(token.text) || token.text == "associatedtype" {
                names.insert(tokens[index + 1].text)
            }
            if token.text == "func" || Self.kinds.contains(token.text) || token.text == "init" {
                names.formUnion(parameters(after: index))
            }
        }
        return names
    }

    /// The generic parameters of the declaration whose keyword is at `index`.
    private func parameters(after index: Int) -> [String] {
        let opening = tokens[index].text == "init" ? index + 1 : index + 2
        guard opening < tokens.count, tokens[opening].text == "<" else { return [] }
        var names: [String] = []
        var position = opening
        while position + 1 < tokens.count, tokens[position].text != ">" {
            if ["<", ","].contains(tokens[position].text) {
                names.append(tokens[position + 1].text)
            }
            position += 1
        }
        return names
    }
}
