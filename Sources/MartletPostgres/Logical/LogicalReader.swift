package import MartletServerCore
package import PostgresKit

/// Reads what other programs wrote from a data set's replication slot, and notes it for the log.
///
/// One process at a time does: it holds a lock of the database's for as long as it is connected. The
/// others try again and again. A slot that is gone, or has lost what was not read, is made anew, and
/// what the tables hold is compared with the log. Confined to whoever holds it; blocks.
package final class LogicalReader {
    /// What a step found.
    package enum Outcome: Hashable, Sendable {
        /// It reads, and has noted what the log has yet to take.
        case found
        /// It reads; there was nothing.
        case reading
        /// Another process does.
        case elsewhere
        /// The data set has triggers.
        case unused
    }

    /// How many messages are taken before they are kept, where they do not end.
    private static let mostMessages = 20_000
    /// Transactions of Martlet's own after which it is said how far this has come.
    private static let mostUnsaid = 64
    /// The number of the lock: “martlet” in ASCII.
    private static let lock: Int64 = 0x6d_6172_746c_6574

    private let address: PostgresAddress
    private var open: Open?
    /// Sentences for the server's log about what was repaired; taken by whoever reads them.
    private var notes: [String] = []
    /// Sentences about tables whose writes are not all read, with what to do.
    package private(set) var faults: [String] = []
    /// When it begins again, because tables are yet to be compared with the log.
    private var again: ContinuousClock.Instant?
    /// How long transactions are waited for before the tables are looked at again.
    private static let pause = Duration.seconds(10)

    private struct Open {
        let connection: PostgresConnection
        let stream: PostgresConnection
        var intake: LogicalIntake
        var confirmed: UInt64 = 0
    }

    package init(_ address: PostgresAddress) {
        self.address = address
    }

    /// Ends the connections; the slot is anybody's.
    package func close() {
        open?.stream.close()
        open?.connection.close()
        open = nil
    }

    package func takeNotes() -> [String] {
        defer { notes = [] }
        return notes
    }

    /// The place up to which the reader has read and committed its notes; nil if it does not read.
    var position: UInt64? {
        guard let intake = open?.intake, !intake.hasChanges else { return nil }
        return intake.position
    }

    /// Takes what has come, waiting for it no longer than said.
    /// - Throws: `StorageFault`; the next step begins anew.
    package func step(within limit: Duration) throws(StorageFault) -> Outcome {
        do {
            return try read(within: limit)
        } catch {
            close()
            if let fault = error as? StorageFault { throw fault }
            throw (error as? PostgresError).map { StorageFault($0) }
                ?? StorageFault(.failed, "\(error)")
        }
    }

    private func read(within limit: Duration) throws -> Outcome {
        if let again, again <= .now { close() }
        if open == nil {
            switch try begin() {
            case .reading: break
            case let other: return other
            }
        }
        guard var open else { return .elsewhere }
        // What is thrown away with an error is read again.
        self.open = nil
        let hasFound: Bool
        do {
            hasFound = try take(&open, within: limit)
        } catch {
            open.stream.close()
            open.connection.close()
            throw error
        }
        if open.intake.hasMissed { again = .now }
        self.open = open
        return hasFound ? .found : .reading
    }

    /// - Returns: Whether other programs have written anything.
    private func take(_ open: inout Open, within limit: Duration) throws -> Bool {
        var taken = 0
        var limit = limit
        var isQuiet = false
        while taken < Self.mostMessages, !open.intake.isEnding || taken > 0,
            !open.intake.isAwaited || open.intake.isWithin
        {
            guard let message = try open.stream.replicated(within: limit) else {
                isQuiet = true
                break
            }
            try open.intake.take(message)
            taken += 1
            limit = .zero
        }
        guard !open.intake.isWithin else { return false }
        guard try open.intake.awaitEnds() else {
            // PostgreSQL ends a stream from which it receives nothing for long.
            try open.stream.confirmReplicated(
                written: open.confirmed, flushed: open.confirmed)
            return false
        }
        let intake = open.intake
        let isDue =
            intake.hasChanges || intake.isAwaited || intake.hasNews
            || intake.unsaid >= (isQuiet && taken == 0 ? 1 : Self.mostUnsaid)
        if isDue { try open.intake.keep() }
        // Whatever was of another program has been kept.
        if open.confirmed < open.intake.position {
            open.confirmed = open.intake.position
            try open.stream.confirmReplicated(
                written: open.confirmed, flushed: open.confirmed)
        }
        return intake.hasChanges
    }

    // MARK: - Beginning

    private static func options(_ name: String) -> PostgresOptions {
        PostgresOptions(
            connecting: .seconds(5), statement: nil, lock: .seconds(10), idleInTransaction: nil,
            answer: nil, name: name)
    }

    private func begin() throws -> Outcome {
        let connection = try PostgresConnection(address, Self.options("martlet changes"))
        do {
            guard try LogicalState.read(connection) != nil else {
                connection.close()
                return .unused
            }
            let lock = try connection.query(
                "SELECT pg_try_advisory_lock($1)", [.integer(Self.lock)])
            guard try lock.boolean(0, 0) else {
                connection.close()
                return .elsewhere
            }
            let mending = try LogicalMending(on: connection).run()
            notes += mending.notes
            faults = mending.faults
            again = mending.isWaiting ? .now + Self.pause : nil
            // What is only how far this has come may be lost.
            try connection.execute("SET synchronous_commit = off")
            // Again: what it says is the lock's holder's to change.
            guard let state = try LogicalState.read(connection), let position = state.position
            else {
                connection.close()
                return .unused
            }
            let stream = try PostgresConnection.replicating(
                address, Self.options("martlet slot"))
            do throws(PostgresError) {
                try stream.startReplication(
                    slot: state.slot, publication: state.publication, from: position)
            } catch {
                stream.close()
                // Whoever read it before has yet to leave.
                guard error.sqlState == "55006" else { throw error }
                connection.close()
                return .elsewhere
            }
            open = Open(
                connection: connection, stream: stream,
                intake: try LogicalIntake(
                    on: connection, position: position, horizon: state.horizon))
            return .reading
        } catch {
            connection.close()
            throw error
        }
    }
}

@available(*, unavailable)
extension LogicalReader: Sendable {}
