/// A table of a database. It finds, counts, inserts, updates and deletes the rows of one table, and
/// knows nothing about their purpose.
///
/// A `Record` defines the contents of a row. A `DataCenter` does work across several tables.
///
/// ```swift
/// struct Players: Table {
///     typealias Element = Player
///     let tableName = "players"
///     let name = Column("name", \Player.name)
/// }
/// ```
public protocol Table<Element>: Sendable {
    /// The type of a row, unless the caller asks for another one.
    associatedtype Element: ReadableRecord = RecordValues

    /// The table's name in the database.
    var tableName: String { get }

    /// CREATE statements that create the table and its indexes on first use; nil if a migration or
    /// a schema creates the table.
    var declaration: String? { get }

    /// The columns whose properties a `#Predicate` may use. A table that lists none has none.
    var columns: [any AnyColumn] { get }

    /// The names of `Element` that need no column in this table, because other tables store their
    /// values or a query computes them; none by default. If a record has any other name without a
    /// column, writing it fails.
    var storedElsewhere: Set<String> { get }
}

extension Table {
    public var declaration: String? { nil }
    public var columns: [any AnyColumn] { [] }
    public var storedElsewhere: Set<String> { [] }

    /// Returns the table's columns, key and indexes as they are in the database.
    /// - Throws: `StoreError` `.unknown` if there is no such table.
    public func description(in context: ReadContext) throws -> TableDescription {
        try statements(context).description
    }

    /// Returns the statements and the description of the table.
    func statements(_ context: ReadContext) throws -> TableStatements {
        try context.checkValid()
        return try context.session.tableStatements(tableName, declaration: declaration)
    }
}

/// A table that needs no type of its own.
///
/// ```swift
/// let teams = PlainTable("teams", columns: [Column<String>("name")])
/// let names = try teams.query().fetch(in: context).map { try $0.value("name", as: String.self) }
/// ```
public struct PlainTable<Element: ReadableRecord>: Table {
    public let tableName: String
    public let declaration: String?
    public let columns: [any AnyColumn]
    public let storedElsewhere: Set<String>

    /// Creates a table.
    /// - Parameters:
    ///   - tableName: The table's name in the database.
    ///   - element: The type of a row.
    ///   - declaration: CREATE statements, if the table is to be created on first use.
    ///   - columns: The columns whose properties a `#Predicate` may use.
    ///   - storedElsewhere: The names of the element that need no column in this table.
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
    /// Creates a source for a table in a FROM clause.
    /// - Parameter alias: The table's name in the query; nil for its own name.
    init(_ table: some Table, alias: String? = nil, join: Join? = nil) {
        self.init(
            table: table.tableName, declaration: table.declaration,
            alias: alias ?? table.tableName, join: join)
    }
}
