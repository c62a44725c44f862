import MartletModel
import MartletRules
import MartletServerCore
import SQLiteKit
import SQLiteRecords

extension EmbeddedSession {
    /// Reads rows for conditions of policies; see `ServerStorage.rows`.
    func ruleRows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(SQLiteError) -> [RuleRow] {
        try tables.ruleRows(of: type, where: column, isAmong: values)
    }
}

extension [RecordTable] {
    /// Reads rows for conditions of policies; see `ServerStorage.rows`.
    func ruleRows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(SQLiteError) -> [RuleRow] {
        let table = self[type]
        var rows: [RuleRow] = []
        func add(_ id: RecordID, _ attributes: Attributes) {
            rows.append([id.value] + attributes.values)
        }
        guard let values else {
            try table.visit(where: nil, body: add)
            return rows
        }
        let name = column == 0 ? table.type.key : table.type.attributes[column - 1].name
        for value in values { try table.visit(where: (name, value), body: add) }
        return rows
    }
}
