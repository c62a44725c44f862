/// A table under a name of its own in a query, and its columns as they are named there.
///
/// ```swift
/// let player = players.named("player"), captain = players.named("captain")
/// let query = player.query()
///     .join(captain, on: player.captainID == captain.id)
///     .select(player.name, captain.name)
/// ```
@dynamicMemberLookup
public struct NamedTable<Base: Table>: Sendable {
    /// The table.
    let base: Base
    /// The name it has in the query.
    let alias: String

    /// A column of the table, under this name.
    public subscript<Value>(dynamicMember path: KeyPath<Base, Column<Value>>) -> Column<Value> {
        base[keyPath: path].of(alias)
    }

    /// All rows, as records.
    public func query() -> Query<Base.Element> {
        Query(SelectStatement(source(nil))) { row in try Base.Element(row: row) }
    }

    /// The rows that meet a condition, as records.
    public func `where`(_ condition: Condition) -> Query<Base.Element> {
        query().filter(condition)
    }

    func source(_ join: QuerySource.Join?) -> QuerySource {
        QuerySource(base, alias: alias, join: join)
    }
}

extension Table {
    /// The table under a name of its own, for queries in which column names alone do not say which
    /// table is meant.
    /// - Parameter name: The name; nil for the table's own.
    public func named(_ name: String? = nil) -> NamedTable<Self> {
        NamedTable(base: self, alias: name ?? tableName)
    }

    /// All rows, as records.
    public func query() -> Query<Element> {
        Query(SelectStatement(QuerySource(self))) { row in try Element(row: row) }
    }

    /// The rows that meet a condition, as records.
    public func `where`(_ condition: Condition) -> Query<Element> {
        query().filter(condition)
    }
}
