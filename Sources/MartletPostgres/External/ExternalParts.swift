import MartletEmbedded
import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Takes a large transaction in parts, in the order of its changes, with an entry for each part. It
/// takes very many small transactions several to an entry.
///
/// It reads rows page by page, each page at its own snapshot. So a row may already have the values
/// of a later change, or be gone. No entry leaves a record that refers to one missing in the log:
/// such missing records are taken along, and deletions of records that others may refer to wait
/// (`ExternalHeld`).
struct ExternalParts {
    private let connection: PostgresConnection
    private let reading: ExternalScan
    private let columns: [TypeColumns]
    private let held: ExternalHeld
    /// The types' numbers in the notes.
    private let numbers: [Int64]

    init(
        on connection: PostgresConnection, reading: ExternalScan, columns: [TypeColumns],
        held: ExternalHeld, numbers: [Int64]
    ) {
        self.connection = connection
        self.reading = reading
        self.columns = columns
        self.held = held
        self.numbers = numbers
    }

    /// A part that is being collected.
    private struct Part {
        var records: [ExternalRecord] = []
        var indices: [RecordAddress: Int] = [:]
        var bytes = 0
        /// The numbers of changes that are noted again as deletions that wait.
        var held: [Int64] = []
        /// The last change that was read.
        var number: Int64 = 0
        /// Whether nothing follows this part.
        var isLast = false

        mutating func add(_ record: ExternalRecord) {
            guard indices[record.address] == nil else { return }
            indices[record.address] = records.count
            records.append(record)
            bytes += record.byteCount
        }
    }

    /// The most transactions that one drain looks at. If there is a backlog, a drain takes this
    /// many before the waiting sets of devices.
    private static let mostTransactions = 1_000
    /// The most small transactions in one entry.
    private static let together = 100
    /// The number of times that a part is read if rows disappear meanwhile.
    private static let attempts = 3

    /// Takes changes of about the given number of bytes, one part for each transaction, and begins
    /// no page after the allowed time. In a long backlog, consecutive small transactions become one
    /// part.
    func take(maxBytes: Int, into entries: inout ExternalEntries) throws(PostgresError) {
        let pending = try reading.transactions(on: connection, limit: Self.mostTransactions)
        let isBacklog = pending.count >= Self.mostTransactions
        let deadline = ContinuousClock.now + reading.extent.time
        var bytes = 0
        var next = 0
        var isWhole = !isBacklog
        while next < pending.count, bytes < maxBytes, next == 0 || ContinuousClock.now < deadline {
            let run =
                isBacklog ? pending[next...].prefix(Self.together).prefix(while: \.isSmall) : []
            let part =
                run.count > 1
                ? try take(Array(run), into: &entries)
                : try take(
                    pending[next], maxBytes: maxBytes - bytes, until: deadline, into: &entries)
            next += max(run.count, 1)
            bytes += part.bytes
            isWhole = isWhole && part.isLast
        }
        guard isWhole, next == pending.count, bytes < maxBytes,
            bytes == 0 || ContinuousClock.now < deadline
        else { return }
        try takeHeld(maxBytes: maxBytes - bytes, until: deadline, into: &entries)
    }

    private func take(
        _ pending: ExternalScan.Pending, maxBytes: Int, until deadline: ContinuousClock.Instant,
        into entries: inout ExternalEntries
    ) throws(PostgresError) -> Part {
        let part = try completed { () throws(PostgresError) in
            var part = Part()
            while !part.isLast, part.bytes < maxBytes,
                part.number == 0 || ContinuousClock.now < deadline
            {
                let page = try reading.page(
                    of: pending.transaction, after: part.number, on: connection)
                add(page.lines, to: &part)
                part.isLast = page.isLast
            }
            return part
        }
        try entries.enter(part.records, authors: [pending.author])
        // This comes before the next page is read, in which a taken record counts as known.
        try entries.write(
            ExternalHeld.hold(part.held, of: [pending.transaction], authors: [pending.author])
                + taken(pending.transaction, through: part.number, isLast: part.isLast))
        return part
    }

    /// Takes several small transactions as one.
    private func take(
        _ run: [ExternalScan.Pending], into entries: inout ExternalEntries
    ) throws(PostgresError) -> Part {
        let transactions = run.map(\.transaction)
        let authors = run.map(\.author)
        let part = try completed { () throws(PostgresError) in
            var part = Part(isLast: true)
            add(try reading.lines(of: transactions, on: connection), to: &part)
            return part
        }
        try entries.enter(part.records, authors: authors)
        let those = "IN (SELECT t::text::xid8 FROM unnest($1::bigint[]) AS t)"
        let taken = [PendingWrites.integers(transactions)]
        try entries.write(
            ExternalHeld.hold(part.held, of: transactions, authors: authors) + [
                PostgresStatement(
                    "DELETE FROM _martlet.foreign_changes WHERE transaction \(those)", taken),
                PostgresStatement(
                    "DELETE FROM _martlet.foreign_transactions WHERE transaction \(those)", taken),
            ])
        return part
    }

