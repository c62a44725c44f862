/// The columns that a table asks a record for.
public struct TableColumns {
    private let wanted: [ColumnDescription]?
    /// The binder that takes the values of `Codable` records, in place of a result; usually nil.
    let binder: RecordBinder?

    private init(wanted: [ColumnDescription]?, binder: RecordBinder? = nil) {
        self.wanted = wanted
        self.binder = binder
    }

    init(_ description: TableDescription) {
        self.init(wanted: description.columns.filter { !$0.isGenerated })
    }

    /// Returns the same columns with a binder, for records that are bound directly.
    func binding(to binder: RecordBinder) -> TableColumns {
        TableColumns(wanted: wanted, binder: binder)
    }

    /// A request for everything that the record has.
    public static var all: TableColumns { TableColumns(wanted: nil) }

    /// The columns as the database describes them; nil if the table asks for everything.
    public var descriptions: [ColumnDescription]? { wanted }

    /// Returns whether the table asks for a column.
    /// - Complexity: O(*n*), *n* columns.
    public func contains(_ name: String) -> Bool {
        wanted?.contains { $0.name == name } ?? true
    }

    /// Returns the values that the table asks for.
    /// - Complexity: O(*v* × *c*), *v* values and *c* columns; O(*v*) if the names are the table's
    ///   columns in order.
    public func filter(_ values: RecordValues) -> RecordValues {
        guard let wanted else { return values }
        // Most records have exactly the columns of their table, in the same order.
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
