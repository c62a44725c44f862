import MartletModel
import MartletProtocol
import MartletStore
import RandomKit
import SQLiteRecords

/// One save of a person at work: a few records are changed, created or deleted in one change set.
struct DemoEdit {
    struct NothingToDo: Error {}

    let context: WriteContext
    let plan: EditPlan
    var random: SplitMix64

    /// The number of records that all people often edit, so that there are conflicts.
    private static let popular: Int64 = 15

    init(context: WriteContext, plan: EditPlan, random: SplitMix64) {
        self.context = context
        self.plan = plan
        self.random = random
    }

    /// Makes an edit and notes its mark.
    mutating func run(prefix: String) throws -> Bool {
        let count = try context.rows("SELECT ifnull(max(n), 0) + 1 FROM martlet_demo_marks")
        guard case .integer(let number)? = count.first?.values.first else { throw NothingToDo() }
        let mark = "\(prefix)\(number);"
        let made: (type: String, id: RecordID)?
        switch Int.random(in: 0..<100, using: &random) {
        case ..<40: made = try edit(mark, popular: false)
        case ..<55: made = try edit(mark, popular: true)
        case ..<80: made = try make(mark, parent: nil)
        case ..<92: made = try make(mark, parent: try earlier())
        default: made = try replace(mark)
        }
        try context.rows(
            "INSERT INTO martlet_demo_marks(n, mark, type, id) VALUES (?, ?, ?, ?)",
            [
                .integer(number), .text(mark), made.map { .text($0.type) } ?? .null,
                made?.id.sqlValue ?? .null,
            ])
        return true
    }

    // MARK: - What can be done

    /// Writes the mark into a record.
    private mutating func edit(_ mark: String, popular: Bool) throws -> (String, RecordID)? {
        for _ in 0..<20 {
            guard let column = plan.columns.randomElement(using: &random) else { break }
            guard let id = try draw(column.type, column.key, popular: popular) else { continue }
            guard try set(column, id, mark) else { continue }
            return nil
        }
        throw NothingToDo()
    }

    /// Creates a record. If `parent` is given and a type refers to it, the record refers to it.
    private mutating func make(
        _ mark: String, parent: (type: String, id: RecordID)?
    ) throws -> (String, RecordID)? {
        let children = plan.kinds.filter { kind in
            kind.required.contains { filling in
                guard case .reference(_, let target) = filling else { return false }
                return target == parent?.type
            }
        }
        for _ in 0..<20 {
            let kinds = children.isEmpty ? plan.kinds : children
            guard let kind = kinds.randomElement(using: &random) else { break }
            guard let values = try fill(kind, mark, parent: parent) else { continue }
            let id = try context.insert(kind.column.type, values)
            return (kind.column.type, id)
        }
        return try edit(mark, popular: false)
    }

    /// Deletes a record that this device created, and creates another in the same save.
    private mutating func replace(_ mark: String) throws -> (String, RecordID)? {
        if let old = try earlier() {
            try context.delete(old.type, old.id)
            try context.rows(
                "UPDATE martlet_demo_marks SET id = NULL WHERE type = ? AND id = ?",
                [.text(old.type), old.id.sqlValue])
        }
        return try make(mark, parent: nil)
    }

    // MARK: - Drawing

    /// Returns a record that this device created and that still exists; nil if there is none.
    private mutating func earlier() throws -> (type: String, id: RecordID)? {
        let rows = try context.rows(
            """
            SELECT type, id FROM martlet_demo_marks WHERE id IS NOT NULL ORDER BY n DESC LIMIT 8
            """)
        guard let row = rows.randomElement(using: &random),
            case .text(let type) = row.values[0], let id = RecordID(row.values[1])
        else { return nil }
        guard try context.record(type, id) != nil else { return nil }
        return (type, id)
    }

    /// Returns an existing record of a type: the first one at or after a random key.
    private mutating func draw(_ type: String, _ key: String, popular: Bool) throws -> RecordID? {
        let table = quoted(type)
        let column = quoted(key)
        let ends = try context.rows("SELECT min(\(column)), max(\(column)) FROM \(table)")
        guard let smallest = ends.first?.values.first, let greatest = ends.first?.values.last,
            case .integer(let first) = smallest, case .integer(let last) = greatest
        else { return RecordID(ends.first?.values.first ?? .null) }
        // Temporary ids are below zero. All devices know the records with the lowest permanent ids.
        let low = min(popular ? max(first, 1) : first, last)
        let high = popular ? min(last, low + Self.popular) : last
        let wanted = Int64.random(in: low...high, using: &random)
        let rows = try context.rows(
            "SELECT \(column) FROM \(table) WHERE \(column) >= ? ORDER BY \(column) LIMIT 1",
            [.integer(wanted)])
        return rows.first?.values.first.flatMap { RecordID($0) }
    }

    private mutating func fill(
        _ kind: EditPlan.Kind, _ mark: String, parent: (type: String, id: RecordID)?
    ) throws -> RecordValues? {
        var values = RecordValues()
        values[kind.column.attribute] = .text(mark)
        for filling in kind.required {
            switch filling {
            case .mark(let name): values[name] = .text("made with \(mark)")
            case .integer(let name):
                values[name] = .integer(Int64.random(in: 1...100, using: &random))
            case .real(let name):
                values[name] = .real(Double(Int.random(in: 1...100, using: &random)) / 4)
            case .decimal(let name):
                values[name] = .text("\(Int.random(in: 1...100, using: &random)).50")
            case .moment(let name): values[name] = .text("2026-11-21T09:00:00Z")
            case .reference(let name, let target):
                let key = plan.keys[target] ?? "id"
                let own = parent.flatMap { $0.type == target ? $0.id : nil }
                let chosen = try own ?? draw(target, key, popular: false)
                guard let chosen else { return nil }
                values[name] = try context.currentID(target, chosen).sqlValue
            }
        }
        return values
    }

    private func set(_ column: EditPlan.MarkColumn, _ id: RecordID, _ mark: String) throws -> Bool {
        try context.update(
            column.type, id, RecordValues(names: [column.attribute], values: [.text(mark)]))
    }

    private func quoted(_ name: String) -> String { SQLName.quoted(name) }
}
