/// Comparisons with a value.
extension ColumnExpression {
    /// Compares for equality. Null equals null.
    public static func == (left: Self, right: Value) -> Condition {
        left.compared(right.sqlValue.isNull ? "IS" : "=", right)
    }

    /// Compares for inequality. Null differs from every value.
    public static func != (left: Self, right: Value) -> Condition {
        left.compared("IS NOT", right)
    }

    /// Is met if the left side is less. It is not met if one side is null.
    public static func < (left: Self, right: Value) -> Condition { left.compared("<", right) }
    /// Is met if the left side is less or equal. It is not met if one side is null.
    public static func <= (left: Self, right: Value) -> Condition { left.compared("<=", right) }
    /// Is met if the left side is greater. It is not met if one side is null.
    public static func > (left: Self, right: Value) -> Condition { left.compared(">", right) }
    /// Is met if the left side is greater or equal. It is not met if one side is null.
    public static func >= (left: Self, right: Value) -> Condition { left.compared(">=", right) }

    /// Is met if the value is null, as in columns that a left join leaves empty. A column of an
    /// optional type can also be compared with nil.
    public var isNull: Condition { Condition("(" + fragment + " IS NULL)") }

    /// Is met if the value lies between two values or equals one of them. Null does not meet it.
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
    /// Is met if the value lies within the range.
    public func `in`(_ range: ClosedRange<Value>) -> Condition {
        between(range.lowerBound, and: range.upperBound)
    }

    /// Is met if the value lies within the range, without its end.
    public func `in`(_ range: Range<Value>) -> Condition {
        self >= range.lowerBound && self < range.upperBound
    }
}

// MARK: - Lists

extension ColumnExpression {
    /// Is met if the value is one of these values. If nil is among them, null meets it. No row
    /// meets an empty list.
    ///
    /// A long list is bound as one value, so that few prepared statements serve lists of every
    /// length. A list with binary data or infinities can have at most 16,384 values.
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

    /// Returns a list of parameters. Its length is a power of two, filled up with the last value,
    /// so that lists take few places in the statement cache.
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
    /// Compares for equality. Null equals null.
    public static func == (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared(isOptional ? "IS" : "=", with: right)
    }

    /// Compares for equality. It is not met if the optional side is null.
    public static func == <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Other.Value == Value? {
        left.compared("=", with: right)
    }

    /// Compares for equality. It is not met if the optional side is null.
    public static func == <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Value == Other.Value? {
        left.compared("=", with: right)
    }

    /// Compares for inequality. Null differs from every value.
    public static func != (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared("IS NOT", with: right)
    }

    /// Compares for inequality. Null differs from every value.
    public static func != <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Other.Value == Value? {
        left.compared("IS NOT", with: right)
    }

    /// Compares for inequality. Null differs from every value.
    public static func != <Other: ColumnExpression>(left: Self, right: Other) -> Condition
    where Value == Other.Value? {
        left.compared("IS NOT", with: right)
    }

    /// Is met if the left side is less. It is not met if one side is null.
    public static func < (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared("<", with: right)
    }

    /// Is met if the left side is less or equal. It is not met if one side is null.
    public static func <= (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared("<=", with: right)
    }

    /// Is met if the left side is greater. It is not met if one side is null.
    public static func > (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared(">", with: right)
    }

    /// Is met if the left side is greater or equal. It is not met if one side is null.
    public static func >= (left: Self, right: some ColumnExpression<Value>) -> Condition {
        left.compared(">=", with: right)
    }

    private static var isOptional: Bool { Value.self is any AnyOptional.Type }

    private func compared(_ sign: String, with other: some ColumnExpression) -> Condition {
        Condition("(" + fragment + " \(sign) " + other.fragment + ")")
    }
}

/// A marker of optional types.
protocol AnyOptional {}
extension Optional: AnyOptional {}
