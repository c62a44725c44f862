package import MartletModel
package import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension LocalStore: SyncedTables {
    package var lowestNotedID: Int64? {
        get throws { try integerState("lowestNotedID") }
    }

    /// Returns the permanent id of a temporary one if it is known; otherwise the id as it is.
    package func resolve(_ id: RecordID, type: Int) throws -> RecordID {
        guard case .integer(let number) = id, number < 0 else { return id }
        let find = try connection.statement(
            "SELECT id FROM martlet_ids WHERE type = ? AND temporary = ?")
        find.bind(1, integer: numbers[type])
        find.bind(2, integer: number)
        defer { find.reset() }
        return try find.step() ? .integer(find.integer(0)) : id
    }

    /// Returns a record's attributes; nil if there is none. A temporary id names its record for
    /// ever.
    /// - Throws: `StoreError` `.unknown` if the schema has no such type.
    package func record(_ type: String, _ id: RecordID) throws -> Attributes? {
        let index = try index(of: type)
        return try tables[index].read(try resolve(id, type: index))
    }

    /// Runs one SQL statement with bound values, and returns its rows.
    package func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [RecordValues] {
        try ReadContext(session: Session(store: self)).rows(sql, arguments)
    }

    /// Runs `body` in one read transaction, so that all of its reads see the same moment.
    package func reading<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.beginReading()
        defer { connection.rollback() }
        return try body()
    }
}
