/// One table of a database: what can be done with it, and nothing about what it is done for.
///
/// A table does weak business logic: it finds, counts, inserts, updates and deletes rows of one
/// table. What a row looks like is a `Record`'s affair; work across tables is a `DataCenter`'s.
///
/// ```swift
/// struct Players: Table {
///     typealias Element = Player
///     let tableName = "players"
///     let name = Column("name", \Player.name)
/// }
/// ```
public protocol Table<Element>: Sendable {
    /// What a row is read as unless another type is asked for.
    associatedtype Element: ReadableRecord = RecordValues

    /// The table's name in the database.
    var tableName: String { get }

    /// CREATE statements that make the table and its indexes where it is used and not there yet;
    /// nil for a table that a migration or a schema makes.
    var declaration: String? { get }

    /// The columns whose properties a `#Predicate` may name; none unless the table lists them.
    var columns: [any AnyColumn] { get }

    /// The names of `Element` that this table lacks because other tables take their values or a
    /// query computes them; none by default. Any other name without a column is refused when a
    /// record is written.
    var storedElsewhere: Set<String> { get }
}

extension Table {
    public var declaration: String? { nil }
    public var columns: [any AnyColumn] { [] }
    public var storedElsewhere: Set<String> { [] }

    /// The table's columns, key and indexes as they are in the database.
    /// - Throws: `StoreError` `.unknown` where there is no such table.
    public func description(in context: ReadContext) throws -> TableDescription {
        try statements(context).description
    }

    /// What is known of the table on this connection.
    func statements(_ context: ReadContext) throws -> TableStatements {
        try context.checkValid()
        return try context.session.tableStatements(tableName, declaration: declaration)
    }
}

/// A table that needs no type of its own.
public struct PlainTable<Element: ReadableRecord>: Table {
    public let tableName: String
    public let declaration: String?
    public let columns: [any AnyColumn]
    public let storedElsewhere: Set<String>

    /// - Parameters:
    ///   - tableName: The table's name in the database.
    ///   - element: What a row is read as.
    ///   - declaration: CREATE statements, for a table made on first use.
    ///   - columns: The columns whose properties a `#Predicate` may name.
    ///   - storedElsewhere: The names of the element that other tables take.
    public init(
        _ tableName: String, of element: Element.Type = RecordValues.self,
        declaration: String? = nil, columns: [any AnyColumn] = [],
        storedElsewhere: Set<String> = []
    ) {
        self.tableName = tableName
        self.declaration = declaration
        self.columns = columns
        self.storedElsewhere = storedElsewhere
    }
}

extension QuerySource {
    /// A table in a FROM clause.
    /// - Parameter alias: The name it has in the query; nil for its own.
    init(_ table: some Table, alias: String? = nil, join: Join? = nil) {
        self.init(
            table: table.tableName, declaration: table.declaration,
            alias: alias ?? table.tableName, join: join)
    }
}
