import MartletModel
import MartletServerCore
import PostgresKit

/// A moment at which the tables hold exactly the state of the log. One connection sees it for as
/// long as its transaction is open.
///
/// External writes are in the tables before they are in the log. So pending writes are first added
/// to the log. If writes are pending again at the moment that the transaction sees, this is
/// repeated. If that continues, writers are briefly kept out of the tables.
struct StagingMoment {
    /// The number of tries without locking writers out.
    static let tries = 20

    let address: PostgresAddress
    let unsendable: UnsendableRows
    /// Returns the milliseconds since 1970.
    let now: () -> Int64
    /// The purpose of the moment, for the names of the connections.
    var purpose = "snapshot"

    /// Opens a connection whose transaction sees such a moment.
    /// - Parameters:
    ///   - fingerprint: The fingerprint of the schema that the tables must have; nil for any.
    ///   - reading: Runs a function before the log goes on; nil if any moment will do.
    /// - Returns: The connection, and the tables.
    /// - Throws: `StorageFault` if the tables have changed; `AdoptionError` if they can no longer
    ///   be synchronised; `PostgresError`, of kind `busy` if writers could not be locked out.
    func open(
        _ fingerprint: String?, tries: Int = tries, by reading: ConsistentReading? = nil
    ) throws -> (PostgresConnection, PostgresSchema) {
        let reader =
            try reading.map { try self.reader(by: $0, tries) } ?? reader(fingerprint, tries)
        return (reader, try schema(reader, fingerprint))
    }

    private func reader(_ fingerprint: String?, _ tries: Int) throws -> PostgresConnection {
        let reader = try PostgresConnection(address, options())
        let logical = try LogicalMoment(reader)
        defer { logical?.close() }
        try begin(reader)
        guard try Self.isPending(reader, logical) else { return reader }
        let writer = try PostgresConnection(address, options(" drain"))
        defer { writer.close() }
        for _ in 0..<tries {
            try reader.rollback()
            try writer.transaction { try drain(writer, fingerprint) }
            try begin(reader)
            guard try Self.isPending(reader, logical) else { return reader }
        }
        try reader.rollback()
        try keepingWritersOut(writer, fingerprint, logical) {
            try begin(reader)
            // The first statement fixes what the transaction sees.
            guard try !Self.isPending(reader, logical) else {
                throw PostgresError(.busy, "other programs write faster than the log takes it in")
            }
        }
        return reader
    }

    /// Returns a connection whose transaction begins within a function that the writer runs.
    private func reader(
        by reading: ConsistentReading, _ tries: Int
    ) throws -> PostgresConnection {
        let reader = try PostgresConnection(address, options())
        let logical = try LogicalMoment(reader)
        defer { logical?.close() }
        for _ in 0..<tries {
            var sawPending = true
            try reading { () throws(StorageFault) in
                do throws(PostgresError) {
                    try begin(reader)
                    sawPending = try Self.isPending(reader)
                } catch {
                    throw StorageFault(error)
                }
            }
            if !sawPending, try logical?.hasUnread(reader) != true { return reader }
            try reader.rollback()
        }
        reader.close()
        throw PostgresError(.busy, "other programs write faster than the log takes it in")
    }

    private func begin(_ reader: PostgresConnection) throws(PostgresError) {
        _ = try reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    /// Returns whether the reader's transaction sees writes that the log does not have.
    static func isPending(
        _ reader: PostgresConnection, _ logical: LogicalMoment?
    ) throws(PostgresError) -> Bool {
        if try isPending(reader) { return true }
        return try logical?.hasUnread(reader) ?? false
    }

    private static func isPending(_ connection: PostgresConnection) throws(PostgresError) -> Bool {
        try connection.query("SELECT \(ExternalDrain.isPending)").boolean(0, 0)
    }

    private func schema(
        _ connection: PostgresConnection, _ fingerprint: String?
    ) throws -> PostgresSchema {
        let schema = try PostgresSchema.read(connection)
        if let fingerprint, fingerprint != schema.schema.fingerprint {
            throw StorageFault(
                .failed, "the tables have changed since the server started; start it again")
        }
        return schema
    }

    /// Adds all pending external writes to the log.
    private func drain(_ writer: PostgresConnection, _ fingerprint: String?) throws {
        var log = try LogAppender(on: writer, now: now())
        let schema = try schema(writer, fingerprint)
        let drain = ExternalDrain(
            schema: schema.schema, tables: schema.tables, unsendable: unsendable)
        while try Self.isPending(writer) {
            _ = try drain.entries(on: writer, head: log.head, now: now(), maxBytes: 4 << 20)
            log = try LogAppender(on: writer, now: now())
        }
    }

    /// Runs `body` while writers are locked out. It first locks the data set's row, whose holder
    /// waits for no external program. Then it locks the tables, and adds the pending writes to the
    /// log. When that is committed, there can be no new writes.
    private func keepingWritersOut(
        _ writer: PostgresConnection, _ fingerprint: String?, _ logical: LogicalMoment?,
        _ body: () throws -> Void
    ) throws {
        let guardian = try PostgresConnection(address, options(" guard"))
        defer { guardian.close() }
        try writer.transaction {
            _ = try LogAppender(on: writer, now: now())
            try guardian.begin()
            for table in try PostgresSchema.read(guardian).tables {
                try guardian.execute("LOCK TABLE \(table.sqlName) IN SHARE MODE")
            }
            try logical?.awaitAll()
            try drain(writer, fingerprint)
        }
        try body()
        try guardian.rollback()
    }

    /// Returns the options of a connection. Writers wait for it only briefly; reading may take
    /// long.
    private func options(_ rest: String = "") -> PostgresOptions {
        PostgresOptions(
            statement: nil, lock: .seconds(2), idleInTransaction: nil, answer: nil,
            allowsHiddenRows: false, name: "martlet \(purpose)\(rest)")
    }
}
