internal import CPostgres

/// A message from a replication slot.
public enum ReplicationMessage: Hashable, Sendable {
    /// A message of the slot's output plug-in.
    case data([UInt8])
    /// The server has sent everything before this position of the write-ahead log.
    case reached(UInt64)
}

extension PostgresConnection {
    /// Opens a connection that can read a logical replication slot. The connection can run
    /// statements until it begins to read.
    /// - Throws: `PostgresError`, for example `.forbidden` if the role lacks the REPLICATION
    ///   attribute.
    public static func replicating(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions()
    ) throws(PostgresError) -> PostgresConnection {
        try PostgresConnection(address.setting("replication", "database"), options)
    }

    /// Begins to read a slot with the plug-in pgoutput. From then on only `replicated` and
    /// `confirmReplicated` can be called.
    /// - Parameter position: The position to begin at. The server does not send transactions that
    ///   ended before it, nor those that were confirmed to the slot.
    /// - Throws: `PostgresError`; `.busy` if another connection reads the slot.
    public func startReplication(
        slot: String, publication: String, from position: UInt64
    ) throws(PostgresError) {
        try check()
        let sql = """
            START_REPLICATION SLOT \(Self.quoted(slot)) LOGICAL \(Self.lsn(position)) \
            (proto_version '1', publication_names '\(Self.quoted(publication))', messages 'true')
            """
        wire.begin(mayCommit: false)
        guard PQsendQuery(wire.pointer, sql) == 1 else { throw wire.lost(sql: sql) }
        try wire.flush()
        guard let result = try wire.result() else { throw wire.lost(sql: sql) }
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_COPY_BOTH else { throw wire.error(result, sql: sql) }
    }

    /// Waits for the next message of the slot.
    /// - Parameter limit: The time to wait; nil to wait until there is a message or `wake` is
    ///   signalled.
    /// - Returns: The message; nil if the time is over.
    /// - Throws: `PostgresError` if the server has ended the stream, or the connection is lost.
    public func replicated(within limit: Duration?) throws(PostgresError) -> ReplicationMessage? {
        var hasWaited = false
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            let count = PQgetCopyData(wire.pointer, &buffer, 1)
            if count > 0, let buffer {
                defer { PQfreemem(buffer) }
                let bytes = UnsafeRawBufferPointer(start: buffer, count: Int(count))
                if let message = Self.message(bytes) { return message }
                continue
            }
            guard count == 0 else { throw ended() }
            if hasWaited { return nil }
            hasWaited = true
            guard try wire.listen(limit) else { return nil }
            guard PQconsumeInput(wire.pointer) == 1 else { throw wire.lost() }
        }
    }

    /// Tells the server how far the caller has taken the slot's messages.
    /// - Parameters:
    ///   - written: The position up to which the caller has received messages.
    ///   - flushed: The position before which the caller never needs a message again. The server
    ///     may discard its write-ahead log up to there.
    /// - Throws: `PostgresError` if the connection is lost.
    public func confirmReplicated(written: UInt64, flushed: UInt64) throws(PostgresError) {
        var bytes: [UInt8] = [UInt8(ascii: "r")]
        for number in [written, flushed, flushed, 0] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }
        bytes.append(0)
        wire.limit(options.answer)
        try put(bytes)
    }

    /// Returns a position in the write-ahead log as PostgreSQL writes it: `16/B374D848`.
    public static func lsn(_ position: UInt64) -> String {
        String(position >> 32, radix: 16, uppercase: true) + "/"
            + String(position & 0xffff_ffff, radix: 16, uppercase: true)
    }

    /// Reads a position as PostgreSQL writes it; nil if the text is no position.
    public static func position(_ lsn: String) -> UInt64? {
        let parts = lsn.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let high = UInt64(parts[0], radix: 16),
            let low = UInt64(parts[1], radix: 16), high >> 32 == 0, low >> 32 == 0
        else { return nil }
        return high << 32 | low
    }

    /// Reads a message of the stream; nil if it is of another kind
    /// (https://www.postgresql.org/docs/15/protocol-replication.html).
    private static func message(_ bytes: UnsafeRawBufferPointer) -> ReplicationMessage? {
        func number(at offset: Int) -> UInt64 {
            bytes[offset..<(offset + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch bytes.first {
        // A message with data: its start, the end of the server's log, the time, and the data.
        case UInt8(ascii: "w") where bytes.count >= 25: return .data([UInt8](bytes[25...]))
        case UInt8(ascii: "k") where bytes.count >= 18: return .reached(number(at: 1))
        default: return nil
        }
    }

    /// Returns why the slot sends no more.
    private func ended() -> PostgresError {
        guard let result = try? wire.result() else { return wire.lost() }
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_FATAL_ERROR else { return wire.lost() }
        return wire.error(result, sql: nil)
    }
}
