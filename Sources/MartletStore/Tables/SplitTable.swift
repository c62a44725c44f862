internal import SQLiteRecords

/// Several tables that are read and written as one.
///
/// A large or uneven record may be spread over tables by its columns; many records over tables by
/// their kind, or by their key. Whoever uses the split table does not see it.
///
/// ```swift
/// let people = SplitTable(
///     "people", of: Person.self, key: "id",
///     byColumns: [PlainTable("people_names"), PlainTable("people_photos")])
/// ```
///
/// Tables of a synchronised schema can be parts where their keys are texts: integer keys are
/// numbered by the server, for each table by itself.
public struct SplitTable<Element: ReadableRecord>: Sendable {
    /// The name the tables have as one, in queries and errors.
    public let name: String
    /// The key column, which every part has as its primary key.
    public let key: String
    let parts: [PlainTable<RecordValues>]
    let rule: Rule
    /// The names of `Element` that no part has; see `Table.storedElsewhere`.
    public var storedElsewhere: Set<String> = []

    /// Which part a record, or a piece of it, is in.
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

    /// Each part has the key and some columns of every record. The first has a row for every
    /// record; the others for those that have anything to put there.
    /// - Parameters:
    ///   - name: What the tables are called as one.
    ///   - element: What a record is read as.
    ///   - key: The key column.
    ///   - parts: The tables, of which each asks the record for its own columns.
    public init(
        _ name: String, of element: Element.Type = Element.self, key: String,
        byColumns parts: [any Table]
    ) {
        self.init(name, key, parts, .columns)
    }

    /// Each part has the records of one kind. A record whose kind changes moves.
    /// - Parameters:
    ///   - name: What the tables are called as one.
    ///   - element: What a record is read as.
    ///   - key: The key column; no two parts have the same key.
    ///   - column: The column that says of which kind a record is.
    ///   - parts: The kinds and their tables, which have the same columns in the same order.
    public init<Kind: ColumnValue>(
        _ name: String, of element: Element.Type = Element.self, key: String,
        byKind column: Column<Kind>, parts: [(kind: Kind, table: any Table)]
    ) {
        self.init(
            name, key, parts.map(\.table),
            .kind(column: column.name, kinds: parts.map(\.kind.sqlValue)))
    }

    /// A record is in the part whose index is the remainder of its key divided by the number of
    /// parts; for text keys, of the key's 64-bit FNV-1a hash. If the number or the order of the
    /// parts changes when there are records, a version has to move them: `MigrationContext.spread`.
    /// - Parameters:
    ///   - name: What the tables are called as one.
    ///   - element: What a record is read as.
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

    /// The place of the part in which a key's record is, where the key alone says it.
    func place(of key: SQLValue) -> Int? {
        guard case .modulo = rule else { return nil }
        let count = UInt64(parts.count)
        switch key {
        case .integer(let number):
            let rest = number % Int64(count)
            return Int(rest < 0 ? rest + Int64(count) : rest)
        case .text(let text):
            // FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/): Swift's own hash is another one
            // at each start of the program.
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
    /// All records.
    public func query() -> Query<Element> {
        Query(SelectStatement(QuerySource(source, alias: name))) { row in try Element(row: row) }
    }

    /// The records that meet a condition.
    public func `where`(_ condition: Condition) -> Query<Element> {
        query().filter(condition)
    }

    /// The record with a key; nil where there is none.
    public func find(_ key: some ColumnValue, in context: ReadContext) throws -> Element? {
        let value = key.sqlValue
        if let place = place(of: value) {
            return try parts[place].find(value, as: Element.self, in: context)
        }
        return try query().filter(Column<SQLValue>(self.key) == value).first(in: context)
    }

    /// All records that meet a condition.
    public func all(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [], limit: Int? = nil,
        offset: Int = 0, in context: ReadContext
    ) throws -> [Element] {
        try query().filter(condition ?? .always).ordered(by: ordering)
            .limited(to: limit, offset: offset).fetch(in: context)
    }

    /// The first record that meets a condition.
    public func first(
        where condition: Condition? = nil, orderBy ordering: [Ordering] = [],
        in context: ReadContext
    ) throws -> Element? {
        try all(where: condition, orderBy: ordering, limit: 1, in: context).first
    }

    /// The number of records that meet a condition.
    public func count(where condition: Condition? = nil, in context: ReadContext) throws -> Int {
        try query().filter(condition ?? .always).count(in: context)
    }
}
