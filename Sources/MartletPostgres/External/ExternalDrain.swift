package import MartletModel
package import MartletServerCore
package import PostgresKit

/// Puts into the log what other programs wrote to the tables: one set for each transaction of
/// theirs.
///
/// Runs within the transaction of the data set's one writer. It takes what the triggers noted and
/// others have committed by then; a transaction that commits later is taken later, and nothing
/// waits for it. Rows are read as they are, with what was noted, at one snapshot.
package struct ExternalDrain {
    /// How much is done at once.
    struct Extent {
        /// Changes that are read with one statement, which is planned once for all.
        var few = 100
        /// Changes up to which transactions stay whole, whatever they share.
        var many = 10_000
        /// Changes that are read at once where there are more.
        var page = 500
        /// How long rows are read to take transactions whole, and how long to take them in parts. All
        /// who write wait meanwhile.
        var time = Duration.seconds(1)
        /// The bytes of deletions that stay together if types refer to each other, or to themselves.
        var circle = 8 << 20
    }

    private let schema: Schema
    private let forms: [ExternalRowCodec]
    private let columns: [TypeColumns]
    private let unsendable: UnsendableRows
    private let reading: ExternalScan
    private let held: ExternalHeld

    /// SQL whose value is whether there is anything to take: one look into a small table.
    package static let isPending = "EXISTS (SELECT FROM _martlet.foreign_transactions)"

    /// - Parameters:
    ///   - tables: In the order of the schema's types.
    ///   - catchUp: Waits until all that others have committed is noted, and returns whether it is; nil
    ///     if it always is.
    package init(
        schema: Schema, tables: [PostgresTable], unsendable: UnsendableRows,
        catchUp: (() -> Bool)? = nil
    ) {
        self.init(
            schema: schema, tables: tables, unsendable: unsendable, extent: Extent(),
            catchUp: catchUp)
    }

    init(
        schema: Schema, tables: [PostgresTable], unsendable: UnsendableRows, extent: Extent,
        catchUp: (() -> Bool)? = nil
    ) {
        self.schema = schema
        self.unsendable = unsendable
        forms = tables.enumerated().map { ExternalRowCodec($1, at: $0) }
        columns = schema.types.map { TypeColumns($0, schema: schema) }
        reading = ExternalScan(forms, extent, unsendable)
        held = ExternalHeld(columns, catchUp: catchUp ?? { true })
    }

    /// Takes what is pending into the log, within the open transaction, which holds the data set's
    /// row.
    /// - Parameters:
    ///   - head: The end of the log.
    ///   - now: Milliseconds since 1970.
    ///   - maxBytes: About how many bytes of entries are made. What is far more than that is taken
    ///     in parts, in order: the rest stays noted, and its records count as changed.
    /// - Returns: The new entries; log, records and the data set's row have them.
    package func entries(
        on connection: PostgresConnection, head: LogHead, now: Int64, maxBytes: Int
    ) throws(PostgresError) -> [LogEntry] {
        let settings = try planAlongIndexes(connection)
        var entries = ExternalEntries(
            on: connection, schema: schema, forms: forms, columns: columns,
            unsendable: unsendable, head: head, now: now)
        if let changes = try reading.changes(on: connection, maxBytes: 8 * maxBytes) {
            try take(changes, &entries)
        } else {
            let parts = ExternalParts(
                on: connection, reading: reading, columns: columns, held: held,
                numbers: forms.map(\.table.number))
            try parts.take(maxBytes: maxBytes, into: &entries)
        }
        try restore(settings, connection)
        return entries.made
    }

    /// What holds while a transaction drains: all of it goes along indexes, whatever the planner
    /// makes of tables that were empty when they were last looked at.
    private static let planning = [
        "enable_sort", "enable_bitmapscan", "enable_seqscan", "enable_hashjoin",
        "enable_mergejoin", "jit",
    ]

    /// - Returns: What the settings were.
    private func planAlongIndexes(
        _ connection: PostgresConnection
    ) throws(PostgresError) -> [String] {
        let before = Self.planning.map { "current_setting('\($0)')" }
        let after = Self.planning.map { "set_config('\($0)', 'off', true)" }
        let row = try connection.query("SELECT \((before + after).joined(separator: ", "))")
        var settings: [String] = []
        for place in before.indices { settings.append(try row.text(0, place)) }
        return settings
    }

    private func restore(
        _ settings: [String], _ connection: PostgresConnection
    ) throws(PostgresError) {
        let sets = zip(Self.planning, settings).map { "set_config('\($0)', '\($1)', true)" }
        _ = try connection.query("SELECT \(sets.joined(separator: ", "))")
    }

    /// Takes all of it: whole transactions.
    private func take(
        _ changes: ExternalScan.Changes, _ entries: inout ExternalEntries
    ) throws(PostgresError) {
        guard !changes.transactions.isEmpty else { return }
        for group in ExternalGroups.of(changes.changes) {
            try entries.enter(group.map(\.record), authors: group.map(\.author))
        }
        let transactions = PostgresValue.array(
            PostgresArray(changes.transactions.sorted().map { .integer($0) }))
        // The change rows first: the list of transactions drives both.
        let those = "IN (SELECT t::text::xid8 FROM unnest($1::bigint[]) AS t)"
        try entries.write([
            PostgresStatement(
                "DELETE FROM _martlet.foreign_changes WHERE transaction \(those)", [transactions]),
            PostgresStatement(
                "DELETE FROM _martlet.foreign_transactions WHERE transaction \(those)",
                [transactions]),
        ])
    }

    /// Gives changes a place among the transactions that have none: after a restored dump, whose
    /// transaction numbers are another server's. For the opening of a data set.
    package static func findStrays(
        on connection: PostgresConnection
    ) throws(PostgresError) {
        _ = try connection.query(
            """
            INSERT INTO _martlet.foreign_transactions (transaction) \
            SELECT DISTINCT transaction FROM _martlet.foreign_changes AS c \
            WHERE NOT EXISTS (SELECT FROM _martlet.foreign_transactions AS f \
            WHERE f.transaction = c.transaction) ON CONFLICT DO NOTHING
            """)
    }
}
