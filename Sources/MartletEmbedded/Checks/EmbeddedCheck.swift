package import MartletModel
package import MartletProtocol
package import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Compares devices' ranges with the rows of a data set's file, each comparison in one read
/// transaction.
///
/// The device's revision is usually older. A record that has changed since is left out and named.
/// All others had their present state at that revision, so the result about them holds for every
/// revision in between.
package final class EmbeddedCheck: CheckSource {
    /// The number of rows, on either side, up to which a range is answered with the rows
    /// themselves.
    static let fewRows: Int64 = 16

    private let path: String
    private let vfs: String?
    private let schema: Schema
    private let unsendable: UnsendableRows
    private var connection: Connection?
    private var tables = OpenedTables()
    package var consistently: ConsistentReading?

    package init(path: String, vfs: String?, schema: Schema, unsendable: UnsendableRows) {
        self.unsendable = unsendable
        self.path = path
        self.vfs = vfs
        self.schema = schema
    }

    package func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer {
        do throws(StorageFault) {
            let connection = try opened()
            try ConsistentRead(consistently: consistently).begin(on: connection, &tables)
            defer { connection.rollback() }
            do throws(SQLiteError) {
                return try compare(request, on: connection)
            } catch {
                throw StorageFault(error)
            }
        } catch {
            connection = nil
            throw error
        }
    }

    /// Returns the steps of SQLite's virtual machine since the last call.
    package func takeSteps() -> Int { connection?.takeVirtualMachineSteps() ?? 0 }

    private func opened() throws(StorageFault) -> Connection {
        if let connection { return connection }
        do throws(SQLiteError) {
            // In WAL mode, readers too need write access to the shared memory.
            let open = try Connection(
                path: path, mode: .readWrite, vfs: vfs, refusesQuotedText: true)
            try open.execute("PRAGMA query_only = ON")
            connection = open
            return open
        } catch {
            throw StorageFault(error)
        }
    }

    private func compare(
        _ request: CheckRequest, on connection: Connection
    ) throws(SQLiteError) -> CheckAnswer {
        let head = try connection.integer("SELECT revision FROM martlet_dataset") ?? 0
        var budget = RangeComparison.Budget()
        return try request.answer(at: head, of: schema) { (type) throws(SQLiteError) in
            try number(of: type.name, connection)
        } compare: { (asked, type, number, attributes) throws(SQLiteError) in
            var comparison = RangeComparison(
                connection: connection, type: type, number: number, attributes: attributes,
                revision: request.revision, unsendable: unsendable)
            var ranges: [RangeVerdict] = []
            for range in asked.ranges {
                guard let found = try comparison.compare(range, &budget) else { return nil }
                ranges.append(found)
            }
            return ranges
        }
    }

    private func number(
        of type: String, _ connection: Connection
    ) throws(SQLiteError) -> Int64? {
        let find = try connection.statement("SELECT number FROM martlet_types WHERE name = ?1")
        defer { find.reset() }
        find.bind(1, text: type)
        return try find.step() ? find.integer(0) : nil
    }
}

@available(*, unavailable)
extension EmbeddedCheck: Sendable {}

extension KeyRange {
    init(_ range: CheckedRange) {
        self.init(from: range.from, below: range.below)
    }
}
