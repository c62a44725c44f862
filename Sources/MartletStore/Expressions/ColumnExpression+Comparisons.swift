/// Comparing with a value.
extension ColumnExpression {
    /// Equal; null equals null.
    public static func == (left: Self, right: Value) -> Condition {
        left.compared(right.sqlValue.isNull ? "IS" : "=", right)
    }

    /// Not equal; null differs from every value.
    public static func != (left: Self, right: Value) -> Condition {
        left.compared("IS NOT", right)
    }

    /// Less; not met where one side is null.
    public static func < (left: Self, right: Value) -> Condition { left.compared("<", right) }
    /// Less or equal; not met where one side is null.
    public static func <= (left: Self, right: Value) -> Condition { left.compared("<=", right) }
    /// Greater; not met where one side is null.
    public static func > (left: Self, right: Value) -> Condition { left.compared(">", right) }
    /// Greater or equal; not met where one side is null.
    public static func >= (left: Self, right: Value) -> Condition { left.compared(">=", right) }

    /// Whether it is null: for columns that a left join leaves empty. A column of an optional type
    /// is also compared with nil.
    public var isNull: Condition { Condition("(" + fragment + " IS NULL)") }

    /// From one value to another, both included; not met by null.
    public func between(_ lower: Value, and upper: Value) -> Condition {
        Condition(
            "(" + fragment + " BETWEEN " + bound(lower.sqlValue) + " AND " + bound(upper.sqlValue)
                + ")")
    }

    private func compared(_ sign: String, _ value: Value) -> Condition {
        Condition("(" + fragment + " \(sign) " + bound(value.sqlValue) + ")")
    }

    func bound(_ value: SQLValue) -> SQLFragment { SQLFragment(value: value, for: column) }
}

extension ColumnExpression where Value: Comparable {
    /// Within a range.
    public func `in`(_ range: ClosedRange<Value>) -> Condition {
        between(range.lowerBound, and: range.upperBound)
    }

    /// Within a range, its end left out.
    public func `in`(_ range: Range<Value>) -> Condition {
        self >= range.lowerBound && self < range.upperBound
    }
}

// MARK: - Lists

extension ColumnExpression {
    /// One of these values; a nil among them is met by null. No row meets an empty list.
    ///
    /// A long list is bound as one value, so that lists of any length are one statement; of binary
    /// values at most 16,384.
    public func `in`(_ values: some Sequence<Value>) -> Condition {
        let all = values.map(\.sqlValue)
        let present = all.filter { !$0.isNull }
        let isNullIn = present.count < all.count
        guard let first = present.first else { return isNullIn ? isNull : .never }
        let list: SQLFragment
        if present.count == 1 {
            list = bound(first)
        } else if present.count > Self.longestWrittenList,
            present.allSatisfy(JSONList.canHold)
        {
            list =
                "SELECT value FROM json_each(" + SQLFragment(list: present, for: column) + ")"
        } else {
            list = slots(present)
        }
        let found = Condition("(" + fragment + " IN (" + list + "))")
        return isNullIn ? found || isNull : found
    }

    /// Filled up to a power of two with the last value, so that few lengths of list fill the
    /// statement cache.
    private func slots(_ values: [SQLValue]) -> SQLFragment {
        var length = 2
        while length < values.count { length *= 2 }
        let filled = (0..<length).map { values[Swift.min($0, values.count - 1)] }
        return filled.map(bound).joined(separator: ", ")
    }

    private static var longestWrittenList: Int { 8 }
}

// MARK: - Column against column

extension ColumnExpression {
    /// Equal; null equals null.
    public static func == (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared(isOptional ? "IS" : "=", with: right)
    }

    /// Equal; not met where the optional side is null.
    public static func == <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Other.Value == Value? {
        left.compared("=", with: right)
    }

    /// Equal; not met where the optional side is null.
    public static func == <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Value == Other.Value? {
        left.compared("=", with: right)
    }

    /// Not equal; null differs from every value.
    public static func != (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared("IS NOT", with: right)
    }

    /// Not equal; null differs from every value.
    public static func != <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Other.Value == Value? {
        left.compared("IS NOT", with: right)
    }

    /// Not equal; null differs from every value.
    public static func != <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Value == Other.Value? {
        left.compared("IS NOT", with: right)
    }

    /// Less; not met where one side is null.
    public static func < (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared("<", with: right)
    }

    /// Less or equal; not met where one side is null.
    public static func <= (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared("<=", with: right)
    }

    /// Greater; not met where one side is null.
    public static func > (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared(">", with: right)
    }

    /// Greater or equal; not met where one side is null.
    public static func >= (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared(">=", with: right)
    }

    private static var isOptional: Bool { Value.self is any AnyOptional.Type }

    private func compared(_ sign: String, with other: some ColumnExpression) -> Condition {
        Condition("(" + fragment + " \(sign) " + other.fragment + ")")
    }
}

/// Tells optionals from other types.
protocol AnyOptional {}
extension Optional: AnyOptional {}
