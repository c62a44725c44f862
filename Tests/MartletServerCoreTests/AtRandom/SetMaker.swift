import Foundation
import MartletModel
import MartletProtocol
import MartletTesting
import SQLiteKit

/// A value, as it travels and as SQL writes it.
private struct Cell {
    var literal: String
    var value: Value
}

/// A set that a device might send, and what the tables hold once it is carried out.
struct MadeSet {
    fileprivate struct Change {
        enum Verb { case create, update, delete }
        let verb: Verb
        let table: RandomTable
        let id: RecordID
        /// The key as SQL writes it.
        let key: String
        var cells: [String: Cell] = [:]
    }

    fileprivate let schema: RandomSchema
    fileprivate var changes: [Change] = []
    fileprivate(set) var set = ChangeSet()
    fileprivate(set) var words = ""

    /// Whether the outcome stands in the tables: all rows, put into tables that are made anew.
    ///
    /// What docs/schema.md leaves to the server is left out: actions of references, and what it says of
    /// moves under an index of what is computed, and of keys.
    func mustFit(_ rows: ServedFile.Rows, _ file: ServedFile) throws -> Bool {
        guard !isLeftToServer(rows) else { return false }
        let oracle = try Connection(path: ":memory:")
        try oracle.execute("PRAGMA foreign_keys = OFF; \(schema.script)")
        do {
            // What SQL cannot write, such as an infinity, is not foreseen.
            for table in schema.tables {
                for row in rows[table.name] ?? [] { try insert(row.literals, into: table, oracle) }
            }
            guard try oracle.text("PRAGMA foreign_key_check") == nil else { return false }
            try carryOut(rows, on: oracle)
        } catch {
            return false
        }
        guard try oracle.text("PRAGMA foreign_key_check") == nil else { return false }
        // A conflict clause of the declaration may have kept a row out, or taken one away.
        for table in schema.tables {
            let made = changes.reduce(into: 0) { sum, change in
                guard change.table.name == table.name, change.verb != .update else { return }
                sum += change.verb == .create ? 1 : -1
            }
            let count = try oracle.integer("SELECT count(*) FROM \(table.quoted)")
            guard count == Int64((rows[table.name] ?? []).count + made) else { return false }
        }
        return true
    }

    private func insert(_ row: [String], into table: RandomTable, _ oracle: Connection) throws {
        let names = [table.quotedKey] + table.columns.map(\.quoted)
        try oracle.execute(
            """
            INSERT OR ABORT INTO \(table.quoted)(\(names.joined(separator: ", "))) \
            VALUES (\(row.joined(separator: ", ")))
            """)
    }

    private func carryOut(_ rows: ServedFile.Rows, on oracle: Connection) throws {
        var later: [(RandomTable, [String])] = []
        for change in changes {
            let old = rows[change.table.name]?.first { $0.literals[0] == change.key }?.literals
            if change.verb != .create {
                try oracle.execute(
                    """
                    DELETE FROM \(change.table.quoted) \
                    WHERE \(change.table.quotedKey) = \(change.key) COLLATE BINARY
                    """)
            }
            guard change.verb != .delete else { continue }
            let values = change.table.columns.enumerated().map { index, column in
                change.cells[column.name]?.literal ?? old?[index + 1] ?? "NULL"
            }
            later.append((change.table, [change.key] + values))
        }
        for (table, row) in later { try insert(row, into: table, oracle) }
    }

    private func isLeftToServer(_ rows: ServedFile.Rows) -> Bool {
        for change in changes {
            let isReferredTo = schema.tables.contains { other in
                other.columns.contains {
                    schema.tables[$0.target ?? 99, or: nil]?.name == change.table.name
                }
            }
            let isComputed = ["lower(", "ifnull(", "WHERE", "folded"].contains {
                change.table.script.contains($0)
            }
            if isReferredTo, isComputed { return true }
            if change.verb == .create, change.table.isText, isReferredTo,
                schema.script.contains("ON UPDATE SET NULL")
            {
                return true
            }
            // SQLite does not find a record that refers to itself in another case.
            if schema.script.contains("NOCASE"), refersInOtherCase(change) { return true }
            guard change.verb == .delete else { continue }
            if refersTo(change, rows) { return true }
        }
        return false
    }

