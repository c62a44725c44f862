import PostgresKit

/// Compares tables with the log if the replication slot did not send everything.
struct LogicalComparison {
    private let connection: PostgresConnection
    private let schema: PostgresSchema
    /// The tables whose rows are compared by transactions, and those whose rows are compared by values.
    private let (byNumber, byValue): (Set<Int64>, Set<Int64>)
    /// The tables that miss at most deletions and new records.
    private let byKey: Set<Int64>
    private let horizon: UInt64

    /// Decides how each table is compared.
    /// - Parameters:
    ///   - owed: The tables whose writes the slot did not send completely.
    ///   - horizon: The transaction before which all others have been read, if all tables must be
    ///     compared; 0 if numbers of transactions mean nothing, because the database is a copy.
    init(
        on connection: PostgresConnection, _ schema: PostgresSchema,
        owed: [LogicalPublication.Line], since horizon: UInt64?
    ) {
        self.connection = connection
        self.schema = schema
        self.horizon = horizon ?? 0
        let all = Set(horizon == nil ? [] : schema.tables.map(\.number))
        byValue =
            horizon == 0 ? all : Set(owed.filter { $0.known != "" }.map(\.table.number))
        byNumber = all.subtracting(byValue)
        byKey = Set(owed.map(\.table.number)).subtracting(byValue).subtracting(byNumber)
    }

    /// Returns the records whose rows differ from the log, and those whose values the log has only
    /// in part. In an open transaction it reads the tables as the transaction sees them.
    func find() throws -> [ValueComparison.Found] {
        guard !byValue.isEmpty else { return [] }
        return try ValueComparison(on: connection, schema).find(.all, in: byValue)
    }

    /// Notes the found records and all other differences, within the open transaction.
    func enter(
        _ found: [ValueComparison.Found]
    ) throws(PostgresError) -> PostgresComparison.Differences {
        let comparison = PostgresComparison(on: connection, schema)
        var all = try comparison.enter(.unread(since: horizon), of: byNumber)
        let others = try comparison.enter(.unknown, of: byValue.union(byKey), also: found)
        all.changed += others.changed
        all.deleted += others.deleted
        return all
    }
}
