internal import MartletModel
internal import MartletStore
internal import SQLiteKit

/// Finds the tables to which another program gave other names, by capture's triggers: SQLite keeps
/// the triggers with their table, and they note under the number of the table's former type.
struct MovedTables {
    /// A table under another name than its type's.
    struct Move {
        let number: Int64
        /// The name of its type.
        let home: String
        /// The table's name now.
        let table: String

        /// The error that such a table cannot be read; it says why, and what to do.
        var refusal: StoreError {
            StoreError(
                .schema,
                "Another program has given the table “\(home)” the name “\(table)”. Give every table its own name back"
                    + " (ALTER TABLE … RENAME TO …): until then their records would be mixed up. "
                    + "What was written to them waits in the file.")
        }
    }

    /// Tables under names that belong to no type. Their notes wait until they have their names
    /// back.
    private(set) var away: [Move] = []
    /// Tables that are away, if a new table has their own name.
    private(set) var replaced: [Move] = []
    /// Tables that stand in the place of a table that is gone. The server knows none of their records.
    private(set) var successors: [Move] = []
    /// A table that may hold the records of its own type or those of the type whose name it has.
    private(set) var mixed: Move?

    /// Refuses tables if it is unclear to which type their records or their edits belong.
    /// - Throws: `StoreError` `.schema`.
    func check(_ connection: Connection) throws {
        if let mixed { throw mixed.refusal }
        for move in replaced where try Self.isInUse(move, connection) {
            throw StoreError(
                .schema,
                "Another program has given the table “\(move.home)” the name “\(move.table)”, and made another"
                    + " “\(move.home)”. Drop one of the two, and give the other its own name: until then nobody can"
                    + " tell which of them the records are in. Edits that wait are kept.")
        }
    }

    /// Returns whether the server knows records of a table that has another name, or notes of it
    /// wait.
    private static func isInUse(
        _ move: Move, _ connection: Connection
    ) throws(SQLiteError) -> Bool {
        try connection.integer(
            """
            SELECT 1 WHERE EXISTS (SELECT 1 FROM main.martlet_records WHERE type = \(move.number))
                OR EXISTS (SELECT 1 FROM main.martlet_capture WHERE type = \(move.number))
            """) != nil
    }

    init(_ connection: Connection) throws(SQLiteError) {
        let carriers = try Self.carriers(connection)
        guard !carriers.isEmpty else { return }
        let types = try connection.prepare("SELECT number, name FROM main.martlet_types")
        let names = Dictionary(
            uniqueKeysWithValues: try types.rows { (row) throws(SQLiteError) in
                (row.integer(0), row.text(1))
            })
        for (number, table) in carriers.sorted(by: { $0.key < $1.key }) {
            guard let home = names[number], home != table else { continue }
            let type = names.first { $0.value == table }?.key
            try add(Move(number: number, home: home, table: table), type, carriers, connection)
        }
    }

    /// Returns the tables that have capture's triggers, by the number under which these note.
    private static func carriers(_ connection: Connection) throws(SQLiteError) -> [Int64: String] {
        let rows = try connection.prepare(
            "SELECT name, tbl_name FROM main.sqlite_schema"
                + " WHERE type = 'trigger' AND name GLOB '\(CaptureTriggers.deletes)*'")
        var carriers: [Int64: String] = [:]
        _ = try rows.rows { (row) throws(SQLiteError) -> Void in
            guard let number = Int64(row.text(0).dropFirst(CaptureTriggers.deletes.count)) else {
                return
            }
            carriers[number] = row.text(1)
        }
        return carriers
    }

    /// Adds a move to the list that fits it.
    /// - Parameter type: The number of the type that has the table's name.
    private mutating func add(
        _ move: Move, _ type: Int64?, _ carriers: [Int64: String], _ connection: Connection
    ) throws(SQLiteError) {
        func isConfirmed(_ number: Int64) throws(SQLiteError) -> Bool {
            try connection.integer(
                "SELECT 1 FROM main.martlet_records WHERE type = \(number) LIMIT 1") != nil
        }
        if let type, try NotedColumns(connection: connection).isKnown(type) {
            if let other = carriers[type], other != move.table {
                mixed = move
                return
            }
            guard try isConfirmed(move.number) else {
                successors.append(move)
                return
            }
            if try isConfirmed(type) {
                mixed = move
                return
            }
        }
        let find = try connection.prepare(
            "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?")
        find.bind(1, text: move.home)
        if try find.step() { replaced.append(move) } else { away.append(move) }
        find.reset()
    }

    /// Returns whether a type has notes that were made under another number, or in another table
    /// than its present one.
    func concerns(
        _ type: EntityType, _ number: Int64, _ connection: Connection
    ) throws(SQLiteError) -> Bool {
        let moves = away + replaced + successors + [mixed].compactMap(\.self)
        for move in moves where move.number == number || move.table == type.name {
            // If the old table was never used, the new one only needs triggers of its own.
            guard replaced.contains(where: { $0.number == move.number }) else { return true }
            if try Self.isInUse(move, connection) { return true }
        }
        return false
    }

    /// Returns a schema without the tables that are away. References to these name their former
    /// types.
    func present(_ schema: Schema) -> Schema {
        guard !away.isEmpty else { return schema }
        let homes = Dictionary(uniqueKeysWithValues: away.map { ($0.table, $0.home) })
        return Schema(
            types: schema.types.filter { homes[$0.name] == nil }.map { type in
                EntityType(
                    name: type.name, key: type.key, keyKind: type.keyKind,
                    attributes: type.attributes,
                    references: type.references.map { reference in
                        Reference(
                            attribute: reference.attribute,
                            target: homes[reference.target] ?? reference.target,
                            onDelete: reference.onDelete)
                    }, uniques: type.uniques, hasConflictClause: type.hasConflictClause)
            })
    }
}
