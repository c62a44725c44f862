import MartletModel
import MartletProtocol
package import MartletRules
import MartletServerCore
package import SQLiteKit
import SQLiteRecords

/// Runs the tests that a team writes about its own policies, on tables in memory. It judges as a
/// server does: rows by `RowRights`, and changes by `SetRights`.
package final class PolicyTestRun {
    /// The result of an expectation.
    package struct Result: Hashable, Sendable {
        /// The line of the file on which it begins.
        package let line: Int
        /// The expectation in one line.
        package let text: String
        /// The person for whom it is.
        package let person: String
        package let isMet: Bool
        /// The difference and the policies that decided; empty if the expectation is met.
        package let details: [String]
    }

    private let program: RulesProgram
    private let connection: Connection
    private let tables: [RecordTable]
    private let now: Int64
    private var person = PolicyTestFile.Person()
    /// The most rows whose policies are listed for one expectation.
    private static let mostRows = 5

    /// Prepares a run.
    /// - Parameters:
    ///   - connection: A connection to empty tables of the program's schema, without a transaction.
    ///   - now: Milliseconds since 1970, for tests that set no day.
    /// - Throws: `SQLiteError` if the connection cannot be used.
    package init(_ program: RulesProgram, on connection: Connection, now: Int64) throws {
        self.program = program
        self.connection = connection
        self.now = now
        tables = program.schema.types.map {
            RecordTable(type: $0, connection: connection, rowBytes: Limits.rowBytes)
        }
        try connection.execute("PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON")
    }

    /// Runs a file, and returns the results of its expectations in their order.
    /// - Throws: `RulesFault` for a statement that the tables refuse.
    package func results(of file: PolicyTestFile) throws -> [Result] {
        var results: [Result] = []
        for statement in file.statements {
            let details: [String]
            switch statement.content {
            case .rows(let sql):
                try add(sql, statement)
                continue
            case .person(let person):
                self.person = person
                continue
            case .seen(let seen): details = try differences(seen, statement)
            case .write(let write): details = try differences(write, statement)
            }
            results.append(
                Result(
                    line: statement.line, text: statement.text, person: name,
                    isMet: details.isEmpty, details: details))
        }
        return results
    }

    private func add(_ sql: String, _ statement: PolicyTestFile.Statement) throws {
        try refusing(statement) { () throws(SQLiteError) in try connection.prepare(sql).run() }
        for table in tables {
            try table.forEach(unsendable: { id, error in
                throw statement.fault(
                    "\(table.type.name) \(id) has a value that no device can be sent: \(error.message)"
                )
            }) { _, _ in }
        }
    }

    /// Calls a closure. An error of SQLite is a fault of the statement.
    private func refusing<Value>(
        _ statement: PolicyTestFile.Statement, _ body: () throws(SQLiteError) -> Value
    ) throws -> Value {
        do throws(SQLiteError) {
            return try body()
        } catch {
            throw Self.fault(statement, error)
        }
    }

    private static func fault(
        _ statement: PolicyTestFile.Statement, _ error: SQLiteError
    ) -> RulesFault {
        statement.fault("SQLite refuses this statement: \(error.message)")
    }

    // MARK: - The person

    private var rights: RowRights {
        let today = person.today.map { $0 * 86_400_000 }
        return RowRights(
            program,
            of: Principal(
                name: "test", user: person.user, roles: person.roles, claims: person.claims),
            now: today ?? now)
    }

    private var name: String {
        let more =
            person.roles + person.claims.sorted { $0.key < $1.key }.map { "\($0) = \($1)" }
        let user = person.user ?? "a person without a user"
        return more.isEmpty ? user : "\(user) (\(more.joined(separator: ", ")))"
    }

    // MARK: - Seen rows

    /// Returns how the rows that the person sees differ from the expected ones.
    private func differences(
        _ seen: PolicyTestFile.Seen, _ statement: PolicyTestFile.Statement
    ) throws -> [String] {
        let type = program.schema.types[seen.type]
        let wanted = try seen.condition.map { condition in
            try refusing(statement) { () throws(SQLiteError) in
                Set(
                    try connection.prepare(
                        """
                        SELECT \(SQLName.quoted(type.key)) FROM \(SQLName.quoted(type.name)) WHERE (
                        \(condition)
                        )
                        """
                    ).rows { (row) throws(SQLiteError) in try row.recordID(0) })
            }
        }
        let evaluator = rights.evaluator(over: RowLookups(tables.ruleRows(of:where:isAmong:)))
        var rows: [RecordID: RuleRow] = [:]
        var shown: [RecordID] = []
        for row in try tables.ruleRows(of: seen.type, where: 0, isAmong: nil) {
            guard let id = RecordID(row[0]), wanted?.contains(id) ?? true else { continue }
            rows[id] = row
            if try evaluator.maySelect(row, of: seen.type) { shown.append(id) }
        }
        let isMet: Bool
        let strange: [RecordID]
        switch seen.expected {
        case .count(let count):
            isMet = shown.count == count
            strange = shown
        case .ids(let ids):
            isMet = Set(ids) == Set(shown)
            strange =
                ids.filter { !shown.contains($0) } + shown.filter { !ids.contains($0) }
        }
        guard !isMet else { return [] }
        let list = shown.map(\.description).joined(separator: ", ")
        var details = ["sees \(shown.count == 1 ? "1 row" : "\(shown.count) rows"): \(list)"]
        if shown.isEmpty { details = ["sees no rows"] }
        for id in strange.prefix(Self.mostRows) {
            let record = "\(type.name) \(id)"
            guard let row = rows[id] else {
                details.append("\(record) is not among the rows")
                continue
            }
            let judgement = try evaluator.judgement(of: row, type: seen.type)
            details.append("\(record) is \(judgement.isShown ? "shown" : "hidden")")
            details += judgement.reasons.map { "  \($0)" }
        }
        return details
    }
}

