import MartletModel
import MartletProtocol
import PostgresKit

/// Reads a table's rows in the order of their keys, one page at a time, so that memory does not
/// grow with the table. The open transaction decides which state it sees.
struct TableRows {
    private static let mostRows = 1_000
    private static let pageBytes = 4 << 20

    let connection: PostgresConnection
    let table: PostgresTable
    /// The columns to read, in addition to the key.
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
        // The margin of the page covers a few large rows among many small ones.
        let rows = try connection.query(
            """
            SELECT pg_catalog.pg_table_size($1::bigint::oid)::bigint, \
            greatest(reltuples, 1)::bigint FROM pg_catalog.pg_class WHERE oid = $1::bigint::oid
            """, [.integer(Int64(table.relation))])
        // If another session has dropped the table, PostgreSQL refuses to read a page of it.
        let isThere = rows.count == 1 && !rows.isNull(0, 0)
        let width = isThere ? max(1, try rows.integer(0, 0) / rows.integer(0, 1)) : 1
        pageRows = min(Int64(Self.mostRows), max(10, Int64(Self.pageBytes) / width))
    }

    /// The log's facts of a row.
    struct Mark: Hashable {
        let revision: Int64
        let author: Int64
        let others: Int64
    }

    /// Passes every row to `body`, with all columns named, including nulls.
    /// - Parameter unsendable: Receives the rows that no device can receive.
    func forEach(
        unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        try forEachPage(of: list, from: "\(table.sqlName) AS t") { rows in
            for row in 0..<rows.count { try hand(rows, row, unsendable, body) }
        }
    }

    /// Passes every row that the log knows to `body`, with its facts.
    /// - Parameter condition: SQL about the row `t` and its line `r`. Other rows are skipped.
    func forEachMarked(
        where condition: String = "true", unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes, Mark) throws -> Void
    ) throws {
        let source = """
            \(table.sqlName) AS t JOIN _martlet.records AS r ON r.type = \(table.number) \
            AND r.id = t.\(table.key.sqlName)::text COLLATE "C" AND NOT r.deleted \
            AND (\(condition))
            """
        try forEachPage(of: list + ", r.revision, r.author, r.others", from: source) { rows in
            let first = columns.count + 1
            for row in 0..<rows.count {
                let mark = Mark(
                    revision: try rows.integer(row, first),
                    author: try rows.integer(row, first + 1),
                    others: try rows.integer(row, first + 2))
                try hand(rows, row, unsendable) { try body($0, $1, mark) }
            }
        }
    }

    /// Passes the rows with the ids to `body`, in any order.
    func forEach(
        of ids: [RecordID], unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        let key = table.key
        let rows = try connection.query(
            """
            SELECT \(list) FROM \(table.sqlName) AS t \
            WHERE t.\(key.sqlName) = ANY ($1::text[]::\(key.declaration)[])
            """, [.array(PostgresArray(ids.map { .text($0.description) }))])
        for row in 0..<rows.count { try hand(rows, row, unsendable, body) }
    }

    /// The list of selected columns: the key, then the others.
    private var list: String {
        (["t.\(table.key.sqlName)"] + columns.map { $0.selected(as: "t.\($0.sqlName)") })
            .joined(separator: ", ")
    }

    private func forEachPage(
        of list: String, from source: String, _ body: (PostgresRows) throws -> Void
    ) throws {
        let key = "t.\(table.key.sqlName)"
        // The planner knows a literal limit. With a parameter it would sort the whole table for
        // each page.
        let end = "ORDER BY \(key) LIMIT \(pageRows)"
        var last: PostgresValue?
        while true {
            let rows: PostgresRows
            if let last {
                rows = try connection.query(
                    "SELECT \(list) FROM \(source) WHERE \(key) > $1 \(end)", [last])
            } else {
                rows = try connection.query("SELECT \(list) FROM \(source) \(end)")
            }
            try body(rows)
            guard rows.count == pageRows else { return }
            last = try rows.value(rows.count - 1, 0)
        }
    }

    private func hand(
        _ rows: PostgresRows, _ row: Int, _ unsendable: (RecordID, UnsendableValue) throws -> Void,
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        let id = try table.key.id(from: rows, row, 0)
        var values: [Value] = []
        values.reserveCapacity(columns.count)
        for (index, column) in columns.enumerated() {
            let stored = try rows.value(row, index + 1)
            do throws(UnsendableValue) {
                values.append(try column.value(from: stored))
            } catch {
                return try unsendable(id, error)
            }
        }
        let attributes = Attributes(names: names, values: values)
        guard !attributes.exceeds(Limits.rowBytes) else {
            return try unsendable(id, UnsendableValue.ofLargeRow)
        }
        try body(id, attributes)
    }
}
