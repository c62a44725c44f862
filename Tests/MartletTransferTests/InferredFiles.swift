import Foundation
import MartletTesting
import MartletTransfer
import TestFolders

/// Files without declarations, of columns that somebody may have kept in a spreadsheet.
struct InferredFiles {
    let folder: TemporaryFolder
    private(set) var story = ""
    private var odd: OddValues

    private enum Column: CaseIterable {
        case integers, longIntegers, fractions, manyDigits, mixed, dates, texts, flags, codes,
            anything
    }

    private static let words = ["teams", "countries", "grands_prix", "player", "boxes"]

    init(seed: UInt64) throws {
        odd = OddValues(random: SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 11))
        folder = try TemporaryFolder()
        let path = folder.path + "/in"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let names = Self.words.shuffled(using: &odd.random).prefix(odd.random.one(of: [1, 2, 3]))
        var ids: [String: [String]] = [:]
        for name in names {
            let (text, own) = table(ids)
            ids[name] = own
            story += "\(name).csv:\n\(text)\n"
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path)/\(name).csv"))
        }
    }

    /// - Parameter others: The ids of the files so far.
    private mutating func table(_ others: [String: [String]]) -> (text: String, ids: [String]) {
        var taken: Set<String> = ["id", "revision"]
        var columns: [(name: String, kind: Column?)] = []
        let hasID = odd.random.chance(80)
        if hasID { columns.append((odd.random.chance(90) ? "id" : "ID", nil)) }
        for _ in 0..<Int.random(in: 1...4, using: &odd.random) {
            columns.append((odd.name(&taken), odd.random.one(of: Column.allCases)))
        }
        for (name, ids) in others.sorted(by: { $0.key < $1.key })
        where !ids.isEmpty && odd.random.chance(60) {
            let word =
                name.hasSuffix("ies")
                ? name.dropLast(3) + "y" : name.dropLast(name.hasSuffix("s") ? 1 : 0)
            columns.append(("\(word)_id", .codes))
        }
        if odd.random.chance(3), let first = columns.first {
            columns.append((first.name.uppercased(), .texts))
        }
        columns.shuffle(using: &odd.random)
        let ending = odd.random.one(of: ["\n", "\r\n"])
        var ids: [String] = []
        var lines = [columns.map { odd.field($0.name) }.joined(separator: ",")]
        for row in 0..<Int.random(in: 1...6, using: &odd.random) {
            let fields = columns.map { column in
                guard let kind = column.kind else {
                    let id = odd.random.chance(70) ? String(row + 1) : "r\(row)"
                    ids.append(id)
                    return id
                }
                if column.name.hasSuffix("_id"), odd.random.chance(85) {
                    return odd.random.one(of: others.values.flatMap { $0 }.sorted())
                }
                return odd.random.chance(15) ? "" : odd.field(value(kind))
            }
            lines.append(fields.joined(separator: ","))
        }
        let mark = odd.random.chance(10) ? "\u{FEFF}" : ""
        let end = odd.random.chance(80) ? ending : ""
        return (mark + lines.joined(separator: ending) + end, ids)
    }

    private mutating func value(_ kind: Column) -> String {
        switch kind {
        case .integers: String(odd.random.one(of: [0, 1, -1, 12, 1_999, 4_294_967_296]))
        case .longIntegers: String(odd.integer())
        case .fractions: odd.random.one(of: ["0.1", "1.50", "-0.5", "3", "12345.678", "0.000001"])
        case .manyDigits: odd.decimal(digits: 30)
        case .mixed: odd.random.chance(50) ? String(odd.integer()) : odd.decimal(digits: 9)
        case .dates: odd.random.one(of: ["2026-11-24", "24.11.2026", "12:30"])
        case .texts: odd.text()
        case .flags: odd.random.one(of: ["true", "false", "0", "1", "yes"])
        case .codes: odd.random.one(of: ["0123", "7", "A1", "+49 30", "1e3", "00"])
        case .anything: odd.typed()
        }
    }

    // MARK: - Comparing

    /// The records of the files in a folder, without ids: references are what they lead to. Numbers of columns
    /// that are taken for such are told by their digits, however they are written.
    func described(in folder: String, _ inference: SchemaInference) throws -> [String] {
        var rows: [String: [(id: String?, fields: [String: CSVField])]] = [:]
        for file in try CSVFile.find([folder]) {
            var reader = try file.open()
            let names = try reader.next()?.map(\.text) ?? []
            while let record = try reader.next() {
                var fields = Dictionary(zip(names, record), uniquingKeysWith: { first, _ in first })
                let key = inference.tables.first { $0.name == file.type }?.key ?? "id"
                let id = fields.removeValue(forKey: key)?.text
                rows[file.type, default: []].append((id, fields))
            }
        }
        func row(_ table: SchemaInference.Table, _ fields: [String: CSVField], _ depth: Int)
            -> String
        {
            table.columns.map { column in
                guard let field = fields[column.name], !field.isNull else { return "-" }
                guard depth < 4 else { return "…" }
                if let name = column.target,
                    let target = inference.tables.first(where: { $0.name == name }),
                    let found = rows[name]?.first(where: { $0.id == field.text })
                {
                    return "(" + row(target, found.fields, depth + 1) + ")"
                }
                if column.kind == "TEXT" { return OddValues.quoted(field.text) }
                return Self.digits(field.text)
            }.joined(separator: "|")
        }
        return inference.tables.flatMap { table in
            (rows[table.name] ?? []).map { "\(table.name): " + row(table, $0.fields, 0) }
        }.sorted()
    }

    /// A number by its sign, its digits and the position of its point.
    static func digits(_ text: String) -> String {
        let parts = text.lowercased().split(separator: "e", omittingEmptySubsequences: false)
        var exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
        let isNegative = parts[0].hasPrefix("-")
        let number = parts[0].drop { "+-".contains($0) }
        let halves = number.split(separator: ".", omittingEmptySubsequences: false)
        var digits = halves.joined()
        exponent -= halves.count > 1 ? halves[1].count : 0
        while digits.hasSuffix("0") {
            digits.removeLast()
            exponent += 1
        }
        digits = String(digits.drop { $0 == "0" })
        return digits.isEmpty ? "0" : "\(isNegative ? "-" : "")\(digits)e\(exponent)"
    }
}
