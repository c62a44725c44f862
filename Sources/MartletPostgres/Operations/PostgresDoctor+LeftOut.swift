import MartletModel
import PostgresKit

extension PostgresDoctor {
    /// Returns a finding for each table with rows that no device can receive.
    func leftOut(_ schema: PostgresSchema) throws(PostgresError) -> [Finding] {
        var found: [Finding] = []
        for table in schema.tables {
            let rows: PostgresRows
            do throws(PostgresError) {
                rows = try connection.query(
                    """
                    SELECT d.id, count(*) OVER () FROM (\(PostgresComparison.leftOut(table))) AS d (id) \
                    ORDER BY d.id LIMIT 3
                    """)
            } catch {
                // Another finding reports that the table cannot be read.
                guard error.kind == .forbidden else { throw error }
                continue
            }
            guard rows.count > 0 else { continue }
            var ids: [String] = []
            for row in 0..<rows.count { ids.append(try rows.text(row, 0)) }
            found.append(
                warning(
                    "left-out",
                    """
                    Rows of “\(table.type.name)” are left out, as no device can be sent them: \
                    \(try rows.integer(0, 1)), such as \(ids.joined(separator: ", ")).
                    """,
                    """
                    Devices that see everything keep what they had of them, or lack them; devices that see a \
                    part by policies remove them. Edits of them are refused, and rows that refer to them may \
                    reach devices without them.
                    """,
                    """
                    Correct them in the database; martlet postgres compare lists them, and the server's log says \
                    what is the matter.
                    """))
        }
        return found
    }
}
