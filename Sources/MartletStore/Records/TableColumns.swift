/// The columns a table asks a record for.
public struct TableColumns {
    private let wanted: [ColumnDescription]?
    /// Where records of one type put their values instead of returning them; nil mostly.
    let binder: RecordBinder?

    private init(wanted: [ColumnDescription]?, binder: RecordBinder? = nil) {
        self.wanted = wanted
        self.binder = binder
    }

    init(_ description: TableDescription) {
        self.init(wanted: description.columns.filter { !$0.isGenerated })
    }

    /// The same columns, for records that are bound at once.
    func binding(to binder: RecordBinder) -> TableColumns {
        TableColumns(wanted: wanted, binder: binder)
    }

    /// Everything the record has.
    public static var all: TableColumns { TableColumns(wanted: nil) }

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

@available(*, unavailable)
extension TableColumns: Sendable {}
