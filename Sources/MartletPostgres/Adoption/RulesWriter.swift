import MartletModel
import MartletRules
import PostgresKit

/// Writes the row-level security and the privileges of tables as a rules file.
///
/// PostgreSQL shows a policy in SQL that a rules file has as well. Anything else is named, with the
/// reason. Everyone may do everything with a type that no GRANT names, so each type has one.
struct RulesWriter {
    /// A table, and its name on devices.
    struct Table {
        let name: String
        let table: CatalogueTable
    }

    private let tables: [Table]
    /// Whether the tables are in more than one schema, so that messages name it.
    private let namesSchemas: Bool
    /// The names of the tables on devices, quoted as SQL needs them.
    private var names: [String] = []
    private let schema: Schema
    private let catalogue: CataloguePolicies
    private(set) var problems: [AdoptionError.Problem] = []
    private(set) var notes: [String] = []
    /// The rules file; without use if there are problems.
    private(set) var text = ""

    /// Writes the rules file of tables.
    /// - Parameters:
    ///   - tables: All tables of the data set, in the order of the schema's types.
    ///   - connection: A connection in an open transaction. Its search path is the same afterwards.
    init(_ tables: [Table], _ schema: Schema, on connection: PostgresConnection) throws {
        self.tables = tables
        namesSchemas = Set(tables.map(\.table.schema)).count > 1
        self.schema = schema
        let oids = tables.map(\.table.oid)
        var schemas: [String] = []
        for schema in tables.map(\.table.schema) where !schemas.contains(schema) {
            schemas.append(schema)
        }
        let path = try connection.query("SELECT pg_catalog.current_setting('search_path')")
            .text(0, 0)
        let setting = "SELECT pg_catalog.set_config('search_path', $1, true)"
        _ = try connection.query(
            setting, [.text(schemas.map(PostgresConnection.quoted).joined(separator: ", "))])
        catalogue = try CataloguePolicies(of: oids, on: connection)
        let quoted = try connection.query(
            "SELECT pg_catalog.quote_ident(n) FROM unnest($1::text[]) WITH ORDINALITY AS u (n, i) "
                + "ORDER BY i", [.array(PostgresArray(tables.map { .text($0.name) }))])
        for row in 0..<quoted.count { names.append(try quoted.text(row, 0)) }
        let differences = try PolicyMeaning.differences(of: oids, on: connection)
        _ = try connection.query(setting, [.text(path)])
        for difference in differences {
            guard let table = tables.first(where: { $0.table.oid == difference.table }) else {
                continue
            }
            refuse(
                "\(named(difference.policy, table)) (\(difference.clause)): "
                    + difference.words, difference.remedy)
        }
        try write()
        if !problems.isEmpty {
            refuse(
                "a rules file cannot be made of this row-level security",
                "change the policies in the database, or write a rules file by hand "
                    + "(docs/policies.md) and name it with --rules")
        }
    }

    private mutating func refuse(_ what: String, _ remedy: String) {
        problems.append(AdoptionError.Problem(what, remedy))
    }

    private func named(_ name: String, _ table: Table) -> String {
        "policy \(name) of table “\(shown(table))”"
    }

    /// Returns the name of a table in messages.
    private func shown(_ table: Table) -> String {
        namesSchemas ? "\(table.table.schema).\(table.table.name)" : table.table.name
    }

    private mutating func write() throws {
        text = """
            -- The row-level security and the privileges of these tables, as PostgreSQL has them.
            -- martlet postgres adopt wrote this file, and martlet serve --rules applies it.

            """
        for (position, table) in tables.enumerated() { write(table, position) }
        guard problems.isEmpty else { return }
        do throws(RulesFault) {
            let program = try RulesProgram(text, schema: schema)
            if program.showsNothing {
                refuse("no table has a policy, so nobody would see anything", "create policies")
            }
        } catch {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            let line = lines.indices.contains(error.line - 1) ? lines[error.line - 1] : ""
            refuse("“\(line)”: \(error.message)", error.remedy ?? "write it otherwise")
        }
        refuseClaims()
        noteRoles()
    }

    /// Refuses claims whose names differ by case. For PostgreSQL they are one setting.
    private mutating func refuseClaims() {
        guard let program = try? RulesProgram(text, schema: schema) else { return }
        var known: [String: String] = [:]
        for (table, policies) in zip(tables, program.policies) {
            for policy in policies {
                for claim in program.inputs(of: policy).claims.sorted() {
                    guard let other = known.updateValue(claim, forKey: claim.lowercased()),
                        other != claim
                    else { continue }
                    refuse(
                        """
                        \(named(policy.name, table)) asks for the claim “\(claim)”, and another \
                        one for “\(other)”: PostgreSQL takes them for one, and Martlet does not
                        """, "write both alike, as the tokens have the claim")
                }
            }
        }
    }

    private mutating func write(_ table: Table, _ position: Int) {
        let name = names[position]
        text += "\n"
        if !table.table.hasRowSecurity {
            text += "ALTER TABLE \(name) DISABLE ROW LEVEL SECURITY;\n"
        }
        let grants = grants(on: table, position)
        for grant in grants { text += grant + ";\n" }
        if grants.isEmpty {
            text += "GRANT ALL ON \(name) TO PUBLIC;\nREVOKE ALL ON \(name) FROM PUBLIC;\n"
            notes.append(
                "PostgreSQL grants nothing on table “\(shown(table))” to anyone who has to obey "
                    + "its policies, so no device gets rows of it")
        }
        for policy in catalogue.policies where policy.table == table.table.oid {
            write(policy, table, position)
        }
    }

