import MartletModel
import MartletProtocol
import SQLiteRecords

/// Infers a schema from CSV files, for data that has none.
///
/// The column `id`, in letters of either case, is the key. A column `NAME_id` is a reference to
/// another file if all its values are ids there. The name of that file is NAME or its plural, and
/// leading words may be left out (`birth_country_id` → `countries`). A column of integers of at
/// most 64 bits is INTEGER. A column of numbers that a 64-bit floating-point number holds without
/// losing a digit is REAL. Any other column is TEXT. All columns except the key may be null.
package struct SchemaInference: Sendable {
    /// The table of one file.
    package struct Table: Hashable, Sendable {
        package let name: String
        package let recordCount: Int
        /// The key column, as the file spells it.
        package let key: String
        /// The columns except the key, with the inferred content.
        package let columns: [Column]
    }

    /// A column.
    package struct Column: Hashable, Sendable {
        package let name: String
        /// The declared type: INTEGER, REAL or TEXT.
        package let kind: String
        /// The table that the column refers to; nil for none.
        package let target: String?
        /// A table that the column seems to refer to by its name, although some values are no ids
        /// there; nil for none.
        package let refused: String?
    }

    package let tables: [Table]

    /// Reads the files twice, and infers the schema.
    /// - Throws: `CSVFault` for a file that is not CSV; `TransferError` if the wire reserves the
    ///   name of a table or a column.
    package init(_ files: [CSVFile]) throws {
        let surveys = try files.map { try TableSurvey($0) }
        let ids = Dictionary(
            surveys.map { ($0.name, $0.ids) }, uniquingKeysWith: { first, _ in first })
        tables = try zip(files, surveys).map { file, survey in
            let guesses = survey.columns.map { Self.target(of: $0.name, among: Set(ids.keys)) }
            let broken = try survey.brokenReferences(file, guesses: guesses, ids: ids)
            let columns = zip(survey.columns, guesses).enumerated().map { index, pair in
                let (column, guess) = pair
                let holds = guess != nil && !broken.contains(index) && column.kind != .text
                return Column(
                    name: column.name, kind: column.kind.declaredType, target: holds ? guess : nil,
                    refused: holds ? nil : guess)
            }
            return Table(
                name: survey.name, recordCount: survey.recordCount, key: survey.key,
                columns: columns)
        }
    }

    /// The schema as SQL DDL, with the tables in the order of their names. Every reference has an
    /// index, so that deleting its target does not read the whole table.
    package var script: String {
        tables.map { table in
            let key = table.key == "id" ? "id" : SQLName.quoted(table.key)
            var lines = ["    \(key) INTEGER PRIMARY KEY"]
            lines += table.columns.map { column in
                let reference =
                    column.target.map { " REFERENCES \(SQLName.quoted($0))(id)" } ?? ""
                return "    \(SQLName.quoted(column.name)) \(column.kind)\(reference)"
            }
            let name = SQLName.quoted(table.name)
            let indexes = table.columns.filter { $0.target != nil }.map { column in
                let index = SQLName.quoted("\(table.name)_by_\(column.name)")
                return "CREATE INDEX \(index) ON \(name)(\(SQLName.quoted(column.name)));\n"
            }
            return "CREATE TABLE \(name) (\n" + lines.joined(separator: ",\n") + "\n);\n"
                + indexes.joined()
        }.joined()
    }

    /// Returns the table that a column's name means; nil if there is none.
    static func target(of column: String, among tables: Set<String>) -> String? {
        guard column.hasSuffix("_id") else { return nil }
        var words = column.dropLast(3).split(separator: "_")
        while !words.isEmpty {
            let name = words.joined(separator: "_")
            if let match = plurals(of: name).first(where: tables.contains) { return match }
            words.removeFirst()
        }
        return nil
    }

    /// Returns a name and its possible plurals. In a name of several words, any of them may have
    /// the plural form.
    private static func plurals(of name: String) -> [String] {
        var forms = [name, name + "s", name + "es"]
        if name.hasSuffix("y") { forms.append(name.dropLast() + "ies") }
        let words = name.split(separator: "_")
        if words.count > 1, let first = words.first {
            let rest = words.dropFirst().joined(separator: "_")
            forms += [first + "s", first + "es"].map { $0 + "_" + rest }
        }
        return forms
    }
}

/// The results of one reading of a file.
private struct TableSurvey {
    enum Kind {
        case integer
        /// An integer that no floating-point number holds exactly, so that its column cannot be
        /// REAL.
        case longInteger
        case real
        case text

