package import MartletModel
package import SQLiteKit

/// A range of a type's keys as a condition of SQL. Integers are compared by number, texts by their
/// bytes, whatever collation the column has.
package struct KeyRange {
    /// The first key; nil if the range starts at the beginning.
    package let from: RecordID?
    /// The key before which the range ends; nil if it goes to the end.
    package let below: RecordID?

    package init(from: RecordID?, below: RecordID?) {
        self.from = from
        self.below = below
    }

    /// Returns a condition with the bounds as ?8 and ?9, and the order of the keys.
    /// - Parameter key: The column, quoted.
    package func ordered(_ key: String, _ kind: EntityType.KeyKind) -> String {
        // A declared collation would order texts in a way that the other side does not know.
        let key = kind == .text ? "\(key) COLLATE BINARY" : key
        var terms = ["\(key) IS NOT NULL"]
        if from != nil { terms.append("\(key) >= ?8") }
        if below != nil { terms.append("\(key) < ?9") }
        return terms.joined(separator: " AND ") + " ORDER BY \(key)"
    }

    /// Binds the bounds to a statement with `ordered` in it.
    package func bind(to statement: Statement) {
        if let from { statement.bind(8, from) }
        if let below { statement.bind(9, below) }
    }
}
