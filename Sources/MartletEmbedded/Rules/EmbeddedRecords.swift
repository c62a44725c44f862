package import MartletModel
import MartletProtocol
package import MartletRules
package import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Reads a data set in a file for explanations, at one moment. A server may run. Blocks.
package final class EmbeddedRecords: RecordSource {
    package let schema: Schema
    package let revision: Revision
    private let connection: Connection
    private let tables: [RecordTable]

    /// Opens a file.
    /// - Throws: `StorageFault` if it is no data set's, or of another version; `SQLiteError`.
    package init(path: String) throws {
        // Only a process that may write to the folder can read a file in WAL mode.
        connection = try Connection(path: path, mode: .readWrite, refusesQuotedText: true)
        try connection.execute("PRAGMA query_only = ON")
        try connection.beginReading()
        guard try EmbeddedTables.exist(in: connection) else {
            throw StorageFault(
                .moved, "“\(path)” is no data set's file; check --data and --dataset")
        }
        let format =
            try connection.integer("SELECT value FROM martlet_meta WHERE key = 'format'") ?? 0
        guard format == EmbeddedTables.format else {
            throw StorageFault(
                .moved,
                """
                the file has the format \(format), and this version of Martlet reads \(EmbeddedTables.format); \
                start a server of this version on it, or use the version that wrote it
                """)
        }
        schema = try SchemaReader.read(connection)
        revision = try connection.integer("SELECT revision FROM martlet_dataset") ?? 0
        let connection = connection
        tables = schema.types.map {
            RecordTable(type: $0, connection: connection, rowBytes: Limits.rowBytes)
        }
    }

    package func rows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws -> [RuleRow] {
        try tables.ruleRows(of: type, where: column, isAmong: values)
    }

    package func standing(
        of id: RecordID, in key: TypeViewKey, givenTo identity: String
    ) throws -> ViewStanding? {
        let find = try connection.statement(
            """
            SELECT v.number, v.revision, m.moved, m.shown, g.first, g.last
            FROM martlet_type_views AS v
            LEFT JOIN martlet_members AS m ON m.view = v.number AND m.id = ?2
            LEFT JOIN martlet_given AS g ON g.view = -v.number AND g.principal = ?3
            WHERE v.key = ?1 AND v.revision IS NOT NULL
            """)
        defer { find.reset() }
        find.bind(1, blob: key.digest)
        find.bind(2, id)
        find.bind(3, text: identity)
        guard try find.step() else { return nil }
        return ViewStanding(
            number: find.integer(0), revision: find.integer(1),
            member: find.isNull(2)
                ? nil : .init(isShown: find.integer(3) != 0, since: find.integer(2)),
            given: find.isNull(4)
                ? nil : GivenView(first: find.integer(4), last: find.integer(5)))
    }
}

extension EmbeddedRecords {
    package func givenViews() throws -> [String: [Int64]] {
        var numbers: [Int64] = []
        let number = try connection.statement("SELECT number FROM martlet_types WHERE name = ?1")
        for type in schema.types {
            number.bind(1, text: type.name)
            numbers.append(try number.step() ? number.integer(0) : 0)
            number.reset()
        }
        let find = try connection.statement(
            """
            SELECT g.principal, v.parts FROM martlet_given AS g
            JOIN martlet_views AS v ON v.number = g.view
            WHERE \(DevicePurges.isPrincipal("g.principal")) ORDER BY g.last, g.view
            """)
        defer { find.reset() }
        var views: [String: [Int64]] = [:]
        while try find.step() { views[find.text(0)] = ViewScan.parts(find.text(1), of: numbers) }
        return views
    }

    package func shownCount(of view: Int64) throws -> Int {
        Int(
            try connection.integer(
                "SELECT count(*) FROM martlet_members WHERE view = \(view) AND shown") ?? 0)
    }
}

@available(*, unavailable)
extension EmbeddedRecords: Sendable {}