// MARK: - Changes

extension PolicyTestRun {
    /// Returns how the verdict on a change differs from the expected one. The change is undone.
    private func differences(
        _ write: PolicyTestFile.Write, _ statement: PolicyTestFile.Statement
    ) throws -> [String] {
        try connection.run("SAVEPOINT martlet_expectation")
        defer {
            try? connection.execute(
                """
                ROLLBACK TO martlet_expectation; RELEASE martlet_expectation; PRAGMA foreign_keys = ON
                """)
        }
        let (ids, conflict) = try outcome(of: write, statement)
        if ids.isEmpty, let conflict {
            return write.isAllowed ? ["is refused: \(conflict)"] : []
        }
        let type = program.schema.types[write.type]
        guard !ids.isEmpty else { return ["no row of \(type.name) is changed by it"] }
        let addresses = ids.map { RecordAddress(write.type, $0) }
        let after = try rows(of: ids, write.type)
        var before: [RuleRow] = []
        if write.command != .insert {
            try connection.run("ROLLBACK TO martlet_expectation")
            before = try rows(of: ids, write.type)
        }
        let plan = try plan(write, ids, after)
        var facts = SetFacts()
        for address in addresses {
            facts.rows[address] = RowFacts(revision: 1, author: 0, others: 0)
        }
        let rights = rights
        let judged = try SetRights(
            rights, plan.plan, facts, followsRetryable: false,
            read: tables.ruleRows(of:where:isAmong:))
        let visible = judged.visibleFacts(of: facts).rows
        let hidden = write.command == .insert ? nil : addresses.first { visible[$0] == nil }
        var refusal =
            hidden.map { "\(type.name) \($0.id) is hidden, so it cannot be changed" }
            ?? judged.refusal?.message
        if refusal == nil {
            if write.command != .insert {
                _ = try refusing(statement) { () throws(SQLiteError) in try run(write) }
            }
            refusal = try judged.refusal(
                assigned: plan.assigned, read: tables.ruleRows(of:where:isAmong:))?.message
        }
        if refusal == nil, let conflict {
            return write.isAllowed ? ["is refused: \(conflict)"] : []
        }
        guard (refusal == nil) != write.isAllowed else { return [] }
        let found = RowLookups(tables.ruleRows(of:where:isAmong:))
        for address in addresses { found.replace(address, by: nil) }
        for row in before { found.replace(RecordAddress(write.type, row), by: row) }
        return [refusal.map { "is refused: \($0)" } ?? "is allowed"]
            + (try reasons(
                write, before, after, rights.evaluator(over: found), isRefused: refusal != nil))
    }

    /// Carries out a change in the savepoint, and returns the ids of its records.
    ///
    /// Rights are judged before references, so a change that a reference forbids is carried out without
    /// them.
    /// - Returns: The reason if the tables do not take the change, too. Without ids, they take it in no way.
    private func outcome(
        of write: PolicyTestFile.Write, _ statement: PolicyTestFile.Statement
    ) throws -> (ids: [RecordID], conflict: String?) {
        do throws(SQLiteError) {
            return (try run(write), nil)
        } catch {
            guard error.isConstraint else { throw Self.fault(statement, error) }
            guard error.isForeignKeyViolation else { return ([], "\(error.message)") }
        }
        try connection.execute(
            """
            ROLLBACK TO martlet_expectation; RELEASE martlet_expectation; PRAGMA foreign_keys = OFF;
            SAVEPOINT martlet_expectation
            """)
        do throws(SQLiteError) {
            let ids = try run(write)
            return (ids, try brokenReference() ?? "FOREIGN KEY constraint failed")
        } catch {
            guard error.isConstraint else { throw Self.fault(statement, error) }
            return ([], "\(error.message)")
        }
    }

