import MartletModel
import MartletRules
import MartletServerCore
import PostgresKit

extension DataSetSession {
    /// Reads rows for conditions of policies; see `ServerStorage.rows`. Pending writes are left alone:
    /// they belong to earlier sets, and a savepoint of the present one may be open.
    func ruleRows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(PostgresError) -> [RuleRow] {
        try ruleRows(
            try run([try ruleReading(of: type, where: column, isAmong: values)])[0], of: type)
    }

    /// Returns the statement that reads these rows.
    func ruleReading(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(PostgresError) -> PostgresStatement {
        let form = model.forms[type]
        let found = column == 0 ? form.table.key : form.table.columns[column - 1]
        let held = try values.map { (values) throws(PostgresError) in try holdable(values) }
        return form.reading(where: found, isAmong: held)
    }

    /// Returns the rows of an answer, without those that no device can receive.
    func ruleRows(_ answer: PostgresRows, of type: Int) throws(PostgresError) -> [RuleRow] {
        try model.forms[type].ruleRows(answer)
    }

    /// Returns the values without the texts that the database cannot hold. No row is equal to one.
    private func holdable(_ values: [Value]) throws(PostgresError) -> [Value] {
        let texts = values.compactMap { if case .text(let text) = $0 { text } else { nil } }
        try lookUp(charactersOf: texts)
        return values.filter { value in
            guard case .text(let text) = value else { return true }
            return !text.utf8.contains(0) && canHold(text)
        }
    }
}

extension TableFormat {
    /// Selects the rows whose column has one of the values, or all rows if `values` is nil, or if the
    /// column's type does not compare as the values that devices have of it.
    func reading(where column: PostgresColumn, isAmong values: [Value]?) -> PostgresStatement {
        let all = "SELECT \(all()) FROM \(table.sqlName) AS t"
        guard let values, let compared = column.compared(values) else {
            return PostgresStatement(all)
        }
        return PostgresStatement(
            "\(all) WHERE t.\(column.sqlName) = ANY ($1::\(compared.type)[])",
            [.array(PostgresArray(compared.values))])
    }

    /// Returns the rows of `all`, without those that no device can receive.
    func ruleRows(_ answer: PostgresRows) throws(PostgresError) -> [RuleRow] {
        var rows: [RuleRow] = []
        rows.reserveCapacity(answer.count)
        for row in 0..<answer.count {
            do throws(PostgresError) {
                let id = try id(answer, row, 0)
                rows.append([id.value] + (try attributes(answer, row).values))
            } catch {
                guard error.isUnsendable else { throw error }
            }
        }
        return rows
    }
}

extension PostgresColumn {
    /// Returns the values to which the column is compared, and their type; nil if the column's type
    /// does not compare as they do.
    fileprivate func compared(_ values: [Value]) -> (type: String, values: [PostgresValue])? {
        switch form {
        case .integer:
            let numbers = values.compactMap { value -> PostgresValue? in
                if case .integer(let number) = value { .integer(number) } else { nil }
            }
            return ("bigint", numbers)
        case .text where !declaration.hasPrefix("character(") && !declaration.hasPrefix("bpchar"):
            return ("text", Self.texts(values))
        case .uuid:
            return ("uuid", Self.texts(values.filter(Self.isUUID)))
        default: return nil
        }
    }

    private static func texts(_ values: [Value]) -> [PostgresValue] {
        values.compactMap { value in
            if case .text(let text) = value { .text(text) } else { nil }
        }
    }

    /// Returns whether a text has the form in which PostgreSQL writes a UUID.
    private static func isUUID(_ value: Value) -> Bool {
        guard case .text(let text) = value, text.utf8.count == 36 else { return false }
        return text.utf8.enumerated().allSatisfy { index, byte in
            switch index {
            case 8, 13, 18, 23: byte == UInt8(ascii: "-")
            default:
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
            }
        }
    }
}
