extension Table where Element: Sendable {
    /// Observes one record: nil while there is none with the key. Only changes to that record
    /// matter. A temporary id finds its record for ever, also while it becomes permanent.
    /// - Parameters:
    ///   - key: The value of the key column.
    ///   - database: Where the table is.
    public func observe(
        _ key: some ColumnValue, in database: any DatabaseAccess
    ) -> DatabaseObservation<Element?> {
        let key = key.sqlValue
        return database.observe { context in try self.find(key, in: context) }
    }

    /// Observes the records that meet a condition.
    /// - Parameters:
    ///   - condition: What they must meet; nil for all.
    ///   - ordering: What they are ordered by; none leaves the order to SQLite.
    ///   - limit: At most so many.
    ///   - database: Where the table is.
    public func observe(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        in database: any DatabaseAccess
    ) -> DatabaseObservation<[Element]> {
        database.observe { context in
            try self.all(where: condition, orderBy: ordering, limit: limit, in: context)
        }
    }
}

extension Table {
    /// Observes the number of records that meet a condition; numbers equal to the one before are
    /// left out.
    public func observeCount(
        where condition: Condition? = nil, in database: any DatabaseAccess
    ) -> DatabaseObservation<Int> {
        database.observe { context in try self.count(where: condition, in: context) }
            .removeDuplicates()
    }
}
