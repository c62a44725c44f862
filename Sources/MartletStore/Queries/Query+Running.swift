/// Asking.
extension Query {
    /// All rows.
    /// - Throws: `StoreError`: `.unknown` for a table or column that is not there, `.value` for a
    ///   value that is not of the type asked for.
    public func fetch(in context: ReadContext) throws -> [Output] {
        var found: [Output] = []
        try forEach(in: context) { found.append($0) }
        return found
    }

    /// The first row; nil where there is none.
    public func first(in context: ReadContext) throws -> Output? {
        var copy = self
        copy.statement.limit = Swift.min(1, statement.limit ?? 1)
        return try copy.fetch(in: context).first
    }

    /// The number of rows.
    public func count(in context: ReadContext) throws -> Int {
        try statement.count(in: context)
    }

    /// Whether there is any row.
    public func isEmpty(in context: ReadContext) throws -> Bool {
        var one = statement
        one.orderings = []
        one.standardOrderings = []
        one.limit = Swift.min(1, statement.limit ?? 1)
        var isEmpty = true
        try one.forEachRow(in: context) { _ in isEmpty = false }
        return isEmpty
    }

    /// Hands over one row after the other, so that any number takes the memory of one.
    public func forEach(in context: ReadContext, _ body: (Output) throws -> Void) throws {
        try statement.forEachRow(in: context) { row in try body(try read(row)) }
    }

    /// What SQLite says about how it would run it, a line for each step
    /// (https://sqlite.org/eqp.html).
    public func plan(in context: ReadContext) throws -> [String] {
        let (sql, arguments) = try statement.checked(in: context)
        return try context.queryPlan(sql, arguments)
    }
}

extension Query where Output: Sendable {
    /// All rows, in a read of their own.
    public func fetch(in database: any DatabaseAccess) async throws -> [Output] {
        try await database.read { context in try fetch(in: context) }
    }

    /// The first row, in a read of its own.
    public func first(in database: any DatabaseAccess) async throws -> Output? {
        try await database.read { context in try first(in: context) }
    }

    /// The number of rows, in a read of its own.
    public func count(in database: any DatabaseAccess) async throws -> Int {
        try await database.read { context in try count(in: context) }
    }
}

extension Condition {
    /// Met where a query finds anything. Columns of the tables around it can be used in it; those
    /// both have need `named(_:)`.
    public static func exists<Output>(_ query: Query<Output>) -> Condition {
        let statement = query.statement
        return Condition(
            "EXISTS (" + statement.fragment.enclosed(over: statement.sources) + ")")
    }
}

extension ColumnExpression {
    /// The value is among those that a query finds.
    public func `in`(_ query: Query<Value>) -> Condition {
        let sub = query.statement.fragment.enclosed(over: query.statement.sources)
        return Condition("(" + fragment + " IN (" + sub + "))")
    }
}
