internal import CPostgres

extension PostgresConnection {
    /// Sends rows to `COPY … FROM STDIN`, in the format that the statement names.
    /// - Parameter next: Returns the next bytes, cut anywhere; nil at the end. If it throws, the
    ///   server undoes the whole COPY.
    /// - Returns: The number of rows copied.
    /// - Throws: `PostgresError`, or the error of `next`.
    /// - Complexity: O(*n*) in the bytes copied.
    public func copyIn(_ sql: String, _ next: () throws -> [UInt8]?) throws -> Int {
        try startCopy(sql, PGRES_COPY_IN)
        do {
            while let bytes = try next() {
                wire.limit(options.answer)
                try put(bytes)
            }
        } catch {
            if !wire.isLost {
                PQputCopyEnd(wire.pointer, "given up by the client")
                try wire.flush()
                _ = try? finish(sql: sql)
            }
            throw error
        }
        wire.limit(options.answer)
        guard PQputCopyEnd(wire.pointer, nil) == 1 else { throw wire.lost(sql: sql) }
        try wire.flush()
        return try finish(sql: sql)?.affectedCount ?? 0
    }

    /// Receives the rows of `COPY … TO STDOUT`, in the format that the statement names.
    /// - Parameter row: Receives one row at a time, with its line feed if the format has one. If it
    ///   throws, the rest of the rows is dropped.
    /// - Returns: The number of rows copied.
    /// - Throws: `PostgresError`, or the error of `row`.
    /// - Complexity: O(*n*) in the bytes copied.
    public func copyOut(_ sql: String, _ row: ([UInt8]) throws -> Void) throws -> Int {
        try startCopy(sql, PGRES_COPY_OUT)
        do {
            while let bytes = try takeCopied() { try row(bytes) }
        } catch {
            if !wire.isLost {
                wire.giveUp()
                while try takeCopied() != nil {}
                _ = try? finish(sql: sql)
            }
            throw error
        }
        return try finish(sql: sql)?.affectedCount ?? 0
    }

    /// Ends a COPY inside a script. Nothing there sends or receives its rows.
    func refuseCopy() throws(PostgresError) {
        if PQputCopyEnd(wire.pointer, "COPY has calls of its own") == 1 {
            try wire.flush()
        } else {
            while try takeCopied() != nil {}
        }
    }

    private func startCopy(_ sql: String, _ wanted: ExecStatusType) throws(PostgresError) {
        try check()
        wire.begin(
            mayCommit: !isInTransaction && wanted == PGRES_COPY_IN && !options.readOnly)
        guard PQsendQuery(wire.pointer, sql) == 1 else { throw wire.lost(sql: sql) }
        try wire.flush()
        guard let result = try wire.result() else { throw wire.lost(sql: sql) }
        let status = PQresultStatus(result)
        if status == wanted {
            PQclear(result)
            return
        }
        let error =
            status == PGRES_FATAL_ERROR
            ? wire.error(result, sql: sql)
            : PostgresError(.misuse, "the statement is no COPY of this direction", sql: sql)
        PQclear(result)
        if status == PGRES_COPY_IN || status == PGRES_COPY_OUT { try refuseCopy() }
        if !wire.isLost { _ = try? finish(sql: sql) }
        throw error
    }

    /// Sends the data of a COPY or of a replication stream as one message.
    func put(_ bytes: [UInt8]) throws(PostgresError) {
        while true {
            let sent = bytes.withUnsafeBytes { all in
                PQputCopyData(
                    wire.pointer, all.baseAddress?.assumingMemoryBound(to: CChar.self),
                    Int32(all.count))
            }
            if sent == 1 { break }
            guard sent == 0 else { throw wire.lost() }
            try wire.step(writing: true)
        }
        try wire.flush()
    }

    /// Returns the next data of a COPY; nil at the end.
    private func takeCopied() throws(PostgresError) -> [UInt8]? {
        wire.limit(options.answer)
        while true {
            var buffer: UnsafeMutablePointer<CChar>?
            let count = PQgetCopyData(wire.pointer, &buffer, 1)
            if count > 0, let buffer {
                defer { PQfreemem(buffer) }
                return [UInt8](UnsafeRawBufferPointer(start: buffer, count: Int(count)))
            }
            guard count == 0 else { return nil }
            try wire.step(writing: false)
        }
    }
}
