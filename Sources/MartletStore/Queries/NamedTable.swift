/// A table under another name in a query, with its columns under that name.
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
    /// The table's name in the query.
    let alias: String

    /// Returns a column of the table under this name.
    public subscript<Value>(dynamicMember path: KeyPath<Base, Column<Value>>) -> Column<Value> {
        base[keyPath: path].of(alias)
    }

    /// Returns a query for all rows, as records.
    public func query() -> Query<Base.Element> {
        Query(SelectStatement(source(nil))) { row in try Base.Element(row: row) }
    }

    /// Returns a query for the rows that meet a condition, as records.
    public func `where`(_ condition: Condition) -> Query<Base.Element> {
        query().filter(condition)
    }

    func source(_ join: QuerySource.Join?) -> QuerySource {
        QuerySource(base, alias: alias, join: join)
    }
}

extension Table {
    /// Returns the table under another name, for queries in which a column's name alone is
    /// ambiguous.
    /// - Parameter name: The name; nil for the table's own name.
    public func named(_ name: String? = nil) -> NamedTable<Self> {
        NamedTable(base: self, alias: name ?? tableName)
    }

    /// Returns a query for all rows, as records.
    public func query() -> Query<Element> {
        Query(SelectStatement(QuerySource(self))) { row in try Element(row: row) }
    }

    /// Returns a query for the rows that meet a condition, as records.
    public func `where`(_ condition: Condition) -> Query<Element> {
        query().filter(condition)
    }
}