    private func refersInOtherCase(_ change: Change) -> Bool {
        change.table.columns.contains { column in
            guard column.target != nil, let held = change.cells[column.name]?.literal else {
                return false
            }
            return held != change.key && held.lowercased() == change.key.lowercased()
        }
    }

    /// Whether a row refers to a record that is deleted.
    private func refersTo(_ deletion: Change, _ rows: ServedFile.Rows) -> Bool {
        let key = deletion.key.lowercased()
        return schema.tables.contains { table in
            table.columns.enumerated().contains { index, column in
                guard let target = column.target, schema.tables[target].name == deletion.table.name
                else { return false }
                return (rows[table.name] ?? []).contains {
                    $0.literals[index + 1].lowercased() == key
                } || changes.contains { $0.cells[column.name]?.literal.lowercased() == key }
            }
        }
    }
}

extension Array {
    /// An element, or something else past the end.
    fileprivate subscript(index: Int, or other: Element?) -> Element? {
        indices.contains(index) ? self[index] : other
    }
}

/// Makes sets that are up to date: moves of values between records, records that take the place of deleted
/// ones, edits, new records and deletions, in one or several tables.
struct SetMaker {
    private let schema: RandomSchema
    private var random: SeededRandom
    private var count = 0
    private let values: Connection?

    init(_ schema: RandomSchema, seed: UInt64) {
        self.schema = schema
        random = SeededRandom(seed: seed &* 0x1234_5678_9abc_def1 &+ 5)
        values = try? Connection(path: ":memory:")
    }