    /// Returns a reference to a record that does not exist, in words; nil if there is none.
    private func brokenReference() throws(SQLiteError) -> String? {
        let check = try connection.statement("PRAGMA foreign_key_check")
        defer { check.reset() }
        guard try check.step() else { return nil }
        return """
            the policies allow it, and a record of “\(check.text(0))” would refer to one of \
            “\(check.text(2))” that does not exist
            """
    }

    /// Carries out a change, and returns the ids of its records.
    private func run(_ write: PolicyTestFile.Write) throws(SQLiteError) -> [RecordID] {
        let key = SQLName.quoted(program.schema.types[write.type].key)
        return try connection.prepare("\(write.sql) RETURNING \(key)")
            .rows { (row) throws(SQLiteError) in try row.recordID(0) }
    }

    private func rows(of ids: [RecordID], _ type: Int) throws -> [RuleRow] {
        try tables.ruleRows(of: type, where: 0, isAmong: ids.map(\.value))
    }

    /// Returns a change as the server plans it, and the permanent ids of its new records. Rights
    /// depend on the names of the written attributes, on whether a new record's values are the defaults, and
    /// on the rows in the tables.
    private func plan(
        _ write: PolicyTestFile.Write, _ ids: [RecordID], _ after: [RuleRow]
    ) throws -> (plan: SetPlan, assigned: [RecordAddress: RecordID]) {
        var changes = TypeChanges(name: program.schema.types[write.type].name)
        let type = program.schema.types[write.type]
        let attributes = Attributes(names: write.columns, values: write.columns.map { _ in .null })
        let new = Dictionary(
            after.compactMap { row in RecordID(row[0]).map { ($0, row) } },
            uniquingKeysWith: { first, _ in first })
        var assigned: [RecordAddress: RecordID] = [:]
        for (index, id) in ids.enumerated() {
            switch write.command {
            case .insert:
                var given = id
                if case .integer = id { given = .integer(Int64(-1 - index)) }
                assigned[RecordAddress(write.type, given)] = id
                changes.create.append(given)
                let values = write.columns.map { name in
                    type.index(ofAttribute: name).flatMap { new[id]?[$0 + 1] } ?? .null
                }
                changes.entries.append(
                    RecordEntry(
                        id: given, attributes: Attributes(names: write.columns, values: values)))
            case .delete: changes.delete.append(id)
            case .select, .update:
                changes.update.append(id)
                changes.entries.append(RecordEntry(id: id, revision: 1, attributes: attributes))
            }
        }
        let plan = try SetPlan(
            ChangeSet(types: [changes]), schema: program.schema,
            checks: ValueChecks(value: { _, _, _ in nil }, id: { _, _ in nil }))
        return (plan, assigned)
    }

    /// Returns which policies decided, row by row.
    private func reasons(
        _ write: PolicyTestFile.Write, _ before: [RuleRow], _ after: [RuleRow],
        _ evaluator: RuleEvaluator, isRefused: Bool
    ) throws -> [String] {
        var reasons: [String] = []
        func add(_ row: RuleRow, _ state: String, _ findings: [PolicyFinding]) {
            guard let id = RecordID(row[0]) else { return }
            let telling = findings.filter { ($0.outcome == .holds) != isRefused }
            guard !telling.isEmpty else { return }
            reasons.append("\(program.schema.types[write.type].name) \(id)\(state)")
            reasons += telling.map { "  \($0)" }
        }
        for row in before.prefix(Self.mostRows) {
            let judgement = try evaluator.judgement(of: row, type: write.type)
            guard judgement.isShown || !isRefused else {
                reasons += ["the row is hidden"] + judgement.reasons.map { "  \($0)" }
                continue
            }
            let state = write.command == .delete ? "" : " before it"
            add(row, state, try evaluator.findings(write.command, row, of: write.type))
        }
        guard write.command != .delete else { return reasons }
        for row in after.prefix(Self.mostRows) {
            let findings = try evaluator.findings(
                write.command, row, of: write.type, isNew: true)
            add(row, write.command == .insert ? "" : " after it", findings)
        }
        return reasons
    }
}

@available(*, unavailable)
extension PolicyTestRun: Sendable {}
