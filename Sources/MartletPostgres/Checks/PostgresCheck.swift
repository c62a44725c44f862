package import MartletModel
package import MartletProtocol
package import MartletServerCore
package import PostgresKit
import SQLiteRecords

/// Compares devices' ranges with the rows of a PostgreSQL database. Each check sees one moment.
///
/// The device's revision is usually older. The check leaves out and names records that changed
/// since then, and records with external writes that are not in the log yet. All other records were
/// the same at that revision as now, so the answer holds for every revision in between.
package final class PostgresCheck: CheckSource {
    private let connection: ReadingConnection
    private let schema: Schema
    private let unsendable: UnsendableRows

    /// The settings of the connection. Tables are read completely, so the planner may choose
    /// freely, and should optimise for the last row, not the first.
    private static let settings = "SET cursor_tuple_fraction = 1; SET row_security = off"

    /// Makes a check with a function that connects.
    /// - Parameters:
    ///   - schema: The schema that devices know.
    ///   - unsendable: Receives the rows that are left out.
    ///   - connect: Makes a connection. One that only reads is enough.
    package init(
        schema: Schema, unsendable: UnsendableRows = UnsendableRows(),
        connect: @escaping () throws(PostgresError) -> PostgresConnection
    ) {
        self.schema = schema
        self.unsendable = unsendable
        connection = ReadingConnection(settings: Self.settings, connect: connect)
    }

    /// Makes a check on the database at an address.
    /// - Parameter options: The options of its connections, which only read.
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
        // The first read fixes the moment that the transaction sees.
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
