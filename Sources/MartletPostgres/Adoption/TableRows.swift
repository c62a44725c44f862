import MartletProtocol
import PostgresKit

/// Reads a table's rows in the order of their keys, a page at a time, so that memory does not grow
/// with the table. What it sees is up to the transaction it runs in.
struct TableRows {
    private static let mostRows = 1_000
    private static let pageBytes = 4 << 20

    let connection: PostgresConnection
    let table: PostgresTable
    /// The columns that are read, beside the key.
    let columns: [PostgresColumn]
    private let names: [String]
    private let pageRows: Int64

    init(
        _ table: PostgresTable, columns: [PostgresColumn]? = nil,
        on connection: PostgresConnection
    ) throws(PostgresError) {
        self.connection = connection
        self.table = table
        self.columns = columns ?? table.columns
        names = self.columns.map(\.name)
        // A few rows that are large beside many small ones are met by the margin of the page.
        let rows = try connection.query(
            """
            SELECT pg_catalog.pg_table_size($1::bigint::oid)::bigint, \
            greatest(reltuples, 1)::bigint FROM pg_catalog.pg_class WHERE oid = $1::bigint::oid
            """, [.integer(Int64(table.relation))])
        let (size, count) = (try rows.integer(0, 0), try rows.integer(0, 1))
        let width = max(1, size / count)
        pageRows = min(Int64(Self.mostRows), max(10, Int64(Self.pageBytes) / width))
    }

    /// Hands every row to `body`, all columns named, nulls included.
    /// - Parameter unsendable: Gets the rows that no device can be sent.
    func forEach(
        unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        let key = table.key
        let list = ([key.sqlName] + columns.map(\.selected)).joined(separator: ", ")
        let first = "SELECT \(list) FROM \(table.sqlName)"
        let end = "ORDER BY \(key.sqlName) LIMIT"
        var last: PostgresValue?
        while true {
            let rows: PostgresRows
            if let last {
                rows = try connection.query(
                    "\(first) WHERE \(key.sqlName) > $1 \(end) $2", [last, .integer(pageRows)])
            } else {
                rows = try connection.query("\(first) \(end) $1", [.integer(pageRows)])
            }
            for row in 0..<rows.count { try hand(rows, row, unsendable, body) }
            guard rows.count == pageRows else { return }
            last = try rows.value(rows.count - 1, 0)
        }
    }

    /// Hands the rows of the ids to `body`, in any order.
    func forEach(
        of ids: [RecordID], unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        let key = table.key
        let list = ([key.sqlName] + columns.map(\.selected)).joined(separator: ", ")
        let rows = try connection.query(
            """
            SELECT \(list) FROM \(table.sqlName) \
            WHERE \(key.sqlName) = ANY ($1::text[]::\(key.declaration)[])
            """, [.array(PostgresArray(ids.map { .text($0.description) }))])
        for row in 0..<rows.count { try hand(rows, row, unsendable, body) }
    }

    private func hand(
        _ rows: PostgresRows, _ row: Int, _ unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        let id = try table.key.id(from: rows, row, 0)
        var values: [Value] = []
        values.reserveCapacity(columns.count)
        for (place, column) in columns.enumerated() {
            let stored = try rows.value(row, place + 1)
            do throws(UnsendableValue) {
                values.append(try column.value(from: stored))
            } catch {
                return try unsendable(id, error)
            }
        }
        try body(id, Attributes(names: names, values: values))
    }
}
