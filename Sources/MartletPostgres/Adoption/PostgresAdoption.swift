import MartletModel
import MartletServerCore
package import PostgresKit

/// Makes a data set of a database's tables, or adds tables to one.
package struct PostgresAdoption {
    /// The source of the rules that say who sees which rows.
    package enum Rules: Hashable, Sendable {
        /// None. Tables with row-level security are refused.
        case none
        /// The policies of the database. Adoption makes a rules file of them.
        case ofDatabase
        /// A rules file that the operator wrote.
        case file(String)
    }

    /// The tables to adopt, and the choices for them.
    package struct Request: Hashable, Sendable {
        /// The data set's name.
        package var name: String
        /// The tables, with their schemas or as the search path finds them.
        package var tables: [String]
        /// The effect of TRUNCATE. If it is nil, adopted tables keep theirs, and others get
        /// `refuse`.
        package var truncation: Truncation?
        /// The tables that may get one of Martlet's keys if they have no key of one column.
        package var surrogates: Set<String> = []
        /// The rules of rows.
        package var rules = Rules.none

        package init(name: String, tables: [String]) {
            self.name = name
            self.tables = tables
        }
    }

    /// The steps that were done, or would be done.
    package struct Report: Hashable, Sendable {
        /// Sentences about the additions.
        package var steps: [String] = []
        /// Sentences that the operator should know.
        package var notes: [String] = []
        /// The number of rows that became entries of the log.
        package var rows: Int64 = 0
        /// The rules file that was made of the database's policies; nil if none was asked for.
        package var rules: String?

        package init(steps: [String] = []) {
            self.steps = steps
        }
    }

    private let connection: PostgresConnection
    private let now: Int64

    /// Makes an adoption on a connection.
    /// - Parameters:
    ///   - connection: A connection without a time limit for statements, because tables may be
    ///     large.
    ///   - now: Milliseconds since 1970.
    package init(on connection: PostgresConnection, now: Int64) {
        self.connection = connection
        self.now = now
    }

    /// Returns the steps of `adopt`. It changes nothing and locks nothing.
    /// - Throws: The errors of `adopt`.
    package func plan(_ request: Request) throws -> Report {
        try Catalogue.readOnly(on: connection) {
            let dataSet = try dataSet(of: request)
            let checks = try check(request, dataSet)
            return report(request, checks, isNew: dataSet == nil)
        }
    }

    /// Adopts the tables in one transaction: adds Martlet's tables and triggers, and entries of at
    /// most a thousand rows to the log. Programs that write to the tables wait until it is done.
    ///
    /// If a table is adopted already, its triggers are installed again, and its new columns are
    /// announced.
    /// - Parameter saving: Stores the rules file that was made of the database's policies. Nothing
    ///   is adopted if it throws.
    /// - Throws: `AdoptionError` with all obstacles; `PostgresError`. Nothing is adopted then, but
    ///   Martlet's own tables may have been upgraded.
    package func adopt(
        _ request: Request, saving: (String) throws -> Void = { _ in }
    ) throws -> Report {
        try upgrade(request)
        return try connection.transaction {
            let report = try adoptOpen(request)
            if let rules = report.rules { try saving(rules) }
            return report
        }
    }

    private func upgrade(_ request: Request) throws {
        if try dataSet(of: request) != nil { try MartletTables.upgrade(on: connection) }
    }

    /// The advisory lock of the database that an adoption holds; any number would do.
    static let lock: Int64 = 0x6D61_7274_6164_6F70

    /// Adopts the tables within the open transaction.
    func adoptOpen(_ request: Request) throws -> Report {
        let locked = try connection.query(
            "SELECT pg_try_advisory_xact_lock($1)", [.integer(Self.lock)])
        guard try locked.boolean(0, 0) else {
            throw AdoptionError(
                "another adoption is under way in this database",
                "wait until it has ended, and run this one again")
        }
        let dataSet = try dataSet(of: request)
        let checks = try check(request, dataSet)
        var report = report(request, checks, isNew: dataSet == nil)
        if dataSet == nil {
            try MartletTables.create(
                on: connection, name: request.name, identity: try identity())
        }
        let log = try LogAppender(on: connection, now: now)
        let start = log.head
        let logical = try LogicalState.read(connection)
        try prepare(checks.candidates)
        let first = try registered().count
        var replaced: Set<Int64> = []
        for candidate in checks.candidates {
            if let number = try replace(candidate, request) {
                replaced.insert(number)
            } else {
                try register(candidate, request)
            }
        }
        let schema = try PostgresSchema.read(connection)
        var news = try ColumnChanges(log, schema)
        try news.announce()
        let new = (0..<schema.tables.count).filter { position in
            checks.candidates.contains { $0.table.oid == schema.tables[position].relation }
        }
        report.rows = checks.candidates.reduce(0) { $0 + $1.rows }
        try RowEntries(log, schema).enter(
            types: new.filter { !replaced.contains(schema.tables[$0].number) })
        if !replaced.isEmpty { try ColumnChanges.judgeAgain(log, after: start) }
        try log.finish()
        if !replaced.isEmpty {
            // Devices have the records of the dropped tables.
            _ = try PostgresComparison(on: connection, schema).enter(.every, of: replaced)
        }
        report.notes += news.notes + schema.notes
        for position in new { report.notes += try advanceSequence(of: schema.tables[position]) }
        let again = Set(checks.known.map(\.oid))
        for (position, table) in schema.tables.enumerated()
        where new.contains(position) || again.contains(table.relation) {
            if let truncation = request.truncation {
                _ = try connection.query(
                    "UPDATE _martlet.types SET truncation = $2 WHERE number = $1",
                    [.integer(table.number), .text(truncation.rawValue)])
            }
            try ExternalTriggers.install(
                on: connection, table: table,
                truncation: try Truncation.of(table, connection).triggers,
                capture: logical == nil ? .triggers : .logical)
        }
        if let logical { try publish(schema.tables, new, logical) }
        if first > 0, !new.isEmpty {
            report.notes.append("servers that run take the new tables up within two seconds")
        }
        return report
    }

    /// Makes the slot send the writes to the tables. If the publication is gone, a server makes it
    /// again.
    private func publish(
        _ tables: [PostgresTable], _ new: [Int], _ state: LogicalState
    ) throws {
        try LogicalChecks(connection).check(tables, isNew: false)
        let publication = LogicalPublication(state.publication, on: connection)
        guard try publication.exists(),
            try publication.lines(of: tables).contains(where: { $0.member == nil })
        else { return }
        try publication.complete(tables)
        try publication.acknowledge(new.map { tables[$0] })
    }

    // MARK: - What is there

    /// Returns the data set of a request; nil if the database has none.
    /// - Throws: `AdoptionError` if the database has a data set of another name, or the name is
    ///   invalid.
    private func dataSet(of request: Request) throws -> PostgresDataSet? {
        guard !request.name.isEmpty, request.name.utf8.count <= 64,
            request.name.utf8.allSatisfy({
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
                    || $0 == 45 || $0 == 95
            })
        else {
            throw AdoptionError(
                "the name “\(request.name)” is none for a data set",
                "use letters, digits, “-” and “_”, at most 64")
        }
        let dataSet = try MartletTables.dataSet(on: connection)
        if let dataSet, dataSet.name != request.name {
            throw AdoptionError(
                "the database holds the data set “\(dataSet.name)”, and one database holds one",
                "use --name \(dataSet.name), or another database")
        }
        return dataSet
    }

    private func check(_ request: Request, _ dataSet: PostgresDataSet?) throws -> AdoptionChecks {
        var checks = AdoptionChecks(connection)
        try checks.check(request, registered: dataSet == nil ? [] : try registered())
        guard checks.problems.isEmpty else { throw AdoptionError(checks.problems) }
        return checks
    }

    private func registered() throws -> [PostgresSchema.Registered] {
        let rows = try connection.query(
            "SELECT number, name, relation::oid::bigint FROM _martlet.types ORDER BY number")
        return try (0..<rows.count).map { row in
            PostgresSchema.Registered(
                number: try rows.integer(row, 0), name: try rows.text(row, 1),
                relation: UInt32(try rows.integer(row, 2)))
        }
    }

    private func report(
        _ request: Request, _ checks: AdoptionChecks, isNew: Bool
    ) -> Report {
        var report = Report()
        report.rules = checks.rules
        report.notes = checks.notes
        if isNew {
            report.steps.append(
                "make the schema “_martlet”, with Martlet's tables and functions, for the data set "
                    + "“\(request.name)”")
        }
        for candidate in checks.candidates {
            let name = candidate.table.sqlName
            if candidate.needsSurrogate {
                report.steps.append(
                    "add to \(name) the column \(MartletTables.surrogate) bigint GENERATED BY "
                        + "DEFAULT AS IDENTITY, UNIQUE; the table is rewritten")
            }
            let truncation = request.truncation ?? .refuse
            report.steps.append(
                "add to \(name) triggers that note what other programs write; TRUNCATE "
                    + (truncation == .refuse ? "is refused" : "deletes all rows on devices too"))
            if candidate.rows > 0 {
                report.steps.append(
                    "enter \(candidate.rows) rows of \(name) into the log, so that devices get them"
                )
            }
        }
        for table in checks.known {
            report.steps.append(
                "reinstall the triggers of \(table.sqlName), which is adopted already, and "
                    + "announce its new columns")
        }
        if checks.rules != nil {
            report.steps.append("write the row-level security of the tables into a rules file")
        }
        return report
    }

    // MARK: - Changing things

    /// Returns 32 random hexadecimal digits.
    private func identity() throws(PostgresError) -> String {
        let rows = try connection.query(
            "SELECT replace(pg_catalog.gen_random_uuid()::text, '-', '')")
        return try rows.text(0, 0)
    }

    /// Locks the tables against writers, and gives keys to those that need one.
    private func prepare(_ candidates: [AdoptionChecks.Candidate]) throws(PostgresError) {
        for candidate in candidates {
            try connection.execute(
                "LOCK TABLE \(candidate.table.sqlName) IN SHARE ROW EXCLUSIVE MODE")
            guard candidate.needsSurrogate else { continue }
            let key = PostgresConnection.quoted(MartletTables.surrogate)
            try connection.execute(
                """
                ALTER TABLE \(candidate.table.sqlName)
                    ADD COLUMN \(key) bigint GENERATED BY DEFAULT AS IDENTITY UNIQUE
                """)
        }
    }

    /// Gives the number of a dropped table to a table of the same name.
    /// - Returns: The number; nil if there was no such table.
    private func replace(
        _ candidate: AdoptionChecks.Candidate, _ request: Request
    ) throws(PostgresError) -> Int64? {
        let rows = try connection.query(
            """
            UPDATE _martlet.types SET relation = $2::bigint::oid::regclass, \
            truncation = coalesce($3, truncation), file = NULL WHERE name = $1 RETURNING number
            """,
            [
                .text(candidate.table.name), .integer(Int64(candidate.table.oid)),
                request.truncation.map { .text($0.rawValue) } ?? .null,
            ])
        guard rows.count == 1 else { return nil }
        let number = try rows.integer(0, 0)
        _ = try connection.query(
            "DELETE FROM _martlet.columns WHERE type = $1", [.integer(number)])
        return number
    }

    private func register(
        _ candidate: AdoptionChecks.Candidate, _ request: Request
    ) throws(PostgresError) {
        let truncation = request.truncation ?? .refuse
        _ = try connection.query(
            """
            INSERT INTO _martlet.types (name, relation, truncation) \
            VALUES ($1, $2::bigint::oid::regclass, $3)
            """,
            [
                .text(candidate.table.name), .integer(Int64(candidate.table.oid)),
                .text(truncation.rawValue),
            ])
    }

    /// Sets a key's sequence above the present keys if it is below them, because it would give them
    /// again.
    /// - Returns: A sentence about it.
    private func advanceSequence(of table: PostgresTable) throws(PostgresError) -> [String] {
        guard table.nextKey != nil else { return [] }
        let name = table.key.name
        let sequences = try connection.query(
            "SELECT pg_catalog.pg_get_serial_sequence($1, $2)", [.text(table.sqlName), .text(name)])
        guard !sequences.isNull(0, 0) else { return [] }
        let sequence = try sequences.text(0, 0)
        let state = try connection.query("SELECT last_value, is_called FROM \(sequence)")
        let last = try state.integer(0, 0) - (try state.boolean(0, 1) ? 0 : 1)
        let keys = try connection.query(
            """
            SELECT coalesce(max(\(table.key.sqlName)), 0)::bigint FROM \(table.sqlName) \
            WHERE \(table.key.sqlName) <= \(PostgresTable.greatestCounted)
            """)
        let highest = try keys.integer(0, 0)
        guard highest > last else { return [] }
        _ = try connection.query(
            "SELECT pg_catalog.setval($1::text::regclass, $2)",
            [.text(sequence), .integer(highest)])
        return [
            """
            the sequence \(sequence) stood at \(last), behind the greatest key; it was set to \
            \(highest)
            """
        ]
    }
}
