import MartletCore
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Takes a large transaction in parts, each an entry of its own, in the order of the changes. It
/// takes very many small transactions several to an entry.
///
/// Rows are read page by page, each page at a snapshot of its own, so a row may already hold what
/// a later change gave it. No entry refers to a record the log does not have: what is missing is
/// taken along.
struct ForeignParts {
    private let connection: PostgresConnection
    private let reading: ForeignReading
    private let columns: [TypeColumns]
    private let unsendable: UnsendableRows
    private let schema: Schema

    init(
        on connection: PostgresConnection, reading: ForeignReading, columns: [TypeColumns],
        unsendable: UnsendableRows, schema: Schema
    ) {
        self.connection = connection
        self.reading = reading
        self.columns = columns
        self.unsendable = unsendable
        self.schema = schema
    }

    /// A part being gathered.
    private struct Part {
        var records: [ForeignRecord] = []
        var places: [RecordAddress: Int] = [:]
        var bytes = 0

        mutating func add(_ record: ForeignRecord) {
            guard places[record.address] == nil else { return }
            places[record.address] = records.count
            records.append(record)
            bytes += record.byteCount
        }
    }

    /// The most transactions that one drain looks at. A drain takes so many of a backlog before the
    /// devices' sets that wait for it.
    private static let mostTransactions = 1_000
    /// The most small transactions in one entry.
    private static let together = 100

    /// Takes changes of about the given number of bytes, one part for each transaction, and begins no
    /// page after the time for it. In a long backlog, consecutive small transactions become one part.
    func take(maxBytes: Int, into entries: inout ForeignEntries) throws(PostgresError) {
        let pending = try reading.transactions(on: connection, limit: Self.mostTransactions)
        let isBacklog = pending.count >= Self.mostTransactions
        let deadline = ContinuousClock.now + reading.extent.time
        var bytes = 0
        var next = 0
        while next < pending.count, bytes < maxBytes, next == 0 || ContinuousClock.now < deadline {
            let run =
                isBacklog ? pending[next...].prefix(Self.together).prefix(while: \.isSmall) : []
            if run.count > 1 {
                bytes += try take(Array(run), into: &entries)
                next += run.count
            } else {
                bytes += try take(
                    pending[next], maxBytes: maxBytes - bytes, until: deadline, into: &entries)
                next += 1
            }
        }
    }

    /// - Returns: The approximate number of bytes taken.
    private func take(
        _ pending: ForeignReading.Pending, maxBytes: Int, until deadline: ContinuousClock.Instant,
        into entries: inout ForeignEntries
    ) throws(PostgresError) -> Int {
        var part = Part()
        var number: Int64 = 0
        var isLast = false
        while !isLast, part.bytes < maxBytes, number == 0 || ContinuousClock.now < deadline {
            let page = try reading.page(of: pending.transaction, after: number, on: connection)
            for line in page.lines {
                number = line.number
                if let record = line.record { part.add(record) }
            }
            isLast = page.isLast
        }
        try complete(&part)
        try entries.enter(part.records, authors: [pending.author])
        // This comes before the next page is read, in which a taken record counts as known.
        try entries.write(taken(pending.transaction, through: number, isLast: isLast))
        return part.bytes
    }

    /// Takes several small transactions as one.
    private func take(
        _ run: [ForeignReading.Pending], into entries: inout ForeignEntries
    ) throws(PostgresError) -> Int {
        var part = Part()
        let transactions = run.map(\.transaction)
        for line in try reading.lines(of: transactions, on: connection) {
            if let record = line.record { part.add(record) }
        }
        try complete(&part)
        try entries.enter(part.records, authors: run.map(\.author))
        let those = "IN (SELECT t::text::xid8 FROM unnest($1::bigint[]) AS t)"
        let taken = [PendingWrites.integers(transactions)]
        try entries.write([
            PostgresStatement(
                "DELETE FROM _martlet.foreign_changes WHERE transaction \(those)", taken),
            PostgresStatement(
                "DELETE FROM _martlet.foreign_transactions WHERE transaction \(those)", taken),
        ])
        return part.bytes
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

    /// Takes along what the part's records refer to and the log does not have.
    private func complete(_ part: inout Part) throws(PostgresError) {
        var next = 0
        while next < part.records.count {
            var wanted: Set<RecordAddress> = []
            for record in part.records[next...] {
                guard case .present(let row) = record.row else { continue }
                for (attribute, target) in columns[record.address.type].references {
                    guard let id = row[attribute].flatMap({ RecordID($0) }) else { continue }
                    let address = RecordAddress(target, id)
                    if part.places[address] == nil { wanted.insert(address) }
                }
            }
            next = part.records.count
            let sorted = wanted.sorted {
                ($0.type, $0.id.description) < ($1.type, $1.id.description)
            }
            for parent in try reading.unknown(among: sorted, on: connection)
            where parent.row != .absent {
                part.add(parent)
            }
        }
    }
}
