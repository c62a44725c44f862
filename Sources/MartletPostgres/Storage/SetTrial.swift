import MartletModel
import MartletRules
import MartletServerCore
import PostgresKit

/// Finds the rows that a refused set would leave if no record had its unique values and all referenced
/// ids existed, for a judgement by policies.
///
/// The rows are written to temporary tables with the defaults, the generated columns and the BEFORE
/// triggers of the set's tables, and without their constraints. Everything is undone. If that fails,
/// the rows are the ones that the set's values make.
struct SetTrial {
    /// The changes of one type.
    private struct Part {
        let form: TableFormat
        /// The format of the temporary table.
        let trial: TableFormat
        var creates: [(id: RecordID, values: Attributes)] = []
        var updates: [(id: RecordID, values: Attributes)] = []
    }

    private let session: DataSetSession
    private var parts: [Int: Part] = [:]

    init(_ session: DataSetSession, _ work: SetWork, assigned: [RecordAddress: RecordID]) {
        self.session = session
        for create in work.plan.creates {
            let values = session.resolved(create, assigned: assigned, work.facts)
            var part = parts[create.type] ?? Self.part(create.type, session)
            part.creates.append((assigned[create.address] ?? create.id, values))
            parts[create.type] = part
        }
        for update in work.plan.updates {
            let values = session.resolved(update, assigned: assigned, work.facts)
            var part = parts[update.type] ?? Self.part(update.type, session)
            part.updates.append((work.facts.permanentAddress(of: update.address).id, values))
            parts[update.type] = part
        }
    }

    private static func part(_ type: Int, _ session: DataSetSession) -> Part {
        let form = session.model.forms[type]
        let table = form.table
        let copy = PostgresTable(
            number: table.number, relation: table.relation, schema: "pg_temp", type: table.type,
            key: table.key, columns: table.columns, nextKey: nil, foreignKeys: [],
            changesBehind: false, name: "martlet_trial_\(type)")
        return Part(
            form: form,
            trial: TableFormat(position: type, table: copy, schema: session.schema))
    }

    /// Returns the rows.
    func rows(_ rights: SetRights) throws(PostgresError) -> [RecordAddress: RuleRow] {
        var rows: [RecordAddress: RuleRow] = [:]
        for (type, part) in parts.sorted(by: { $0.key < $1.key }) {
            for row in try written(part) { rows[RecordAddress(type, row)] = row }
            for (id, values) in part.creates + part.updates {
                let address = RecordAddress(type, id)
                if rows[address] == nil { rows[address] = rights.expectedRow(address, values) }
            }
        }
        return rows
    }

    /// Returns the rows of a type as PostgreSQL writes them; none if it does not.
    private func written(_ part: Part) throws(PostgresError) -> [RuleRow] {
        let connection = session.connection
        try connection.execute("SAVEPOINT martlet_trial")
        let result = Result { () throws(PostgresError) in
            try connection.execute(Self.copy(of: part))
            if !part.updates.isEmpty { _ = try session.run([Self.copy(ofRows: part)]) }
            let triggers = try session.run([
                PostgresStatement(
                    Self.triggers,
                    [.integer(Int64(part.form.table.relation)), .text(part.trial.table.sqlName)])
            ])[0]
            for row in 0..<triggers.count { try connection.execute(try triggers.text(row, 0)) }
            var statements: [PostgresStatement] = []
            for (id, values) in part.creates {
                statements.append(part.trial.creating([id], values.names, [values]))
            }
            for (id, values) in part.updates where !values.isEmpty {
                statements.append(part.trial.changing([id], values.names, [values]))
            }
            statements.append(part.trial.reading((part.creates + part.updates).map(\.id)))
            let answers = try session.run(statements)
            return try part.trial.ruleRows(answers[answers.count - 1])
        }
        try connection.execute(
            "ROLLBACK TO SAVEPOINT martlet_trial; RELEASE SAVEPOINT martlet_trial")
        return (try? result.get()) ?? []
    }

    /// Returns the statements that make the temporary table.
    private static func copy(of part: Part) -> String {
        let table = part.trial.table
        let optional = ([table.key] + table.columns).map {
            "ALTER COLUMN \($0.sqlName) DROP NOT NULL"
        }
        return """
            CREATE TEMPORARY TABLE \(table.sqlName) (LIKE \(part.form.table.sqlName) \
            INCLUDING DEFAULTS INCLUDING GENERATED);
            ALTER TABLE \(table.sqlName) \(optional.joined(separator: ", "))
            """
    }

    /// Copies the rows that the set changes, as they are before it.
    private static func copy(ofRows part: Part) -> PostgresStatement {
        let form = part.form
        let names = ([form.table.key] + form.table.columns.filter { !$0.isComputed })
            .map(\.sqlName).joined(separator: ", ")
        return PostgresStatement(
            """
            INSERT INTO \(part.trial.table.sqlName) (\(names)) SELECT \(names) \
            FROM \(form.table.sqlName) AS t WHERE t.\(form.key) = ANY ($1::\(form.keyType))
            """, [form.keys(part.updates.map(\.id))])
    }

    /// Selects the statements that make the BEFORE triggers of a table on a temporary one.
    private static let triggers = """
        SELECT replace(pg_catalog.pg_get_triggerdef(t.oid),
            ' ON ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname) || ' ',
            ' ON ' || $2::text || ' ')
        FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid::bigint = $1 AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
        AND t.tgtype & 3 = 3 ORDER BY t.tgname
        """
}
