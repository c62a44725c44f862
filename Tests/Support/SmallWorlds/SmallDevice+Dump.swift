internal import Martlet
package import MartletDevice
internal import SQLiteKit

extension SmallDevice {
    /// All that is in the file but leases, row by row, as text.
    package func dump(leavingOut columns: Set<String> = []) throws -> [String] {
        let connection = try store.applying.connection
        let tables = try connection.prepare(
            """
            SELECT name FROM sqlite_schema WHERE type = 'table'
                AND name NOT IN ('martlet_lease', 'sqlite_sequence') ORDER BY name
            """
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        var lines: [String] = []
        for table in tables {
            let rows = try store.applying.rows("SELECT * FROM \(table)")
            lines += rows.map { row in
                let values = zip(row.names, row.values)
                    .filter { !columns.contains("\(table).\($0.0)") }
                return "\(table): " + values.map { "\($0)=\($1)" }.joined(separator: " ")
            }.sorted()
        }
        return lines
    }
}

extension DeviceStore {
    /// As though the time of every lease were over.
    package func endLeases() throws {
        try applying.connection.execute("DELETE FROM martlet_lease")
    }
}