    // MARK: - Policies

    private static let commands = ["r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"]

    private mutating func write(
        _ policy: CataloguePolicies.Policy, _ table: Table, _ position: Int
    ) {
        guard policy.outside.isEmpty else {
            return refuse(
                "\(named(policy.name, table)) reads "
                    + policy.outside.map { "“\($0)”" }.joined(separator: ", ")
                    + ", which devices do not have",
                "adopt it too if it is a table, or leave it out of the policy")
        }
        var lines = ["CREATE POLICY \(policy.name) ON \(names[position])"]
        if !policy.isPermissive { lines[0] += " AS RESTRICTIVE" }
        if let command = Self.commands[policy.command] { lines[0] += " FOR \(command)" }
        if !policy.roles.isEmpty { lines[0] += " TO \(policy.roles.joined(separator: ", "))" }
        for (clause, condition) in policy.conditions {
            do throws(RulesFault) {
                let plain = try RulesProgram.droppingCasts(
                    of: condition, to: catalogue.enumerations)
                try RulesProgram.check(condition: plain, of: position, schema: schema)
                lines.append("    \(clause) (\(plain))")
            } catch {
                refuse(
                    """
                    \(named(policy.name, table)) (\(clause), line \(error.line), column \
                    \(error.column), “\(Self.excerpt(of: condition, error))”): \(error.message)
                    """, Self.remedy(for: error))
            }
        }
        text += lines.joined(separator: "\n") + ";\n"
    }

    /// Returns what to write in the database.
    private static func remedy(for fault: RulesFault) -> String {
        let remedy = fault.remedy ?? "write it otherwise"
        guard remedy.contains("martlet_") else { return remedy }
        return remedy + "; docs/policies-guide.md has these functions for PostgreSQL"
    }

    /// Returns the part of a condition at which a fault was found.
    private static func excerpt(of condition: String, _ fault: RulesFault) -> String {
        let lines = condition.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.indices.contains(fault.line - 1) else { return "" }
        let rest = lines[fault.line - 1].unicodeScalars.dropFirst(fault.column - 1)
        let part = String(String.UnicodeScalarView(rest.prefix(40)))
        return rest.count > 40 ? part + " …" : part
    }

    // MARK: - Privileges

    /// Returns the GRANT statements of a table.
    private mutating func grants(on table: Table, _ position: Int) -> [String] {
        let type = schema.types[position]
        let all = catalogue.grants.filter { $0.table == table.table.oid }
        var grantees: [Int64?] = []
        for grant in all where !grantees.contains(grant.grantee) { grantees.append(grant.grantee) }
        for role in Set(all.flatMap(\.barred)).sorted() {
            refuse(
                """
                table “\(shown(table))” grants privileges to \(role), and PostgreSQL lets \
                \(role == "PUBLIC" ? "only some roles" : "this role not") use its schema \
                “\(table.table.schema)”
                """,
                "GRANT USAGE ON SCHEMA \(PostgresConnection.quoted(table.table.schema)) TO \(role), "
                    + "or revoke the privileges on the table")
        }
        let isPublic = all.contains {
            $0.grantee == nil && $0.command == "SELECT" && $0.column == nil
        }
        return grantees.compactMap { grantee in
            let own = all.filter { $0.grantee == grantee }
            let roles = own[0].roles.isEmpty ? "PUBLIC" : own[0].roles.joined(separator: ", ")
            var privileges: [String] = []
            for command in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
                let held = own.filter { $0.command == command }
                if held.contains(where: { $0.column == nil }) {
                    privileges.append(command)
                } else if command == "SELECT", !held.isEmpty, !isPublic {
                    refuse(
                        """
                        table “\(shown(table))” grants SELECT on single columns to \(roles), and a \
                        device has rows whole
                        """,
                        "grant it on the table, or keep the other columns in a table of its own")
                } else if command != "SELECT" {
                    let columns = held.compactMap(\.column).filter { column in
                        column.name.hasSameBytes(as: type.key)
                            || type.index(ofAttribute: column.name) != nil
                    }
                    guard !columns.isEmpty else { continue }
                    privileges.append("\(command) (\(columns.map(\.sql).joined(separator: ", ")))")
                }
            }
            guard !privileges.isEmpty else { return nil }
            return "GRANT \(privileges.joined(separator: ", ")) ON \(names[position]) TO \(roles)"
        }
    }

    private mutating func noteRoles() {
        for exemption in catalogue.exemptions {
            notes.append(
                """
                the role \(exemption.role) \(exemption.reason), so PostgreSQL shows it more than the \
                policies and GRANTs say; a person with this role in Martlet has to obey them
                """)
        }
        var roles = Set(catalogue.policies.flatMap(\.roles))
        roles.formUnion(catalogue.grants.flatMap(\.roles))
        guard !roles.isEmpty else { return }
        notes.append(
            "the rules name the roles \(roles.sorted().joined(separator: ", ")): the token of a "
                + "person needs those that PostgreSQL gives to him (martlet token create --role)")
    }
}
