import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Reads differences on one connection: the records by the revision at which they last changed, and
/// the rows of existing ones.
final class DifferenceScan {
    private struct Source {
        let table: RecordTable
        let columns: TypeColumns
    }

    private let connection: Connection
    /// The sources by the type's number in Martlet's tables.
    private let sources: [Int64: Source]
    private let unsendable: UnsendableRows

    init(
        connection: Connection, schema: Schema, unsendable: UnsendableRows
    ) throws(SQLiteError) {
        self.connection = connection
        self.unsendable = unsendable
        var sources: [Int64: Source] = [:]
        let types = try connection.statement("SELECT number, name FROM martlet_types")
        defer { types.reset() }
        while try types.step() {
            guard let type = schema[types.text(1)] else { continue }
            sources[types.integer(0)] = Source(
                table: RecordTable(
                    type: type, connection: connection, rowBytes: Limits.rowBytes),
                columns: TypeColumns(type, schema: schema))
        }
        self.sources = sources
    }

    /// Returns the part of a difference, like `LogSource.difference`, and ends the open read
    /// transaction.
    func part(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(SQLiteError) -> DifferencePart {
        do throws(SQLiteError) {
            let head = try head()
            let part = try scan(request, through: min(head.revision, limit()), head)
            try connection.run("COMMIT")
            return part
        } catch {
            connection.rollback()
            throw error
        }
    }

    private func head() throws(SQLiteError) -> LogHead {
        let statement = try connection.statement("SELECT revision, hash FROM martlet_dataset")
        defer { statement.reset() }
        guard try statement.step() else {
            throw SQLiteError.mismatch("martlet_dataset is empty")
        }
        return LogHead(
            revision: statement.integer(0), hash: LineageHash(stored: statement.blob(1)))
    }

    /// Both halves come from an index in order, so SQLite merges them without sorting. An announced
    /// row that is in the scan by its own change, too, needs no second position.
    private static let sql = """
        SELECT revision, type, id, revision, deleted FROM martlet_records \
        WHERE revision > ?1 AND revision <= ?2 \
        UNION ALL \
        SELECT announced.revision, announced.type, announced.id, record.revision, record.deleted \
        FROM martlet_announced AS announced CROSS JOIN martlet_records AS record \
        ON record.type = announced.type AND record.id = announced.id \
        WHERE announced.revision > ?1 AND announced.revision <= ?2 AND record.revision <= ?1 \
        ORDER BY 1, 2, 3
        """

    private static let dialect = ViewScan.Dialect(
        records: "martlet_records", announced: "martlet_announced", members: "martlet_members",
        since: "?1")

    /// Returns the statement that lists the records.
    private func listing(
        _ request: DifferenceRequest, through last: Revision
    ) throws(SQLiteError) -> Statement {
        guard let views = request.views else {
            let statement = try connection.statement(Self.sql)
            statement.bind(1, integer: request.since)
            statement.bind(2, integer: last)
            return statement
        }
        let scan = try ViewScan(views, types: sources.keys.sorted(), parts: parts)
        // The text has the numbers of the views, so it is not kept.
        let statement = try connection.prepare(
            scan.sql(Self.dialect, membersFirst: try areFew(scan.shownTypeViews, request.since))
                + " ORDER BY 1, 2, 3")
        statement.bind(1, integer: request.since)
        return statement
    }

    /// Returns whether the records that changed after a revision are many, and the members of type views
    /// far fewer.
    private func areFew(
        _ views: [Int64], _ since: Revision
    ) throws(SQLiteError) -> Bool {
        guard !views.isEmpty else { return false }
        func changed(most: Int64) throws(SQLiteError) -> Int64 {
            try connection.integer(
                """
                SELECT count(*) FROM \
                (SELECT 1 FROM martlet_records WHERE revision > \(since) LIMIT \(most))
                """) ?? 0
        }
        guard try changed(most: Self.manyRecords) == Self.manyRecords else { return false }
        let list = views.map { "\($0)" }.joined(separator: ", ")
        let members =
            try connection.integer("SELECT count(*) FROM martlet_members WHERE view IN (\(list))")
            ?? 0
        return try changed(most: 4 * members + 1) > 4 * members
    }

    /// The number of changed records below which it makes no difference in which order they are read.
    private static let manyRecords: Int64 = 500

    /// Returns a view's parts as they are stored; nil for the view that shows everything.
    private func parts(of view: Int64) throws(SQLiteError) -> String? {
        guard view != View.everything else { return nil }
        guard
            let parts = try connection.text(
                "SELECT parts FROM martlet_views WHERE number = \(view)")
        else { throw SQLiteError.mismatch("martlet_views lacks a view that a device has") }
        return parts
    }

    private func scan(
        _ request: DifferenceRequest, through last: Revision, _ head: LogHead
    ) throws(SQLiteError) -> DifferencePart {
        let statement = try listing(request, through: last)
        defer { statement.reset() }
        var rows = GatheredDifference(request, head: head)
        while try statement.step() {
            let position = statement.integer(0)
            guard position <= last else {
                rows.noteOvertaken()
                break
            }
            if let part = rows.part(endingBefore: position) { return part }
            let number = statement.integer(1)
            guard let source = sources[number] else { continue }
            let id = try statement.recordID(2)
            guard !rows.isTold(RowCursor(type: number, id: id), at: position) else { continue }
            var attributes: Attributes?
            // A row that an external write removed is gone, whatever the facts of the record say.
            if statement.integer(4) == 0 {
                do throws(SQLiteError) {
                    attributes = try source.table.read(id).map { source.columns.withoutNulls($0) }
                } catch {
                    // One bad row does not stop the scan. Devices that see all of the type keep what
                    // they have of it.
                    guard error.isMismatch else { throw error }
                    unsendable.note(source.table.type.name, id, error.message)
                    continue
                }
            }
            let row = DifferencePart.Row(
                position: position, type: source.table.type.name, id: id,
                revision: statement.integer(3), attributes: attributes,
                isHidden: request.views != nil && statement.integer(5) != 0)
            if let part = rows.add(row, number: number) { return part }
        }
        return rows.part(reaching: max(request.since, last))
    }
}
