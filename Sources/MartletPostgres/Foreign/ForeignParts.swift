import MartletCore
import MartletProtocol
import MartletServerCore
import PostgresKit

/// Takes a large transaction in parts, each an entry of its own, in the order of the changes.
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

    /// Takes about so many bytes, one part for each transaction.
    func take(maxBytes: Int, into entries: inout ForeignEntries) throws(PostgresError) {
        var bytes = 0
        for (transaction, author) in try reading.transactions(on: connection, limit: 1_000) {
            var part = Part()
            var number: Int64 = 0
            var isLast = false
            while !isLast, bytes + part.bytes < maxBytes {
                let page = try reading.page(of: transaction, after: number, on: connection)
                for line in page.lines {
                    number = line.number
                    if let record = line.record { part.add(record) }
                }
                isLast = page.isLast
            }
            try complete(&part)
            bytes += part.bytes
            try entries.enter(part.records, authors: [author])
            // Before the next page is read: a record that was taken counts as known then.
            try entries.write(taken(transaction, through: number, isLast: isLast))
            guard bytes < maxBytes else { return }
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
