internal import MartletModel
internal import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// Keeps the confirmed values of a column that is dropped, for a later version that has it again.
///
/// It keeps nulls too: without them the column's next default would replace them.
struct DroppedColumn {
    let connection: Connection
    let type: EntityType
    let number: Int64

    /// Keeps the values of a column aside.
    /// - Complexity: O(*n*), *n* records of the type.
    func keepAside(_ column: Attribute) throws {
        let known = try stored(of: column.name)
        let put = try connection.prepare(
            """
            INSERT INTO martlet_aside(type, id, revision, attributes) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (type, id) DO UPDATE SET attributes = ?4
            """)
        let rows = try connection.prepare(
            """
            SELECT record.id, record.revision, base.image, item.\(SQLName.quoted(column.name)),
                base.type IS NOT NULL, item.\(SQLName.quoted(type.key)) IS NOT NULL
            FROM martlet_records AS record
                LEFT JOIN martlet_base AS base ON base.type = record.type AND base.id = record.id
                LEFT JOIN \(SQLName.quoted(type.name)) AS item
                    ON item.\(SQLName.quoted(type.key)) = record.id
            WHERE record.type = ?1
            """)
        rows.bind(1, integer: number)
        defer { rows.reset() }
        while try rows.step() {
            let value: Value
            if rows.integer(4) != 0 {
                guard !rows.isNull(2) else { continue }
                value = try SyncCoder.decodeAttributes(rows.blob(2))[column.name] ?? .null
            } else {
                guard rows.integer(5) != 0 else { continue }
                value = try rows.value(3, kind: column.kind)
            }
            let id = try rows.recordID(0)
            var attributes = known[id] ?? Attributes()
            // A value that is kept aside under the name already is the server's newest.
            guard attributes[column.name] == nil else { continue }
            attributes[column.name] = value
            put.bind(1, text: type.name)
            put.bind(2, id)
            put.bind(3, integer: rows.integer(1))
            put.bind(4, blob: try SyncCoder.encode(attributes))
            try put.run()
            put.reset()
        }
    }

    /// Returns the values that are kept aside for the type's records already.
    private func stored(of column: String) throws -> [RecordID: Attributes] {
        let rows = try connection.prepare(
            "SELECT id, attributes FROM martlet_aside WHERE type = ?1")
        rows.bind(1, text: type.name)
        defer { rows.reset() }
        var known: [RecordID: Attributes] = [:]
        while try rows.step() {
            known[try rows.recordID(0)] = try SyncCoder.decodeAttributes(rows.blob(1))
        }
        return known
    }
}
