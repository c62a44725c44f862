import PostgresKit

/// What other programs say to PostgreSQL: statements of every spelling, which may do nothing, or fail.
struct RandomSQL {
    let tables: [LiveTable]
    private let keys: [UInt32: String]

    init(_ tables: [LiveTable]) {
        self.tables = tables.filter { $0.key != nil }
        keys = Dictionary(
            self.tables.map { ($0.oid, $0.key?.type ?? "") },
            uniquingKeysWith: { first, _ in first })
    }

    /// A statement, or a few.
    /// - Parameter isPlain: Whether it is one that a function may run.
    func statement(_ chance: inout Chance, isPlain: Bool = false) -> String {
        guard !tables.isEmpty else { return isPlain ? "NULL" : "SELECT 1" }
        let table = chance.one(of: tables)
        switch chance.number(0..<(isPlain ? 81 : 100)) {
        case 0..<25: return insert(table, &chance)
        case 25..<30: return insert(table, &chance) + conflict(table, &chance)
        case 30..<50: return update(table, &chance)
        case 50..<58: return keyChange(table, &chance)
        case 58..<70: return delete(table, &chance)
        case 70..<76: return several(table, &chance)
        case 76..<81: return merge(table, &chance)
        case 81..<84: return "TRUNCATE \(table.sql)\(chance.percent(50) ? " CASCADE" : "")"
        case 84..<90:
            return
                "SAVEPOINT a; \(update(table, &chance)); ROLLBACK TO a; \(insert(table, &chance)); RELEASE a"
        case 90..<94:
            // Another server's changes, played back: no foreign key is enforced, so no key is removed.
            return
                "SET LOCAL session_replication_role = replica; \(update(table, &chance, free: true)); SET LOCAL session_replication_role = origin"
        case 94..<97:
            return "SELECT * FROM \(table.sql) WHERE \(condition(table, &chance)) FOR UPDATE"
        default:
            return "\(update(table, &chance)); \(delete(table, &chance)); \(insert(table, &chance))"
        }
    }

    /// A lock on a whole table, which may not be had.
    func lock(_ chance: inout Chance) -> String {
        guard !tables.isEmpty else { return "SELECT 1" }
        return "LOCK TABLE \(chance.one(of: tables).sql) IN \(chance.one(of: Self.modes)) MODE"
    }

    private static let modes = [
        "ACCESS EXCLUSIVE", "ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE",
        "SHARE UPDATE EXCLUSIVE", "ROW EXCLUSIVE", "ACCESS SHARE",
    ]

    private func value(_ column: LiveTable.Column, _ chance: inout Chance) -> String {
        RandomValue.value(column, keys: keys, &chance).sql
    }

    private func key(_ table: LiveTable, _ chance: inout Chance) -> String {
        RandomValue.key(table.key?.type ?? "text", &chance).sql
    }

    private func condition(_ table: LiveTable, _ chance: inout Chance) -> String {
        let name = table.key?.quoted ?? ""
        switch chance.number(0..<10) {
        case 0: return "true"
        case 1 where !table.writable.isEmpty:
            return "\(chance.one(of: table.writable).quoted) IS NULL"
        case 2, 3: return "\(name) IN (\(key(table, &chance)), \(key(table, &chance)))"
        case 4:
            return
                "\(name) = (SELECT max(\(name)::text)::\(table.key?.type ?? "text") FROM \(table.sql))"
        default: return "\(name) = \(key(table, &chance))"
        }
    }

    private func insert(_ table: LiveTable, _ chance: inout Chance) -> String {
        var columns: [LiveTable.Column] = []
        let isGiven = table.key?.hasDefault != true || chance.percent(50)
        if isGiven { columns += table.keys }
        for column in table.writable
        where column.isRequired && !column.hasDefault || chance.percent(60) {
            columns.append(column)
        }
        guard !columns.isEmpty else { return "INSERT INTO \(table.sql) DEFAULT VALUES" }
        let rows = (0..<chance.one(of: [1, 1, 1, 3])).map { _ in
            let values = columns.map { $0.isKey ? key(table, &chance) : value($0, &chance) }
            return "(\(values.joined(separator: ", ")))"
        }
        return """
            INSERT INTO \(table.sql) (\(columns.map(\.quoted).joined(separator: ", "))) \
            \(isGiven ? "OVERRIDING SYSTEM VALUE " : "")VALUES \(rows.joined(separator: ", "))
            """
    }

    private func conflict(_ table: LiveTable, _ chance: inout Chance) -> String {
        guard chance.percent(70), let key = table.key else { return " ON CONFLICT DO NOTHING" }
        return " ON CONFLICT (\(key.quoted)) DO UPDATE SET \(assignments(table, &chance))"
    }

    /// - Parameter free: Whether columns that refer to others are left alone.
    private func assignments(
        _ table: LiveTable, _ chance: inout Chance, free: Bool = false
    ) -> String {
        let columns = table.writable.filter { !free || $0.target == nil }.shuffled(using: &chance)
        guard let first = columns.first else {
            return "\(table.key?.quoted ?? "") = \(table.key?.quoted ?? "")"
        }
        let some = chance.percent(30) ? columns.prefix(3) : [first]
        return some.map { "\($0.quoted) = \(value($0, &chance))" }.joined(separator: ", ")
    }

    private func update(
        _ table: LiveTable, _ chance: inout Chance, free: Bool = false
    ) -> String {
        "UPDATE \(table.sql) AS x SET \(assignments(table, &chance, free: free)) WHERE \(condition(table, &chance))"
    }

    private func delete(_ table: LiveTable, _ chance: inout Chance) -> String {
        "DELETE FROM \(table.sql) WHERE \(condition(table, &chance))"
    }

    private func keyChange(_ table: LiveTable, _ chance: inout Chance) -> String {
        let name = table.key?.quoted ?? ""
        guard chance.percent(50) else {
            return
                "UPDATE \(table.sql) SET \(name) = \(key(table, &chance)) WHERE \(name) = \(key(table, &chance))"
        }
        let (one, other) = (key(table, &chance), key(table, &chance))
        return """
            UPDATE \(table.sql) SET \(name) = CASE \(name) WHEN \(one) THEN \(other) ELSE \(one) END \
            WHERE \(name) IN (\(one), \(other))
            """
    }

    /// One statement that writes to several tables.
    private func several(_ table: LiveTable, _ chance: inout Chance) -> String {
        let other = chance.one(of: tables)
        return """
            WITH a AS (\(insert(table, &chance)) RETURNING 1), b AS (\(delete(other, &chance)) RETURNING 1) \
            \(update(chance.one(of: tables), &chance))
            """
    }

    private func merge(_ table: LiveTable, _ chance: inout Chance) -> String {
        let name = table.key?.quoted ?? ""
        let gone = chance.percent(30)
        return """
            MERGE INTO \(table.sql) AS x USING (SELECT \(key(table, &chance)) AS k) AS s ON x.\(name) = s.k \
            WHEN MATCHED THEN \(gone ? "DELETE" : "UPDATE SET \(assignments(table, &chance))") \
            WHEN NOT MATCHED THEN DO NOTHING
            """
    }
}
