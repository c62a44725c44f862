internal import SQLiteRecords

/// Several tables that are read and written as one.
///
/// A large or uneven record can be spread over tables by its columns. Many records can be spread
/// over tables by their kind, or by their key. Callers use the split table like a single table.
///
/// ```swift
/// let people = SplitTable(
///     "people", of: Person.self, key: "id",
///     byColumns: [PlainTable("people_names"), PlainTable("people_photos")])
/// ```
///
/// A table of a synchronised schema can be a part if its keys are texts. The server assigns integer
/// keys for each table separately.
public struct SplitTable<Element: ReadableRecord>: Sendable {
    /// The common name of the tables, in queries and errors.
    public let name: String
    /// The key column, which every part has as its primary key.
    public let key: String
    let parts: [PlainTable<RecordValues>]
    let rule: Rule
    /// The names of `Element` that need no column in any part; see `Table.storedElsewhere`.
    public var storedElsewhere: Set<String> = []

    /// The rule by which a record, or a piece of it, belongs to a part.
    enum Rule: Sendable {
        case columns
        case kind(column: String, kinds: [SQLValue])
        case modulo
    }

    private init(_ name: String, _ key: String, _ parts: [any Table], _ rule: Rule) {
        precondition(!parts.isEmpty, "a split table has at least one part")
        self.name = name
        self.key = key
        self.parts = parts.map { PlainTable($0.tableName, declaration: $0.declaration) }
        self.rule = rule
    }

    /// Creates a table that is split by columns. Each part has the key and some columns of the
    /// records. The first part has a row for every record. Each other part has rows only for
    /// records with values for it.
    /// - Parameters:
    ///   - name: The common name of the tables.
    ///   - element: The type of a record.
    ///   - key: The key column.
    ///   - parts: The tables. Each asks the record for its own columns.
    public init(
        _ name: String, of element: Element.Type = Element.self, key: String,
        byColumns parts: [any Table]
    ) {
        self.init(name, key, parts, .columns)
    }

    /// Creates a table that is split by kind. Each part has the records of one kind. A record whose
    /// kind changes moves to another part.
    /// - Parameters:
    ///   - name: The common name of the tables.
    ///   - element: The type of a record.
    ///   - key: The key column. A key is in only one part.
    ///   - column: The column that holds a record's kind.
    ///   - parts: The kinds and their tables, which have the same columns in the same order.
    public init<Kind: ColumnValue>(
        _ name: String, of element: Element.Type = Element.self, key: String,
        byKind column: Column<Kind>, parts: [(kind: Kind, table: any Table)]
    ) {
        self.init(
            name, key, parts.map(\.table),
            .kind(column: column.name, kinds: parts.map(\.kind.sqlValue)))
    }

    /// Creates a table that is split by key. The index of a record's part is the remainder of its
    /// key divided by the number of parts. For a text key, the key's 64-bit FNV-1a hash is divided.
    /// If the number or the order of parts changes later, a migration must move the records:
    /// `MigrationContext.spread`.
    /// - Parameters:
    ///   - name: The common name of the tables.
    ///   - element: The type of a record.
    ///   - key: The key column.
    ///   - parts: The tables, which have the same columns in the same order.
    public init(
        _ name: String, of element: Element.Type = Element.self, key: String,
        byModulo parts: [any Table]
    ) {
        self.init(name, key, parts, .modulo)
    }

    var source: SplitSource {
        let layout: SplitSource.Layout = if case .columns = rule { .columns } else { .rows }
        return SplitSource(
            layout: layout, key: key,
            parts: parts.map { SplitSource.Part(table: $0.tableName, declaration: $0.declaration) })
    }

    /// Returns the index of the part that has a key's record; nil if the key alone does not show
    /// it.
    func partIndex(of key: SQLValue) -> Int? {
        guard case .modulo = rule else { return nil }
        let count = UInt64(parts.count)
        switch key {
        case .integer(let number):
            let rest = number % Int64(count)
            return Int(rest < 0 ? rest + Int64(count) : rest)
        case .text(let text):
            // FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). Swift's own hash differs at each
            // start of the program.
            let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { hash, byte in
                (hash ^ UInt64(byte)) &* 0x100_0000_01b3
            }
            return Int(hash % count)
        case .null, .real, .blob: return nil
        }
    }
}

// MARK: - Reading

extension SplitTable {
    /// Returns a query for all records.
    public func query() -> Query<Element> {
        Query(SelectStatement(QuerySource(source, alias: name))) { row in try Element(row: row) }
    }

    /// Returns a query for the records that meet a condition.
    public func `where`(_ condition: Condition) -> Query<Element> {
        query().filter(condition)
    }

    /// Returns the record with a key; nil if there is none.
    /// - Throws: `StoreError` `.schema` if the parts do not fit together, `.unknown` if one does
    ///   not exist, `.value` if the row does not fit the element.
    public func find(_ key: some ColumnValue, in context: ReadContext) throws -> Element? {
        let value = key.sqlValue
        if let index = partIndex(of: value) {
            return try parts[index].find(value, as: Element.self, in: context)
        }
        return try query().filter(Column<SQLValue>(self.key) == value).first(in: context)
    }

    /// Returns all records that meet a condition.
    /// - Throws: The same errors as `find`.
    public func all(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        offset: Int = 0, in context: ReadContext
    ) throws -> [Element] {
        try query().filter(condition ?? .always).ordered(by: ordering)
            .limited(to: limit, offset: offset).fetch(in: context)
    }

    /// Returns the first record that meets a condition; nil if there is none.
    /// - Throws: The same errors as `find`.
    public func first(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [],
        in context: ReadContext
    ) throws -> Element? {
        try all(where: condition, orderBy: ordering, limit: 1, in: context).first
    }

    /// Returns the number of records that meet a condition.
    /// - Throws: The same errors as `find`.
    public func count(where condition: Condition? = nil, in context: ReadContext) throws -> Int {
        try query().filter(condition ?? .always).count(in: context)
    }
}
