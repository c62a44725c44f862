/// A value that the database computes for each row or group: an aggregate, a sum, or any other
/// expression of SQL.
public struct ComputedColumn<Value: ColumnValue>: ColumnExpression {
    public let fragment: SQLFragment
    public let resultName: String?

    /// Creates a column from the caller's own SQL. Names in it are not checked.
    /// - Parameters:
    ///   - sql: The expression, with `?` in place of each value.
    ///   - arguments: One value for each `?`.
    ///   - name: The name of the value in a query's rows, for records.
    public init(sql: String, arguments: [SQLValue] = [], named name: String? = nil) {
        fragment = SQLFragment(sql: "(\(sql))", arguments: arguments)
        resultName = name
    }

    init(_ fragment: SQLFragment, named name: String? = nil) {
        self.fragment = fragment
        resultName = name
    }
}

extension ComputedColumn where Value == Int {
    /// The number of rows; in a query with groups, the number in each group.
    public static var rowCount: ComputedColumn<Int> {
        ComputedColumn(SQLFragment(sql: "count(*)"))
    }
}

extension ColumnExpression {
    /// Returns the same expression under a name, such as the name of a record's property.
    public func named(_ name: String) -> ComputedColumn<Value> {
        ComputedColumn(fragment, named: name)
    }

    /// The same expression, read as an optional. Use it for columns of a left join, which may have
    /// no row.
    public var optional: ComputedColumn<Value?> {
        ComputedColumn(fragment, named: resultName)
    }
}

extension ColumnExpression where Value: TextColumnValue {
    /// The same expression, which ignores the case of the letters A to Z in comparisons and orders.
    public var ignoringCase: ComputedColumn<Value> {
        ComputedColumn("(" + fragment + " COLLATE NOCASE)", named: resultName)
    }
}

extension ColumnExpression {
    /// Returns the value, or `value` in place of null.
    public func ifNull<Wrapped>(_ value: Wrapped) -> ComputedColumn<Wrapped>
    where Value == Wrapped? {
        let other = SQLFragment(value: value.sqlValue, for: column)
        return ComputedColumn("ifnull(" + fragment + ", " + other + ")", named: resultName)
    }
}

// MARK: - Computing

extension ColumnExpression where Value: NumericColumnValue {
    /// Returns the sum of the column and a number.
    public static func + (left: Self, right: Value) -> ComputedColumn<Value> {
        left.computed("+", SQLFragment(value: right.sqlValue))
    }

    /// Returns the column minus a number.
    public static func - (left: Self, right: Value) -> ComputedColumn<Value> {
        left.computed("-", SQLFragment(value: right.sqlValue))
    }

    /// Returns the product of the column and a number.
    public static func * (left: Self, right: Value) -> ComputedColumn<Value> {
        left.computed("*", SQLFragment(value: right.sqlValue))
    }

    /// Returns the sum of two columns.
    public static func + (
        left: Self, right: some ColumnExpression<Value>
    ) -> ComputedColumn<Value> {
        left.computed("+", right.fragment)
    }

    /// Returns the left column minus the right one.
    public static func - (
        left: Self, right: some ColumnExpression<Value>
    ) -> ComputedColumn<Value> {
        left.computed("-", right.fragment)
    }

    /// Returns the product of two columns.
    public static func * (
        left: Self, right: some ColumnExpression<Value>
    ) -> ComputedColumn<Value> {
        left.computed("*", right.fragment)
    }

    private func computed(_ sign: String, _ right: SQLFragment) -> ComputedColumn<Value> {
        ComputedColumn("(" + fragment + " \(sign) " + right + ")")
    }
}
