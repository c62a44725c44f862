internal import MartletModel
internal import MartletStore
internal import SQLiteKit

/// Finds columns that have the former name of another column of their table. A value under such a
/// name, whether the server sends it or the app writes it, may belong to either column.
struct TakenNames {
    private let connection: Connection
    private let recorded: NotedColumns.Recorded
    private let triggers: [String: String]
    private let replaced: Set<Int64>

    init(_ connection: Connection, _ moved: MovedTables) throws(SQLiteError) {
        self.connection = connection
        recorded = try NotedColumns(connection: connection).recorded()
        triggers = try CaptureTriggers.present(connection)
        replaced = Set(moved.replaced.map(\.number))
    }

    /// Checks the columns of a type.
    /// - Parameter number: The type's number; nil for a type that the file has not had before.
    /// - Throws: `StoreError` `.schema` if a column has a name that was taken.
    func check(_ type: EntityType, _ number: Int64?) throws {
        guard let number, !replaced.contains(number), let columns = recorded.columns(number) else {
            return
        }
        let now = CaptureTriggers.noted(by: triggers, number) ?? columns
        let homes = recorded.homes[number] ?? [:]
        for (former, name) in zip(columns, now) where former != name {
            let isTaken = homes.contains { $0 != former && $1 == name }
            guard columns.contains(name) || isTaken else { continue }
            throw StoreError(
                .schema,
                "Another program has given the column “\(former)” of “\(type.name)” the name “\(name)”, which another"
                    + " column had. Give each column its own name back (ALTER TABLE … RENAME COLUMN … TO …): until"
                    + " then their values would be mixed up. What was written to them waits in the file."
            )
        }
        let present = CaptureTriggers.noted(type)
        for name in present where !now.contains(name) || !columns.contains(name) {
            if let holder = homes.first(where: { $1 == name })?.key, name != holder,
                present.contains(holder)
            {
                throw StoreError(
                    .schema,
                    "Another program has given the column “\(name)” of “\(type.name)” the name “\(holder)”. Give it its"
                        + " own name back (ALTER TABLE … RENAME COLUMN … TO …), without a new column of that name: a"
                        + " new one lacks the values that the server sent, and edits would overwrite them."
                )
            }
            if recorded.dropped[number]?.contains(name) == true, try isConfirmed(number) {
                throw StoreError(
                    .schema,
                    "Another program dropped the column “\(name)” of “\(type.name)” with the values that the server"
                        + " had sent. A column of that name lacks them, and edits would overwrite what nobody saw."
                        + " Leave the column out, or make a new device file, which gets all values."
                )
            }
        }
    }

    private func isConfirmed(_ number: Int64) throws(SQLiteError) -> Bool {
        try connection.integer(
            "SELECT 1 FROM main.martlet_records WHERE type = \(number) LIMIT 1") != nil
    }
}
