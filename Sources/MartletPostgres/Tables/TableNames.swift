package import MartletRules
import PostgresKit

/// The names by which a server with policies reads its tables, with PostgreSQL's numbers for what they stand for.
///
/// Statements go by names. If another program exchanges names, or makes a table again, the same statement reads other
/// rows or values. So each transaction that reads rows for people who see a part ends with a check that the names
/// stand for what the server opened. What a transaction has read is locked against other names until it ends, so the
/// check holds for all of its reads, whenever the names were changed.
package struct TableNames: Hashable, Sendable {
    /// The version of the tables that the server opened; see `PostgresSchema.version`.
    let version: Int64
    private var relations: [Int64] = []
    private var numbers: [Int64] = []
    private var names: [[String]] = [[], [], []]

    /// Notes the keys of tables, and the columns that policies name.
    package init(_ schema: PostgresSchema, readBy policies: RulesProgram) {
        version = schema.version
        let named = policies.named(
            among: schema.tables.flatMap { table in table.columns.map(\.name) })
        for table in schema.tables {
            for column in [table.key] + table.columns.filter({ named.contains($0.name) }) {
                relations.append(Int64(table.relation))
                numbers.append(column.number)
                for (part, name) in [table.schema, table.name, column.name].enumerated() {
                    names[part].append(name)
                }
            }
        }
    }

    // These functions look names up as the statements do, also in a transaction that sees an earlier moment.
    private static let sql = """
        SELECT 1 / (NOT EXISTS (SELECT FROM \
        unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[]) \
        AS q (relation, number, schema, name, part) \
        WHERE (pg_catalog.pg_identify_object_as_address('pg_catalog.pg_class'::pg_catalog.regclass, \
        q.relation::oid, q.number::integer)).object_names \
        IS DISTINCT FROM ARRAY[q.schema, q.name, q.part]))::integer
        """

    /// The statement that fails if a name stands for something else.
    var check: PostgresStatement {
        PostgresStatement(
            Self.sql,
            [PendingWrites.integers(relations), PendingWrites.integers(numbers)]
                + names.map { PendingWrites.texts($0) })
    }

    /// The SQL state of `fault`. No class of PostgreSQL's has it.
    static let state = "MT001"

    /// The error of a transaction in which a name stood for something else.
    static let fault = PostgresError(
        .statement,
        """
        another program has exchanged names of tables or columns that policies read, or made a table again: nobody \
        is answered by them until the server has taken the tables up
        """, sqlState: state)

    /// Returns the rows of statements that were run together.
    /// - Parameter check: The position of `check` among them; nil if it was not run.
    /// - Throws: `fault` if the check failed; else the first error.
    static func rows(
        _ answers: [PostgresConnection.Answer], checkedAt check: Int?
    ) throws(PostgresError) -> [PostgresRows] {
        var rows: [PostgresRows] = []
        rows.reserveCapacity(answers.count)
        for (position, answer) in answers.enumerated() {
            if position == check, case .failure(let error) = answer, error.sqlState == "22012" {
                throw fault
            }
            rows.append(try answer.get())
        }
        return rows
    }
}

extension PostgresConnection {
    /// Runs `body` at one moment: it does not see later commits by others.
    /// - Parameter names: The names that must stand for what they stood for, if they matter.
    func atOneMoment<Result>(
        checking names: TableNames? = nil, _ body: () throws(PostgresError) -> Result
    ) throws(PostgresError) -> Result {
        _ = try query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let result = try body()
        try end(checking: names)
        return result
    }

    /// Commits the open transaction, unless names stand for something else.
    func end(checking names: TableNames?) throws(PostgresError) {
        let commit = PostgresStatement("COMMIT")
        let statements = (names.map { [$0.check] } ?? []) + [commit]
        _ = try TableNames.rows(pipeline([statements])[0], checkedAt: names == nil ? nil : 0)
    }
}
