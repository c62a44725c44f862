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