        /// The declared type in SQL.
        var declaredType: String {
            switch self {
            case .integer, .longInteger: "INTEGER"
            case .real: "REAL"
            case .text: "TEXT"
            }
        }
    }

    struct Column {
        let name: String
        var kind: Kind?
    }

    let name: String
    let key: String
    private(set) var recordCount = 0
    private(set) var ids: Set<String> = []
    /// The columns except the key.
    let columns: [(name: String, kind: Kind)]

    init(_ file: CSVFile) throws {
        name = file.type
        var reader = try file.open()
        guard let header = try reader.next() else {
            throw CSVFault(
                file: reader.file, line: 1,
                message: "the file is empty; its first line names the columns")
        }
        try Self.checkNames(file, header.map(\.text))
        var kinds = [Kind?](repeating: nil, count: header.count)
        let key = Self.keyIndex(header)
        self.key = key.map { header[$0].text } ?? "id"
        while let record = try reader.next() {
            recordCount += 1
            for (index, field) in record.enumerated() {
                if index == key {
                    guard ids.insert(field.text).inserted else {
                        throw CSVFault(
                            file: reader.file, line: reader.line, column: self.key,
                            message: "another record has this id; ids are unique within a file")
                    }
                } else if !field.isNull {
                    kinds[index] = Self.wider(kinds[index], Self.kind(field.text))
                }
            }
        }
        columns = header.indices.filter { $0 != key }.map { (header[$0].text, kinds[$0] ?? .text) }
    }

    private static func keyIndex(_ header: [CSVField]) -> Int? {
        header.firstIndex { SQLName.folded($0.text) == "id" }
    }

    private static func checkNames(_ file: CSVFile, _ names: [String]) throws {
        guard !ReservedWords.types.contains(file.type) else {
            throw TransferError(
                "No type can be called \(file.type), a word of the wire; rename the file.")
        }
        var seen: Set<String> = []
        if let name = names.first(where: { !seen.insert(SQLName.folded($0)).inserted }) {
            throw CSVFault(
                file: file.name, line: 1, column: name,
                message:
                    "the column is there twice, as the case of letters does not count; rename one")
        }
        if let word = names.first(where: {
            ReservedWords.attributes.contains($0) || $0.hasPrefix(ReservedWords.prefix)
        }) {
            throw CSVFault(
                file: file.name, line: 1, column: word,
                message: "no attribute can have this name, a word of the wire; rename the column")
        }
    }

    private static func wider(_ one: Kind?, _ other: Kind) -> Kind {
        guard let one, one != other else { return other }
        switch (one, other) {
        case (.integer, .longInteger), (.longInteger, .integer): return .longInteger
        case (.integer, .real), (.real, .integer): return .real
        default: return .text
        }
    }

    private static func kind(_ text: String) -> Kind {
        // A number would lose a leading zero or plus sign, for example of a postal code or a phone
        // number.
        if let number = Int64(text), String(number) == text {
            return DecimalText.isExact(text) ? .integer : .longInteger
        }
        guard isDecimal(text), DecimalText.isExact(text),
            !(text.hasPrefix("0") && !text.hasPrefix("0.")),
            !text.hasPrefix("-0") || text.contains(".")
        else { return .text }
        return .real
    }

    /// Returns whether a text is digits with at most one point, and at most a minus before them.
    private static func isDecimal(_ text: String) -> Bool {
        let digits = text.utf8.dropFirst(text.hasPrefix("-") ? 1 : 0)
        let points = digits.count { $0 == UInt8(ascii: ".") }
        return digits.count > points && points <= 1
            && digits.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: ".") }
    }

    /// Returns the columns of which some value is no id of the guessed table.
    func brokenReferences(
        _ file: CSVFile, guesses: [String?], ids: [String: Set<String>]
    ) throws -> Set<Int> {
        guard guesses.contains(where: { $0 != nil }) else { return [] }
        var reader = try file.open()
        guard let header = try reader.next() else { return [] }
        let key = Self.keyIndex(header)
        let positions = header.indices.filter { $0 != key }
        var broken: Set<Int> = []
        while let record = try reader.next() {
            for (index, position) in positions.enumerated() {
                guard let guess = guesses[index], !record[position].isNull,
                    !broken.contains(index)
                else { continue }
                if !(ids[guess]?.contains(record[position].text) ?? false) { broken.insert(index) }
            }
        }
        return broken
    }
}
