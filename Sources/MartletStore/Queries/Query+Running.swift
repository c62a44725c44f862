/// Methods that run the query.
extension Query {
    /// Returns all rows.
    /// - Throws: `StoreError` `.unknown` if a table or column does not exist, `.value` if a value
    ///   does not have the requested type; any other error of SQLite.
    public func fetch(in context: ReadContext) throws -> [Output] {
        var found: [Output] = []
        try forEach(in: context) { found.append($0) }
        return found
    }

    /// Returns the first row; nil if there is none.
    /// - Throws: The same errors as `fetch`.
    public func first(in context: ReadContext) throws -> Output? {
        var copy = self
        copy.statement.limit = Swift.min(1, statement.limit ?? 1)
        return try copy.fetch(in: context).first
    }

    /// Returns the number of rows.
    /// - Throws: The same errors as `fetch`.
    public func count(in context: ReadContext) throws -> Int {
        try statement.count(in: context)
    }

    /// Returns whether there is no row.
    /// - Throws: The same errors as `fetch`.
    public func isEmpty(in context: ReadContext) throws -> Bool {
        var one = statement
        one.orderings = []
        one.standardOrderings = []
        one.limit = Swift.min(1, statement.limit ?? 1)
        var isEmpty = true
        try one.forEachRow(in: context) { _ in isEmpty = false }
        return isEmpty
    }

    /// Calls `body` with each row. It holds one row in memory at a time.
    /// - Throws: The same errors as `fetch`, and any error of `body`, which ends the query.
    public func forEach(in context: ReadContext, _ body: (Output) throws -> Void) throws {
        try statement.forEachRow(in: context) { row in try body(try read(row)) }
    }

    /// Returns SQLite's plan for the query, with one line for each step
    /// (https://sqlite.org/eqp.html).
    /// - Throws: `StoreError` `.unknown` if a table or column does not exist.
    public func plan(in context: ReadContext) throws -> [String] {
        let (sql, arguments) = try statement.checked(in: context)
        return try context.queryPlan(sql, arguments)
    }
}

extension Query where Output: Sendable {
    /// Returns all rows. It begins a read only for this query.
    /// - Throws: The same errors as `fetch` in a context.
    public func fetch(in database: any DatabaseAccess) async throws -> [Output] {
        try await database.read { context in try fetch(in: context) }
    }

    /// Returns the first row; nil if there is none. It begins a read only for this query.
    /// - Throws: The same errors as `fetch` in a context.
    public func first(in database: any DatabaseAccess) async throws -> Output? {
        try await database.read { context in try first(in: context) }
    }

    /// Returns the number of rows. It begins a read only for this query.
    /// - Throws: The same errors as `fetch` in a context.
    public func count(in database: any DatabaseAccess) async throws -> Int {
        try await database.read { context in try count(in: context) }
    }
}

extension Condition {
    /// Is met if a query finds at least one row. The query can use columns of the tables around it.
    /// If a column's name exists in both, give the tables names with `named(_:)`.
    public static func exists<Output>(_ query: Query<Output>) -> Condition {
        let statement = query.statement
        return Condition(
            "EXISTS (" + statement.fragment.enclosed(over: statement.sources) + ")")
    }
}

extension ColumnExpression {
    /// Is met if the value is among the values that a query finds.
    public func `in`(_ query: Query<Value>) -> Condition {
        let sub = query.statement.fragment.enclosed(over: query.statement.sources)
        return Condition("(" + fragment + " IN (" + sub + "))")
    }
}