    /// - Returns: Nil if there is nothing to write about.
    mutating func make(_ rows: ServedFile.Rows, _ file: ServedFile) -> MadeSet? {
        var made = MadeSet(schema: schema)
        var free: [String: [ServedRow]] = [:]
        for table in schema.tables {
            // Records that devices know as they are, and now and then others that they know.
            let takesUnseen = random.chance(15)
            free[table.name] = (rows[table.name] ?? []).filter { row in
                row.id.map { id in
                    file.holds(id, row, of: table.name)
                        || takesUnseen && file.folded[table.name]?[id] != nil
                } ?? false && row.isWritable
                    && !table.columns.contains { column in
                        // In a set such a reference would be to a new record.
                        guard case .integer(let id)? = row.values[column.name] else { return false }
                        return column.target != nil && id <= 0
                    }
            }.shuffled(using: &random)
        }
        for _ in 0..<random.one(of: [1, 1, 2, 3]) {
            let table = random.one(of: schema.tables)
            var few: [ServedRow] = []
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                if let row = free[table.name]?.popLast() { few.append(row) }
            }
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3 where few.count > 1: move(few, table, &made)
            case 3..<6 where !few.isEmpty: replace(few, table, rows, &made)
            case 6: edit(few, table, rows, &made)
            case 7:
                delete(few, table, &made)
                if random.chance(60) { leadUnder(few, table, &free, &made) }
            case 8:
                // Others that were picked are free again.
                let needed = (few + (free[table.name] ?? [])).filter { isNeeded($0, table, rows) }
                delete(Array(needed.prefix(2)), table, &made)
                free[table.name] = []
            default: create(table, rows, &made)
            }
        }
        guard !made.changes.isEmpty else { return nil }
        let ids = made.changes.map { "\($0.table.name) \($0.key)" }
        guard Set(ids).count == ids.count else { return nil }
        made.set = changeSet(made, file)
        let list = made.changes.map { change in
            "\(change.verb) \(change.table.name) \(change.key) \(change.cells.mapValues(\.literal))"
        }
        made.words += ": " + list.joined(separator: "; ")
        return made
    }

    private func cells(_ row: ServedRow, _ table: RandomTable) -> [String: Cell] {
        var cells: [String: Cell] = [:]
        for (index, column) in table.columns.enumerated() {
            cells[column.name] = Cell(
                literal: row.literals[index + 1], value: row.values[column.name] ?? .null)
        }
        return cells
    }

    /// Values go round between records.
    private mutating func move(_ rows: [ServedRow], _ table: RandomTable, _ made: inout MadeSet) {
        let columns = table.columns.filter { $0.target == nil && random.chance(70) }
        guard !columns.isEmpty else { return }
        made.words += "moves "
        for (index, row) in rows.enumerated() {
            guard let id = row.id else { continue }
            let other = cells(rows[(index + 1) % rows.count], table)
            let names = Set(columns.map(\.name))
            made.changes.append(
                .init(
                    verb: .update, table: table, id: id, key: row.literals[0],
                    cells: other.filter { names.contains($0.key) }))
        }
    }

    /// Deletes records, and makes others with the same values; a text key may differ in its case alone.
    private mutating func replace(
        _ rows: [ServedRow], _ table: RandomTable, _ all: ServedFile.Rows, _ made: inout MadeSet
    ) {
        made.words += "moves by deletion "
        for row in rows {
            guard let id = row.id else { continue }
            made.changes.append(.init(verb: .delete, table: table, id: id, key: row.literals[0]))
            guard random.chance(80) else { continue }
            var cells = cells(row, table)
            for column in table.columns where random.chance(20) {
                cells[column.name] = cell(column, of: table, all)
            }
            var (new, key) = freshKey(table)
            if case .text = id, random.chance(60) {
                let other = inOtherCase(id, row)
                if other.id != id { (new, key) = other }
            }
            let isTaken = (all[table.name] ?? []).contains { $0.literals[0] == key }
            if isTaken { continue }
            made.changes.append(.init(verb: .create, table: table, id: new, key: key, cells: cells))
        }
    }

    /// A text key in the other case, with how SQL writes it; any other key as it is.
    private func inOtherCase(_ id: RecordID, _ row: ServedRow) -> (id: RecordID, key: String) {
        guard case .text(let text) = id else { return (id, row.literals[0]) }
        let other = text == text.uppercased() ? text.lowercased() : text.uppercased()
        if other == text { return (id, row.literals[0]) }
        return (.text(other), "'\(other.replacing("'", with: "''"))'")
    }

    /// Has another record refer to one that the set deletes, perhaps in another case.
    private mutating func leadUnder(
        _ deleted: [ServedRow], _ target: RandomTable, _ free: inout [String: [ServedRow]],
        _ made: inout MadeSet
    ) {
        guard let parent = deleted.first, let id = parent.id else { return }
        for table in schema.tables {
            for column in table.columns {
                guard let tableIndex = column.target, schema.tables[tableIndex].name == target.name,
                    let row = free[table.name]?.popLast(), let child = row.id
                else { continue }
                let held = random.chance(50) ? inOtherCase(id, parent) : (id, parent.literals[0])
                made.words += "leads under "
                made.changes.append(
                    .init(
                        verb: .update, table: table, id: child, key: row.literals[0],
                        cells: [column.name: Cell(literal: held.1, value: held.0.value)]))
            }
        }
    }

    private mutating func edit(
        _ rows: [ServedRow], _ table: RandomTable, _ all: ServedFile.Rows, _ made: inout MadeSet
    ) {
        made.words += "edits "
        for row in rows {
            guard let id = row.id else { continue }
            var cells: [String: Cell] = [:]
            for column in table.columns where random.chance(40) {
                cells[column.name] = cell(column, of: table, all)
            }
            guard !cells.isEmpty else { continue }
            made.changes.append(
                .init(verb: .update, table: table, id: id, key: row.literals[0], cells: cells))
        }
    }

    /// Whether another record refers to a row.
    private func isNeeded(
        _ row: ServedRow, _ table: RandomTable, _ all: ServedFile.Rows
    ) -> Bool {
        schema.tables.contains { other in
            other.columns.enumerated().contains { index, column in
                guard let target = column.target, schema.tables[target].name == table.name else {
                    return false
                }
                return (all[other.name] ?? []).contains {
                    $0.literals[index + 1] == row.literals[0]
                }
            }
        }
    }

    private func delete(_ rows: [ServedRow], _ table: RandomTable, _ made: inout MadeSet) {
        made.words += "deletes "
        for row in rows {
            guard let id = row.id else { continue }
            made.changes.append(.init(verb: .delete, table: table, id: id, key: row.literals[0]))
        }
    }

    private mutating func create(
        _ table: RandomTable, _ all: ServedFile.Rows, _ made: inout MadeSet
    ) {
        made.words += "creates "
        var cells: [String: Cell] = [:]
        for column in table.columns { cells[column.name] = cell(column, of: table, all) }
        let (id, key) = freshKey(table)
        made.changes.append(.init(verb: .create, table: table, id: id, key: key, cells: cells))
    }

    /// A key that no record has, with the one that stands for it in the tables.
    private mutating func freshKey(_ table: RandomTable) -> (RecordID, String) {
        count += 1
        return table.isText
            ? (.text("new\(count)"), "'new\(count)'")
            : (.integer(Int64(-count)), "\(7_000_000_000 + count)")
    }

    /// A new value for a column, of its kind.
    private mutating func cell(
        _ column: RandomColumn, of table: RandomTable, _ all: ServedFile.Rows
    ) -> Cell {
        let kind = table.served.columns.first { $0.name == column.name }?.kind ?? .untyped
        if !column.isRequired, random.chance(15) { return Cell(literal: "NULL", value: .null) }
        if let target = column.target {
            let rows = (all[schema.tables[target].name] ?? []).filter { $0.id != nil }
            guard let row = rows.randomElement(using: &random), let id = row.id else {
                return Cell(literal: "NULL", value: .null)
            }
            let held = random.chance(20) ? inOtherCase(id, row) : (id, row.literals[0])
            return Cell(literal: held.1, value: held.0.value)
        }
        let literal = column.kind.literal(using: &random, odd: 0)
        return Cell(literal: literal, value: value(literal, kind))
    }

    private func value(_ literal: String, _ kind: ServedTable.Kind) -> Value {
        guard let row = try? values?.prepare("SELECT \(literal)"), (try? row.step()) == true else {
            return .null
        }
        switch row.storage(0) {
        case .null: return .null
        case .integer where kind == .boolean: return .boolean(row.integer(0) != 0)
        case .integer where kind == .real: return .real(Double(row.integer(0)))
        case .integer: return .integer(row.integer(0))
        case .real: return .real(row.real(0))
        case .text: return .text(row.text(0))
        case .blob: return .text(Data(row.blob(0)).base64EncodedString())
        }
    }

    private func changeSet(_ made: MadeSet, _ file: ServedFile) -> ChangeSet {
        var set = ChangeSet()
        for table in schema.tables {
            let changes = made.changes.filter { $0.table.name == table.name }
            guard !changes.isEmpty else { continue }
            var type = TypeChanges(name: table.name)
            for change in changes {
                let revision = file.revisions[table.name]?[change.id]
                switch change.verb {
                case .create: type.create.append(change.id)
                case .update: type.update.append(change.id)
                case .delete: type.delete.append(change.id)
                }
                let names = change.cells.keys.sorted()
                let isNew = change.verb == .create
                type.entries.append(
                    RecordEntry(
                        id: change.id, revision: isNew ? nil : revision,
                        attributes: Attributes(
                            names: names, values: names.map { change.cells[$0]?.value ?? .null })))
            }
            set.types.append(type)
        }
        return set
    }
}
