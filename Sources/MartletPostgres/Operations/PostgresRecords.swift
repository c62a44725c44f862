package import MartletModel
package import MartletRules
package import MartletServerCore
package import PostgresKit

/// Reads a data set in a database for explanations, at one moment. Servers may run. Blocks.
package final class PostgresRecords: RecordSource {
    package let schema: Schema
    package let revision: Revision
    private let connection: PostgresConnection
    private let forms: [TableFormat]

    /// Begins the moment. It ends when the connection is closed.
    /// - Parameter connection: A connection without a transaction.
    /// - Throws: `PostgresRefusal` if there is no data set of this version; `AdoptionError`,
    ///   `PostgresError`.
    package init(on connection: PostgresConnection) throws {
        try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        guard let dataSet = try MartletTables.dataSet(on: connection) else {
            throw PostgresRefusal("The database (\(connection.address)) has no data set.")
        }
        guard dataSet.format == MartletTables.format else {
            throw PostgresRefusal(
                """
                Martlet's tables have the format \(dataSet.format), and this version reads \
                \(MartletTables.format); start a server of this version, or use the version that wrote them.
                """)
        }
        let read = try PostgresSchema.read(connection)
        let head = try connection.query("SELECT revision FROM _martlet.dataset")
        self.connection = connection
        schema = read.schema
        revision = try head.integer(0, 0)
        forms = read.tables.enumerated().map {
            TableFormat(position: $0, table: $1, schema: read.schema)
        }
    }

    package func rows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws -> [RuleRow] {
        let form = forms[type]
        let found = column == 0 ? form.table.key : form.table.columns[column - 1]
        // No row has a text with NUL.
        let held = values?.filter { value in
            if case .text(let text) = value { !text.utf8.contains(0) } else { true }
        }
        let statement = form.reading(where: found, isAmong: held)
        return try form.ruleRows(try connection.query(statement.sql, statement.values))
    }

    package func standing(
        of id: RecordID, in key: TypeViewKey, givenTo identity: String
    ) throws -> ViewStanding? {
        let rows = try connection.query(
            """
            SELECT v.number, v.revision, m.moved, m.shown, g.first, g.last \
            FROM _martlet.type_views AS v \
            LEFT JOIN _martlet.members AS m ON m.view = v.number AND m.id = $2 \
            LEFT JOIN _martlet.given AS g ON g.view = -v.number AND g.principal = $3 \
            WHERE v.key = $1 AND v.revision IS NOT NULL
            """, [.binary(key.digest), .text(id.description), .text(identity)])
        guard rows.count == 1 else { return nil }
        return ViewStanding(
            number: try rows.integer(0, 0), revision: try rows.integer(0, 1),
            member: rows.isNull(0, 2)
                ? nil : .init(isShown: try rows.boolean(0, 3), since: try rows.integer(0, 2)),
            given: rows.isNull(0, 4)
                ? nil : GivenView(first: try rows.integer(0, 4), last: try rows.integer(0, 5)))
    }
}

extension PostgresRecords {
    package func givenViews() throws -> [String: [Int64]] {
        let rows = try connection.query(
            """
            SELECT g.principal, v.parts FROM _martlet.given AS g \
            JOIN _martlet.views AS v ON v.number = g.view \
            WHERE \(DevicePurges.isPrincipal("g.principal")) ORDER BY g.last, g.view
            """)
        var views: [String: [Int64]] = [:]
        for row in 0..<rows.count {
            views[try rows.text(row, 0)] = ViewScan.parts(
                try rows.text(row, 1), of: forms.map(\.table.number))
        }
        return views
    }

    package func shownCount(of view: Int64) throws -> Int {
        let rows = try connection.query(
            "SELECT count(*) FROM _martlet.members WHERE view = $1 AND shown", [.integer(view)])
        return Int(try rows.integer(0, 0))
    }
}

@available(*, unavailable)
extension PostgresRecords: Sendable {}