    private func add(_ lines: [ExternalScan.Page.Line], to part: inout Part) {
        for line in lines {
            part.number = line.number
            guard let record = line.record else { continue }
            if held.holds(record) {
                part.held.append(line.number)
                part.bytes += record.byteCount
            } else if record.isKnown || record.row != .absent {
                part.add(record)
            }
        }
    }

    private func taken(
        _ transaction: Int64, through number: Int64, isLast: Bool
    ) -> [PostgresStatement] {
        var statements = [
            PostgresStatement(
                """
                DELETE FROM _martlet.foreign_changes \
                WHERE transaction = $1::text::xid8 AND number <= $2
                """, [.text(String(transaction)), .integer(number)])
        ]
        let end =
            isLast
            ? "DELETE FROM _martlet.foreign_transactions"
            : "UPDATE _martlet.foreign_transactions SET parted = true"
        statements.append(
            PostgresStatement(
                "\(end) WHERE transaction = $1::text::xid8", [.text(String(transaction))]))
        return statements
    }
}

// MARK: - What records refer to

extension ExternalParts {
    /// Collects a part, with all records that its records refer to and the log does not have.
    private func completed(
        _ gather: () throws(PostgresError) -> Part
    ) throws(PostgresError) -> Part {
        var part = try gather()
        // A record no longer refers to one that another program deleted meanwhile. Without foreign
        // keys, such as in a session of a replica, it may; the tables then have the same state.
        for attempt in 1... {
            guard try !complete(&part), attempt < Self.attempts else { break }
            part = try gather()
        }
        return part
    }

    /// Adds the records that the part's records refer to and the log does not have.
    /// - Returns: Whether all of them exist.
    private func complete(_ part: inout Part) throws(PostgresError) -> Bool {
        var next = 0
        while next < part.records.count {
            var wanted: Set<RecordAddress> = []
            for record in part.records[next...] {
                guard case .present(let row) = record.row else { continue }
                for (attribute, target) in columns[record.address.type].references {
                    guard let id = row[attribute].flatMap({ RecordID($0) }) else { continue }
                    let address = RecordAddress(target, id)
                    if part.indices[address] == nil { wanted.insert(address) }
                }
            }
            next = part.records.count
            let sorted = wanted.sorted {
                ($0.type, $0.id.description) < ($1.type, $1.id.description)
            }
            for parent in try reading.unknown(among: sorted, on: connection) {
                guard parent.row != .absent else { return false }
                part.add(parent)
            }
        }
        return true
    }
}

// MARK: - Deletions that wait

extension ExternalParts {
    /// Takes the deletions that wait. Everything else that was pending has been taken.
    private func takeHeld(
        maxBytes: Int, until deadline: ContinuousClock.Instant, into entries: inout ExternalEntries
    ) throws(PostgresError) {
        guard let authors = try ExternalHeld.authors(on: connection) else { return }
        var bytes = 0
        for group in held.groups {
            var isLast = false
            while !isLast {
                guard bytes < maxBytes, bytes == 0 || ContinuousClock.now < deadline else { return }
                var through: [Int: String] = [:]
                let part = try completed { () throws(PostgresError) in
                    through = [:]
                    return try gather(
                        group, maxBytes: maxBytes - bytes, until: deadline, &through)
                }
                isLast = part.isLast
                bytes += part.bytes
                let last = through.sorted { $0.key < $1.key }
                guard !last.isEmpty else { continue }
                guard try isComplete(last) else { return }
                try entries.enter(part.records, authors: authors)
                try entries.write(
                    last.map { ExternalHeld.taken(numbers[$0.key], through: $0.value) })
            }
        }
        try entries.write(ExternalHeld.end)
    }

    /// Returns whether there are no other notes of deletions that were just read. If a record is
    /// gone, and no note of it is pending, the transaction that deleted it has been taken, together
    /// with all those noted by then. These contain the last change of every record that had
    /// referred to it.
    private func isComplete(_ last: [(key: Int, value: String)]) throws(PostgresError) -> Bool {
        guard held.catchUp() else { return false }
        for (type, id) in last
        where try reading.isNotedAgain(type, through: id, on: connection) { return false }
        return true
    }

    /// Collects waiting deletions of a group of types. If the group's records may refer to each
    /// other, it collects all, up to `Extent.circle`.
    /// - Parameter through: The last id that was read, for each type.
    private func gather(
        _ group: [Int], maxBytes: Int, until deadline: ContinuousClock.Instant,
        _ through: inout [Int: String]
    ) throws(PostgresError) -> Part {
        let isCircular = held.isCircular(group)
        let room = isCircular ? max(maxBytes, reading.extent.circle) : maxBytes
        var part = Part(isLast: true)
        for type in group {
            var isLast = false
            while !isLast {
                guard part.bytes < room,
                    isCircular || through.isEmpty || ContinuousClock.now < deadline
                else {
                    part.isLast = false
                    return part
                }
                let page = try reading.held(type, after: through[type], on: connection)
                for line in page.lines {
                    if let record = line.record { part.add(record) }
                    through[type] = line.id
                }
                isLast = page.isLast
            }
        }
        return part
    }
}
