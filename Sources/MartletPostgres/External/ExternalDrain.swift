package import MartletModel
package import MartletServerCore
package import PostgresKit

/// Adds external writes to the log, one set for each of their transactions.
///
/// It runs within the transaction of the data set's one writer. It takes the notes that other
/// transactions have committed by then. A transaction that commits later is taken later, and
/// nothing waits for it. It reads the notes and the present rows at one snapshot.
package struct ExternalDrain {
    /// The amounts of work done at once.
    struct Extent {
        /// The most changes that are read with one statement, which is planned once for all.
        var few = 100
        /// The most changes for which transactions stay complete, even if they share records.
        var many = 10_000
        /// The changes that are read at once if there are more.
        var page = 500
        /// The time for reading rows to take complete transactions, and the time for taking them in
        /// parts. All writers wait meanwhile.
        var time = Duration.seconds(1)
        /// The bytes of deletions that stay together if types refer to each other or to themselves.
        var circle = 8 << 20
    }

    private let schema: Schema
    private let forms: [ExternalRowCodec]
    private let columns: [TypeColumns]
    private let unsendable: UnsendableRows
    private let reading: ExternalScan
    private let held: ExternalHeld

    /// The SQL for whether there are pending external writes: one look into a small table.
    package static let isPending = "EXISTS (SELECT FROM _martlet.foreign_transactions)"

    /// Makes a drain for the tables of a schema.
    /// - Parameters:
    ///   - tables: The tables, in the order of the schema's types.
    ///   - catchUp: Waits until all commits of others are noted, and returns whether they are; nil
    ///     if they always are.
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

    /// Adds pending external writes to the log, within the open transaction, which must hold the
    /// data set's row.
    /// - Parameters:
    ///   - head: The end of the log.
    ///   - now: Milliseconds since 1970.
    ///   - maxBytes: The approximate bytes of the entries to make. Much larger writes are taken in
    ///     parts, in order. The rest stays noted, and its records count as changed.
    /// - Returns: The new entries. They are stored in the log, the records and the data set's row.
    /// - Throws: `PostgresError` if a statement fails.
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

    /// The planner's settings to switch off during a drain. Its statements then use indexes, even
    /// if the planner knows the tables only as empty.
    private static let planning = [
        "enable_sort", "enable_bitmapscan", "enable_seqscan", "enable_hashjoin",
        "enable_mergejoin",
    ]

    /// Switches the planner's settings off.
    /// - Returns: The previous settings.
    private func planAlongIndexes(
        _ connection: PostgresConnection
    ) throws(PostgresError) -> [String] {
        let before = Self.planning.map { "current_setting('\($0)')" }
        let after = Self.planning.map { "set_config('\($0)', 'off', true)" }
        let row = try connection.query("SELECT \((before + after).joined(separator: ", "))")
        var settings: [String] = []
        for index in before.indices { settings.append(try row.text(0, index)) }
        return settings
    }

    private func restore(
        _ settings: [String], _ connection: PostgresConnection
    ) throws(PostgresError) {
        let sets = zip(Self.planning, settings).map { "set_config('\($0)', '\($1)', true)" }
        _ = try connection.query("SELECT \(sets.joined(separator: ", "))")
    }

    /// Takes all pending writes as complete transactions.
    private func take(
        _ changes: ExternalScan.Changes, _ entries: inout ExternalEntries
    ) throws(PostgresError) {
        guard !changes.transactions.isEmpty else { return }
        for group in ExternalGroups.of(changes.changes) {
            try entries.enter(group.map(\.record), authors: group.map(\.author))
        }
        let transactions = PostgresValue.array(
            PostgresArray(changes.transactions.sorted().map { .integer($0) }))
        // The change rows are deleted first, because the list of transactions drives both
        // statements.
        let those = "IN (SELECT t::text::xid8 FROM unnest($1::bigint[]) AS t)"
        try entries.write([
            PostgresStatement(
                "DELETE FROM _martlet.foreign_changes WHERE transaction \(those)", [transactions]),
            PostgresStatement(
                "DELETE FROM _martlet.foreign_transactions WHERE transaction \(those)",
                [transactions]),
        ])
    }

    /// Adds a transaction for changes that have none. Such changes are in a restored dump, whose
    /// transaction numbers are another server's. Call it when a data set is opened.
    /// - Throws: `PostgresError` if the statement fails.
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
