extension Table where Element: Sendable {
    /// Observes one record; the value is nil while no record has the key. Only changes to that
    /// record are relevant. A temporary id always finds its record, also after it became permanent.
    /// - Parameters:
    ///   - key: The value of the key column.
    ///   - database: The database with the table.
    public func observe(
        _ key: some ColumnValue, in database: any DatabaseAccess
    ) -> DatabaseObservation<Element?> {
        let key = key.sqlValue
        return database.observe { context in try self.find(key, in: context) }
    }

    /// Observes the records that meet a condition.
    /// - Parameters:
    ///   - condition: The condition; nil selects all records.
    ///   - ordering: The order; if it is empty, SQLite chooses one.
    ///   - limit: The maximum number of records; nil for no limit.
    ///   - database: The database with the table.
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
    /// Observes the number of records that meet a condition. It leaves out a number that equals the
    /// one before.
    public func observeCount(
        where condition: Condition? = nil, in database: any DatabaseAccess
    ) -> DatabaseObservation<Int> {
        database.observe { context in try self.count(where: condition, in: context) }
            .removeDuplicates()
    }
}
