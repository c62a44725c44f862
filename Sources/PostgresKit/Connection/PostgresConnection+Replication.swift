internal import CPostgres

/// What a replication slot sends.
public enum ReplicationMessage: Hashable, Sendable {
    /// A message of the slot's output plug-in.
    case data([UInt8])
    /// Everything before this place of the write-ahead log has been sent.
    case reached(UInt64)
}

extension PostgresConnection {
    /// Opens a connection that can read a logical replication slot, and run statements until it does.
    /// - Throws: `PostgresError`, such as `.forbidden` for a role without the REPLICATION attribute.
    public static func replicating(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions()
    ) throws(PostgresError) -> PostgresConnection {
        try PostgresConnection(address.setting("replication", "database"), options)
    }

    /// Begins to read a slot with the plug-in pgoutput; from here on only `replicated` and
    /// `confirmReplicated` can be called.
    /// - Parameter position: Transactions that ended before it are not sent; nor are those that the
    ///   slot was told to be done with.
    /// - Throws: `PostgresError`, `.busy` where somebody else reads the slot.
    public func startReplication(
        slot: String, publication: String, from position: UInt64
    ) throws(PostgresError) {
        try check()
        let sql = """
            START_REPLICATION SLOT \(Self.quoted(slot)) LOGICAL \(Self.place(position)) \
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
    /// - Parameter limit: nil to wait until there is one or `wake` is signalled.
    /// - Returns: nil when the time is over.
    /// - Throws: `PostgresError` when the server has ended it, or the connection is lost.
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

    /// Says how far the slot's messages have been taken.
    /// - Parameters:
    ///   - written: Received up to here.
    ///   - flushed: Never needed again up to here: the server lets go of its write-ahead log.
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

    /// A place in the write-ahead log as PostgreSQL writes it: `16/B374D848`.
    public static func place(_ position: UInt64) -> String {
        String(position >> 32, radix: 16, uppercase: true) + "/"
            + String(position & 0xffff_ffff, radix: 16, uppercase: true)
    }

    /// Reads what PostgreSQL writes; nil for what is no such place.
    public static func position(_ place: String) -> UInt64? {
        let parts = place.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let high = UInt64(parts[0], radix: 16),
            let low = UInt64(parts[1], radix: 16), high >> 32 == 0, low >> 32 == 0
        else { return nil }
        return high << 32 | low
    }

    /// https://www.postgresql.org/docs/15/protocol-replication.html
    private static func message(_ bytes: UnsafeRawBufferPointer) -> ReplicationMessage? {
        func number(at place: Int) -> UInt64 {
            bytes[place..<(place + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch bytes.first {
        // Data: where it begins, where the server's log ends, the time.
        case UInt8(ascii: "w") where bytes.count >= 25: return .data([UInt8](bytes[25...]))
        case UInt8(ascii: "k") where bytes.count >= 18: return .reached(number(at: 1))
        default: return nil
        }
    }

    /// Why the slot sends no more.
    private func ended() -> PostgresError {
        guard let result = try? wire.result() else { return wire.lost() }
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_FATAL_ERROR else { return wire.lost() }
        return wire.error(result, sql: nil)
    }
}
