import MartletModel
import MartletServerCore
import PostgresKit

/// Reads entries from the table of the log.
enum LogPages {
    /// The most entries read in one step.
    private static let entriesAtOnce: Int64 = 4_096

    static let columns =
        "revision, device, identifier, sequence, temporaries, body, hash, time"

    /// The query for a page. It sums bodies before it reads them, because PostgreSQL knows their
    /// lengths without reading them.
    private static let partSQL = """
        SELECT \(columns) FROM (SELECT l.*, sum(octet_length(l.body)) OVER (ORDER BY l.revision) \
        - octet_length(l.body) AS before FROM (SELECT \(columns) FROM _martlet.log \
        WHERE revision >= $1 AND revision <= $2 ORDER BY revision LIMIT $3) AS l) AS part \
        WHERE before < $4 ORDER BY revision
        """

    /// Reads entries like `LogSource.entries(from:through:maxBytes:)`.
    static func entries(
        from first: Revision, through last: Revision, maxBytes: Int,
        on connection: PostgresConnection
    ) throws(PostgresError) -> [LogEntry] {
        var entries: [LogEntry] = []
        var bytes = 0
        var next = first
        while next <= last, bytes < maxBytes {
            let rows = try connection.query(
                partSQL,
                [
                    .integer(next), .integer(last), .integer(entriesAtOnce),
                    .integer(Int64(maxBytes - bytes)),
                ])
            guard rows.count > 0 else { break }
            for row in 0..<rows.count {
                let entry = try entry(rows, row)
                bytes += entry.body.count
                next = entry.revision + 1
                entries.append(entry)
                if entry.body.isEmpty { return entries }
            }
        }
        return entries
    }

    static func entry(
        _ rows: PostgresRows, _ row: Int
    ) throws(PostgresError) -> LogEntry {
        LogEntry(
            revision: try rows.integer(row, 0), device: try rows.integer(row, 1),
            identifier: rows.isNull(row, 2) ? nil : try rows.text(row, 2),
            sequence: rows.isNull(row, 3) ? nil : try rows.integer(row, 3),
            temporaries: rows.isNull(row, 4) ? nil : try rows.text(row, 4),
            body: try rows.binary(row, 5), hash: LineageHash(stored: try rows.binary(row, 6)),
            time: try rows.integer(row, 7))
    }
}
