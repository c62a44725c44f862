package import MartletModel
package import MartletProtocol
package import MartletServerCore
package import PostgresKit
import SQLiteRecords

/// Compares devices' ranges with the rows of a PostgreSQL database, each check at one moment.
///
/// The device speaks of an older revision as a rule. A record that changed since, or that another
/// program has changed and the log does not have yet, is left out and named; all others were at that
/// revision as they are now, so that what is said of them holds for every revision in between.
package final class PostgresCheck: CheckSource {
    private let connection: ReadingConnection
    private let schema: Schema
    private let unsendable: UnsendableRows

    /// Tables are read whole: the planner is free, and thinks of the last row, not the first.
    private static let settings = "SET cursor_tuple_fraction = 1; SET jit = off"

    /// - Parameters:
    ///   - schema: What devices know.
    ///   - unsendable: Hears of rows that are left out.
    ///   - connect: Makes a connection; one that only reads is enough.
    package init(
        schema: Schema, unsendable: UnsendableRows = UnsendableRows(),
        connect: @escaping () throws(PostgresError) -> PostgresConnection
    ) {
        self.schema = schema
        self.unsendable = unsendable
        connection = ReadingConnection(settings: Self.settings, connect: connect)
    }

    /// - Parameter options: Of the connections it makes, which only read.
    package convenience init(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions(),
        schema: Schema, unsendable: UnsendableRows = UnsendableRows()
    ) {
        self.init(
            schema: schema, unsendable: unsendable,
            connect: ReadingConnection.maker(address, options))
    }

    package func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer {
        try connection.reading { (connection, model) throws(PostgresError) in
            try connection.atOneMoment { () throws(PostgresError) in
                try compare(request, connection, model)
            }
        }
    }

    private func compare(
        _ request: CheckRequest, _ connection: PostgresConnection, _ model: PostgresModel
    ) throws(PostgresError) -> CheckAnswer {
        // The first read fixes the moment.
        let head = try connection.query("SELECT revision FROM _martlet.dataset WHERE number = 1")
        guard head.count == 1 else { throw PostgresError(.other, "_martlet.dataset is empty") }
        var budget = RangeComparison.Budget()
        return try request.answer(
            at: try head.integer(0, 0), of: schema
        ) { (type) throws(PostgresError) in
            model.forms.first { $0.type.name == type.name }
        } compare: { (asked, _, form, attributes) throws(PostgresError) in
            var comparison = RangeComparison(
                connection: connection, form: form, attributes: attributes,
                revision: request.revision, unsendable: unsendable)
            return try comparison.compare(asked.ranges, &budget)
        }
    }
}

@available(*, unavailable)
extension PostgresCheck: Sendable {}
