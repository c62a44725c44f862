internal import CPostgres
internal import ConnectionKit

/// Makes connections.
enum Opening {
    /// Connects to a server, and waits no longer than the options allow. Only the system's look-up
    /// of the host's name has no such limit.
    /// - Throws: `PostgresError`, with a kind that says what is wrong with the address or the
    ///   server.
    static func open(
        _ address: PostgresAddress, _ options: PostgresOptions
    ) throws(PostgresError) -> Wire {
        let wake: Wake
        do {
            wake = try Wake()
        } catch {
            throw PostgresError(.exhausted, "\(error)")
        }
        // With these settings the system, too, notices a server that vanishes without closing the
        // connection.
        let complete = address.completed(
            address.hasSeveralHosts ? [("target_session_attrs", "read-write")] : []
        ).completed([
            ("application_name", options.name), ("client_encoding", "UTF8"),
            ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "30000"),
        ])
        guard let pointer = start(complete.settings) else {
            throw PostgresError(.exhausted, "there is no memory for a connection")
        }
        let wire = Wire(pointer, wake, answer: options.answer)
        // The verbose form has the server's code, which a refused connection reports nowhere else.
        PQsetErrorVerbosity(pointer, PQERRORS_VERBOSE)
        wire.takeNotices()
        try establish(wire, Deadline(after: options.connecting))
        PQsetErrorVerbosity(pointer, PQERRORS_DEFAULT)
        guard PQsetnonblocking(pointer, 1) == 0 else { throw wire.lost() }
        return wire
    }

    private static func start(_ settings: [PostgresAddress.Setting]) -> OpaquePointer? {
        var bytes: [UInt8] = []
        var starts: [Int] = []
        for text in settings.flatMap({ [$0.name, $0.value] }) {
            starts.append(bytes.count)
            bytes += text.utf8
            bytes.append(0)
        }
        return bytes.withUnsafeBytes { all in
            guard let base = all.baseAddress?.assumingMemoryBound(to: CChar.self) else {
                return PQconnectStart("")
            }
            let texts = starts.map { Optional(base.advanced(by: $0)) }
            let names = stride(from: 0, to: texts.count, by: 2).map { texts[$0] } + [nil]
            let values = stride(from: 1, to: texts.count, by: 2).map { texts[$0] } + [nil]
            return PQconnectStartParams(names, values, 0)
        }
    }

    /// Carries on the connection's start until the server accepts it
    /// (https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-PQCONNECTSTARTPARAMS).
    private static func establish(_ wire: Wire, _ deadline: Deadline) throws(PostgresError) {
        guard !wire.isLost else { throw refusal(wire) }
        var state = PGRES_POLLING_WRITING
        while true {
            switch state {
            case PGRES_POLLING_OK: return
            case PGRES_POLLING_READING, PGRES_POLLING_WRITING: break
            default: throw refusal(wire)
            }
            let outcome: Wake.Outcome
            do {
                outcome = try wire.wake.wait(
                    PQsocket(wire.pointer), reading: state == PGRES_POLLING_READING,
                    writing: state == PGRES_POLLING_WRITING, until: deadline)
            } catch {
                throw PostgresError(.unreachable, "\(error)")
            }
            guard !outcome.isEmpty else {
                throw PostgresError(.unreachable, "the server did not answer in time")
            }
            state = PQconnectPoll(wire.pointer)
        }
    }

    /// Returns why there is no connection. The library keeps only the text of a refusal. The
    /// verbose form of that text has the server's code after the severity: “FATAL:  28P01: …”.
    private static func refusal(_ wire: Wire) -> PostgresError {
        let words = wire.words
        if let state = code(in: words) {
            let kind = PostgresError.Kind(sqlState: state)
            return PostgresError(kind, words, sqlState: state)
        }
        if PQconnectionNeedsPassword(wire.pointer) == 1 {
            return PostgresError(.unauthorized, words)
        }
        let isTLS = words.contains("SSL") || words.contains("certificate")
        let isSetting = words.contains("invalid ") && words.contains("value")
        return PostgresError(
            isSetting ? .malformedAddress : isTLS ? .untrusted : .unreachable, words)
    }

    private static func code(in words: String) -> String? {
        let parts = words.split(separator: ":").dropFirst().map { $0.drop { $0 == " " } }
        return parts.first { part in
            part.utf8.count == 5
                && part.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) }
                && part.utf8.contains { (48...57).contains($0) }
        }.map(String.init)
    }
}
