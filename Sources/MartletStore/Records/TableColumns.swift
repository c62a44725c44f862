/// The columns a table asks a record for.
public struct TableColumns: Sendable {
    private let wanted: [ColumnDescription]?

    private init(wanted: [ColumnDescription]?) {
        self.wanted = wanted
    }

    init(_ description: TableDescription) {
        wanted = description.columns.filter { !$0.isGenerated }
    }

    /// Everything the record has.
    public static let all = TableColumns(wanted: nil)

    /// The columns as the database describes them; nil when everything is asked for.
    public var descriptions: [ColumnDescription]? { wanted }

    /// Whether a column is asked for.
    /// - Complexity: O(*n*), *n* columns.
    public func contains(_ name: String) -> Bool {
        wanted?.contains { $0.name == name } ?? true
    }

    /// The values asked for.
    public func filter(_ values: RecordValues) -> RecordValues {
        guard let wanted else { return values }
        // Records mostly have just what their table has, in its order.
        if values.count <= wanted.count,
            zip(values.names, wanted).allSatisfy({ $0 == $1.name })
        {
            return values
        }
        var names: [String] = []
        var kept: [SQLValue] = []
        for (name, value) in zip(values.names, values.values) where contains(name) {
            names.append(name)
            kept.append(value)
        }
        return RecordValues(names: names, values: kept)
    }
}
