import MartletModel

/// Says which columns PostgreSQL compares in another way than a rules file does, and what to do about it.
enum ComparisonFault {
    static func compared(_ type: String) -> (words: String, remedy: String) {
        (
            "it compares or converts a value of the type \(type), which would not have the same "
                + "meaning in Martlet",
            "use only IS NULL of it, or keep a date, a number or a text"
        )
    }

    static func equal(in collation: String) -> (words: String, remedy: String) {
        (
            "texts that differ are equal in the collation \(collation)",
            "give the column another collation"
        )
    }

    /// Returns the meaning of a column's values when the policies of a rules file compare them.
    static func meaning(of column: CatalogueColumn, _ type: ResolvedType) -> ColumnMeaning {
        switch type.form {
        case .boolean, .integer, .double, .numeric, .binary: return .plain
        case .uuid: return .uuid(isCanonical: true)
        case .date: return .date
        case .enumeration(let labels): return .enumeration(labels)
        case .text where !type.isPadded:
            guard !column.isDeterministic else { return .plain }
            let (words, remedy) = equal(in: "of “\(column.name)”")
            return .incomparable(words: words, remedy: remedy)
        case .text, .real, .time, .timestamp, .timestamptz, .json, .jsonb, .array:
            let (words, remedy) = compared(column.declaration)
            return .incomparable(words: words, remedy: remedy)
        }
    }
}
