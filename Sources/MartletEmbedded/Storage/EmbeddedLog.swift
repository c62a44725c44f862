package import MartletModel
internal import MartletProtocol
package import MartletServerCore
import SQLiteKit

/// Reads the log of a data set's file on a connection of its own, which it opens when it first
/// needs it, and again after a fault.
package final class EmbeddedLog: LogSource {
    private let path: String
    private let vfs: String?
    private let schema: Schema
    private let unsendable: UnsendableRows
    private var connection: Connection?
    /// The reader of rows on the connection.
    private var rows: DifferenceScan?
    private var tables = OpenedTables()
    package var consistently: ConsistentReading?

    /// Makes a reader, which does not open the file yet.
    ///
    /// - Parameters:
    ///   - schema: The types whose rows are in differences. Entries need no schema.
    ///   - unsendable: Notes rows that are left out of differences.
    package init(
        path: String, vfs: String?, schema: Schema = Schema(types: []),
        unsendable: UnsendableRows = UnsendableRows()
    ) {
        self.unsendable = unsendable
        self.path = path
        self.vfs = vfs
        self.schema = schema
    }

    private static let columns =
        "revision, device, identifier, sequence, temporaries, body, hash, time"

    package func extent() throws(StorageFault) -> LogExtent {
        try reading { (connection) throws(SQLiteError) in
            let statement = try connection.statement(
                """
                SELECT revision, hash, \
                (SELECT value FROM martlet_meta WHERE key = 'floor') FROM martlet_dataset
                """)
            defer { statement.reset() }
            guard try statement.step() else {
                throw SQLiteError.mismatch("martlet_dataset is empty")
            }
            return LogExtent(
                head: LogHead(
                    revision: statement.integer(0), hash: LineageHash(stored: statement.blob(1))),
                floor: statement.isNull(2) ? 0 : statement.integer(2))
        }
    }

    package func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry] {
        try reading { (connection) throws(SQLiteError) in
            let statement = try connection.statement(
                """
                SELECT \(Self.columns) FROM martlet_log \
                WHERE revision BETWEEN ?1 AND ?2 ORDER BY revision
                """)
            defer { statement.reset() }
            statement.bind(1, integer: first)
            statement.bind(2, integer: last)
            var entries: [LogEntry] = []
            var bytes = 0
            while bytes < maxBytes, try statement.step() {
                let entry = Self.entry(statement)
                bytes += entry.body.count
                entries.append(entry)
                if entry.body.isEmpty { break }
            }
            return entries
        }
    }

    package func difference(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        let (open, scan) = try reading { (connection) throws(SQLiteError) in
            if let rows { return (connection, rows) }
            let scan = try DifferenceScan(
                connection: connection, schema: schema, unsendable: unsendable)
            rows = scan
            return (connection, scan)
        }
        do throws(StorageFault) {
            try ConsistentRead(consistently: consistently).begin(on: open, &tables)
        } catch {
            forget()
            throw error
        }
        return try reading { (_) throws(SQLiteError) in
            try scan.part(request, limit: limit)
        }
    }

    /// Forgets the connection with its statements, which would keep it and its memory alive.
    private func forget() {
        rows = nil
        connection = nil
    }

    package func release() { forget() }

    package func times(of revisions: [Revision]) throws(StorageFault) -> [Revision: Int64] {
        try reading { (connection) throws(SQLiteError) in
            let statement = try connection.statement(
                "SELECT time FROM martlet_log WHERE revision = ?1")
            defer { statement.reset() }
            var times: [Revision: Int64] = [:]
            for revision in revisions {
                statement.rewind()
                statement.bind(1, integer: revision)
                if try statement.step() { times[revision] = statement.integer(0) }
            }
            return times
        }
    }

    package func confirmation(of device: Int64) throws(StorageFault) -> Revision? {
        try reading { (connection) throws(SQLiteError) in
            try EmbeddedViews.confirmation(of: device, on: connection)
        }
    }

    package func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry] {
        try reading { (connection) throws(SQLiteError) in
            let statement = try connection.statement(
                "SELECT \(Self.columns) FROM martlet_log WHERE revision = ?1")
            defer { statement.reset() }
            var entries: [LogEntry] = []
            for revision in revisions {
                statement.rewind()
                statement.bind(1, integer: revision)
                if try statement.step() { entries.append(Self.entry(statement)) }
            }
            return entries
        }
    }

    package func hash(at revision: Revision) throws(StorageFault) -> LineageHash? {
        try reading { (connection) throws(SQLiteError) in
            guard revision > 0 else {
                let identity = try connection.text("SELECT identity FROM martlet_dataset")
                return identity.map { LineageHash(origin: $0) }
            }
            let statement = try connection.statement(
                "SELECT hash FROM martlet_log WHERE revision = ?1")
            defer { statement.reset() }
            statement.bind(1, integer: revision)
            return try statement.step() ? LineageHash(stored: statement.blob(0)) : nil
        }
    }

    private static func entry(_ row: Statement) -> LogEntry {
        LogEntry(
            revision: row.integer(0), device: row.integer(1),
            identifier: row.isNull(2) ? nil : row.text(2),
            sequence: row.isNull(3) ? nil : row.integer(3),
            temporaries: row.isNull(4) ? nil : row.text(4), body: row.blob(5),
            hash: LineageHash(stored: row.blob(6)), time: row.integer(7))
    }

    private func reading<Result>(
        _ body: (Connection) throws(SQLiteError) -> Result
    ) throws(StorageFault) -> Result {
        do throws(SQLiteError) {
            let open: Connection
            if let connection {
                open = connection
            } else {
                // In WAL mode, readers too need write access to the shared memory.
                open = try Connection(
                    path: path, mode: .readWrite, vfs: vfs, refusesQuotedText: true)
                try open.execute("PRAGMA query_only = ON")
                connection = open
            }
            return try body(open)
        } catch {
            forget()
            throw StorageFault(error)
        }
    }
}

@available(*, unavailable)
extension EmbeddedLog: Sendable {}
