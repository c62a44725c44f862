package import MartletModel
package import SQLiteKit

extension [RecordTable] {
    /// Reads the records of a type for conditions of policies, each as its key and the attributes in
    /// the schema's order. It leaves out rows that no wire carries.
    /// - Parameters:
    ///   - type: The position of the type.
    ///   - column: The position of a column: 0 is the key, and the attributes follow.
    ///   - values: The column has one of these values, by its collation; nil for all records.
    /// - Throws: `SQLiteError` if the database cannot be read.
    package func ruleRows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(SQLiteError) -> [[Value]] {
        let table = self[type]
        var rows: [[Value]] = []
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
