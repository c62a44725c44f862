extension SchemaInference {
    /// The findings for a person to check, a line for each table.
    package var notes: [String] {
        tables.map { table in
            let references = table.columns.compactMap { column in
                column.target.map { "\(column.name) → \($0)" }
            }
            let refused = table.columns.compactMap { column in
                column.refused.map {
                    "\(column.name) looks like \($0), though some values are no ids there"
                }
            }
            let parts =
                ["\(table.recordCount) records", "\(table.columns.count) attributes"]
                + references + refused
            return "\(table.name): " + parts.joined(separator: ", ")
        }
    }
}
