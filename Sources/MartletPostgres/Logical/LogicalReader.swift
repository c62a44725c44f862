package import MartletServerCore
package import PostgresKit

/// Reads external writes from a data set's replication slot, and notes them for the log.
///
/// Only one process reads at a time. It holds a lock of the database as long as it is connected,
/// and other processes try again and again. If the slot is gone, or has lost unread writes, the
/// reader recreates it, and compares the tables with the log. The reader is confined to its holder,
/// and blocks.
package final class LogicalReader {
    /// The result of a step.
    package enum Outcome: Hashable, Sendable {
        /// This process reads, and has noted writes for the log.
        case found
        /// This process reads, and there was nothing.
        case reading
        /// Another process reads.
        case elsewhere
        /// The data set has triggers in place of a slot.
        case unused
    }

    /// The most messages to take before they are committed, if they do not end.
    private static let mostMessages = 20_000
    /// The number of Martlet's own transactions after which the position is committed.
    private static let mostUnsaid = 64
    /// The number of the lock: “martlet” in ASCII.
    private static let lock: Int64 = 0x6d_6172_746c_6574

    private let address: PostgresAddress
    private var open: Open?
    /// Sentences for the server's log about repairs, until the caller takes them.
    private var notes: [String] = []
    /// Sentences about tables whose writes are not all read, and what to do.
    package private(set) var faults: [String] = []
    /// The moment when the reader restarts, because tables must still be compared with the log.
    private var again: ContinuousClock.Instant?
    /// The time to wait for transactions before the tables are checked again.
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

    /// Closes the connections. Any process may then read the slot.
    package func close() {
        open?.stream.close()
        open?.connection.close()
        open = nil
    }

    /// Returns the sentences about repairs, and clears them.
    package func takeNotes() -> [String] {
        defer { notes = [] }
        return notes
    }

    /// The position up to which the reader has read and committed its notes; nil if it does not
    /// read.
    var position: UInt64? {
        guard let intake = open?.intake, !intake.hasChanges else { return nil }
        return intake.position
    }

    /// Whether tables must still be compared with the log, because transactions are open. The reader
    /// tries it again after a pause.
    var isWaitingToCompare: Bool { again != nil }

    /// Takes the messages that have arrived, or waits for some for at most `limit`.
    /// - Throws: `StorageFault`. The next step then reconnects.
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
        // After an error the discarded messages are read again.
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

    /// Takes messages, and commits their notes if they are due.
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
            // PostgreSQL ends a stream if it receives nothing from the reader for long.
            try open.stream.confirmReplicated(
                written: open.confirmed, flushed: open.confirmed)
            return false
        }
        let intake = open.intake
        let isDue =
            intake.hasChanges || intake.isAwaited || intake.hasNews
            || intake.unsaid >= (isQuiet && taken == 0 ? 1 : Self.mostUnsaid)
        if isDue { try open.intake.keep() }
        // All external writes up to there are committed.
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
            // A mere position may be lost.
            try connection.execute("SET synchronous_commit = off")
            // The state is read again, because only the lock's holder may change it.
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
                // The previous reader has not disconnected yet.
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
