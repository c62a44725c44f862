import MartletModel

extension RandomRules {
    static let texts = ["ann", "Ann", "bob", "", "a%b", "é", "a_b", "zoë", "3"]
    static let days = [
        "2026-11-25", "2026-11-26", "2026-11-27", "2026-11-28", "2024-02-29", "2027-01-01",
    ]
    /// Days that a comparison of texts would put in a wrong place.
    static let oddDays = ["infinity", "-infinity", "0044-03-15 BC", "10000-01-01"]
    static let uuids = [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ]

    /// Returns a UUID in one of the forms that PostgreSQL reads.
    static func form(of uuid: String, _ chance: inout Chance) -> String {
        var form = chance.percent(50) ? uuid.uppercased() : uuid
        if chance.percent(40) { form = form.replacing("-", with: "") }
        return chance.percent(30) ? "{\(form)}" : form
    }

    private static let keys = [
        "ann", "k1", "K1", "Kö", "it's", "a b", "3", "x/y", "zoë", "quo\"te", "k%",
    ]

    /// Returns the key with a number from 0 on.
    static func key(_ kind: Kind, _ number: Int) -> Value {
        guard kind == .text else { return .integer(Int64(number + 1)) }
        return .text(number < keys.count ? keys[number] : "key \(number)")
    }

    /// Returns a value that the constraints of a column take; nil if none was found.
    private static func fitting(
        _ column: Column, _ keys: [[Value]], among used: [Value], _ chance: inout Chance
    ) -> Value? {
        if let target = column.target {
            return !column.isRequired && chance.percent(20) ? .null : chance.one(of: keys[target])
        }
        for _ in 0..<6 {
            let value = value(of: column, &chance)
            guard value != .null || !column.isRequired, value != column.excluded else { continue }
            if value == .null || !column.isUnique || !used.contains(value) { return value }
        }
        return column.isRequired ? nil : .null
    }

    /// Returns a row; nil if the constraints let none be made.
    /// - Parameters:
    ///   - keys: The keys of all tables.
    ///   - rows: The former rows of the table.
    static func row(
        _ key: Value, of table: Table, _ keys: [[Value]], after rows: [[Value]],
        _ chance: inout Chance
    ) -> [Value]? {
        var row = [key]
        for (index, column) in table.columns.enumerated() {
            let used = rows.map { $0[index + 1] }
            guard let value = fitting(column, keys, among: used, &chance) else { return nil }
            row.append(value)
        }
        return row
    }

    /// Returns a value that a column may hold, unless its constraints refuse it.
    static func value(of column: Column, _ chance: inout Chance) -> Value {
        if chance.percent(column.isRequired ? 2 : 15) { return .null }
        if column.target != nil { return key(column.kind, chance.number(0..<9)) }
        switch column.kind {
        // Some unique values meet those of hidden records.
        case .integer: return .integer(Int64(chance.number(-2..<(column.isUnique ? 20 : 7))))
        case .text where column.isUnique && chance.percent(60):
            return .text("a\(chance.number(0..<20))")
        case .text: return .text(chance.one(of: texts))
        case .date: return .text(chance.one(of: chance.percent(90) ? days : oddDays))
        case .uuid: return .text(chance.one(of: uuids))
        case .boolean: return .boolean(chance.percent(50))
        case .numeric: return .text(chance.one(of: ["1.50", "-2", "10", "0.0", "3"]))
        case .real: return .real(chance.one(of: [0.5, -2, 1.5, 0, 3, 1e10]))
        case .json: return .text(chance.one(of: ["{\"a\": 1}", "[1,2]", "null", "\"x\"", "1.50"]))
        }
    }

    /// Returns the default of a column.
    static func standard(of kind: Kind) -> Value {
        switch kind {
        case .integer: .integer(3)
        case .text: .text("ann")
        case .date: .text("2026-11-27")
        case .boolean: .boolean(true)
        case .numeric: .text("3")
        case .real: .real(1.5)
        case .json: .text("{}")
        case .uuid: .text(uuids[0])
        }
    }
}
