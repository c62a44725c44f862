import MartletModel
import MartletRules

extension PostgresDoctor {
    /// Returns a finding if tables have row-level security and the servers' rules say nothing of
    /// rows, or if the rules do not fit the tables.
    func rules(_ schema: PostgresSchema) -> [Finding] {
        let program: RulesProgram?
        do {
            program = try policies?(schema.schema)
        } catch {
            return [
                self.error(
                    "rules", "\(error)", "A server will not start with this rules file.",
                    "Correct it; docs/policies.md says how.")
            ]
        }
        if let program, !program.showsNothing {
            return program.typesWithoutPolicies.map { name in
                let remedy = RulesProgram.remedy(forTypeWithoutPolicies: name)
                return warning(
                    "rules", "The rules file has no policy for “\(name)”.",
                    "No device gets rows of it.",
                    remedy.prefix(1).uppercased() + remedy.dropFirst() + ".")
            }
        }
        let why =
            policies == nil
            ? "No rules file was given here, and the servers' role bypasses the policies."
            : "The rules file has no policies, and the servers' role bypasses those of PostgreSQL."
        return schema.rowSecurityNotes.map { note in
            warning(
                "rules", "The \(note).", why,
                """
                martlet postgres adopt --rules FILE writes a rules file of the policies. Start the servers \
                with --rules FILE, and name it here with --rules FILE as well.
                """)
        }
    }
}
