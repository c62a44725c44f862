/// Refuses records of a table's own element that hold a name without a column, because that value
/// would be stored nowhere. Records of other types may be spread over several tables, so each table
/// takes the names that it knows.
struct OwnNames {
    /// The table's name in the error.
    let table: String
    /// The names of the columns, including generated ones.
    let columns: [String]
    /// The names whose values other tables take.
    let elsewhere: Set<String>

    /// Checks the names of a record.
    /// - Throws: `StoreError` `.unknown` if a name has no column here and is not stored elsewhere.
    func check(_ record: some Record) throws {
        let all = try record.dictionaryRepresentation(columns: .all, table: table)
        for name in all.names where !columns.contains(name) && !elsewhere.contains(name) {
            throw StoreError(
                .unknown,
                "A record of “\(table)” holds “\(name)”, and the table has no such column; it has"
                    + " \(columns.joined(separator: ", ")). Correct the name, or list it in"
                    + " “storedElsewhere” if another table takes it.")
        }
    }
}
