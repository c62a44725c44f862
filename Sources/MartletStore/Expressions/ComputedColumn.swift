/// A value the database computes for each row or group: an aggregate, a sum, an expression of SQL.
public struct ComputedColumn<Value: ColumnValue>: ColumnExpression {
    public let fragment: SQLFragment
    public let resultName: String?

    /// An expression of one's own, with `?` in place of each value. Names in it are not checked.
    /// - Parameters:
    ///   - sql: The expression.
    ///   - arguments: One value for each `?`.
    ///   - name: The name it has in a query's rows, for records.
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
    /// The number of rows, of each group where the query has groups.
    public static var rowCount: ComputedColumn<Int> {
        ComputedColumn(SQLFragment(sql: "count(*)"))
    }
}

extension ColumnExpression {
    /// The same under a name that a record's property has.
    public func named(_ name: String) -> ComputedColumn<Value> {
        ComputedColumn(fragment, named: name)
    }

    /// The same read as an optional: for columns of a table that a left join may have no row of.
    public var optional: ComputedColumn<Value?> {
        ComputedColumn(fragment, named: resultName)
    }
}

extension ColumnExpression where Value: TextColumnValue {
    /// The same compared and ordered without regard to the case of the letters A to Z.
    public var ignoringCase: ComputedColumn<Value> {
        ComputedColumn("(" + fragment + " COLLATE NOCASE)", named: resultName)
    }
}

extension ColumnExpression {
    /// The value, or another one in place of null.
    public func ifNull<Wrapped>(_ value: Wrapped) -> ComputedColumn<Wrapped>
    where Value == Wrapped? {
        let other = SQLFragment(value: value.sqlValue, for: column)
        return ComputedColumn("ifnull(" + fragment + ", " + other + ")", named: resultName)
    }
}

// MARK: - Computing

extension ColumnExpression where Value: NumericColumnValue {
    /// The sum with a number.
    public static func + (left: Self, right: Value) -> ComputedColumn<Value> {
        left.computed("+", SQLFragment(value: right.sqlValue))
    }

    /// The difference to a number.
    public static func - (left: Self, right: Value) -> ComputedColumn<Value> {
        left.computed("-", SQLFragment(value: right.sqlValue))
    }

    /// The product with a number.
    public static func * (left: Self, right: Value) -> ComputedColumn<Value> {
        left.computed("*", SQLFragment(value: right.sqlValue))
    }

    /// The sum of two columns.
    public static func + (
        left: Self, right: some ColumnExpression<Value>
    ) -> ComputedColumn<Value> {
        left.computed("+", right.fragment)
    }

    /// The difference of two columns.
    public static func - (
        left: Self, right: some ColumnExpression<Value>
    ) -> ComputedColumn<Value> {
        left.computed("-", right.fragment)
    }

    /// The product of two columns.
    public static func * (
        left: Self, right: some ColumnExpression<Value>
    ) -> ComputedColumn<Value> {
        left.computed("*", right.fragment)
    }

    private func computed(_ sign: String, _ right: SQLFragment) -> ComputedColumn<Value> {
        ComputedColumn("(" + fragment + " \(sign) " + right + ")")
    }
}
