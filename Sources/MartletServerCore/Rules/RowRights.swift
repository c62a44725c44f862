internal import MartletModel
internal import MartletProtocol
package import MartletRules

/// The rights of a principal to rows, by the policies of the data set, on one day.
package struct RowRights: Sendable {
    let program: RulesProgram
    let viewer: Viewer

    /// Makes the rights of a principal.
    ///
    /// - Parameter now: Milliseconds since 1970. The day is the one of UTC.
    package init(_ program: RulesProgram, of principal: Principal, now: Int64) {
        self.program = program
        viewer = Viewer(
            user: principal.user, roles: Set(principal.roles), claims: principal.claims,
            today: CalendarDay.days(milliseconds: now))
    }

    /// The schema of the data set.
    var schema: Schema { program.schema }

    /// Returns the truth of a refused set as the principal may see it. A record that he may not see is
    /// one that does not exist: it is listed as deleted if the set names it, and else not at all.
    func visible(
        _ truth: [TypeChanges], of set: ChangeSet, over rows: RowLookups
    ) throws -> [TypeChanges] {
        let evaluator = evaluator(over: rows)
        return try truth.compactMap { changes in
            guard let index = schema.index(of: changes.name) else { return nil }
            let named = set.types.filter { $0.name == changes.name }
                .reduce(into: Set()) { $0.formUnion($1.create + $1.update + $1.delete) }
            var visible = changes
            visible.update = []
            visible.entries = []
            for entry in changes.entries {
                let values = schema.types[index].attributes.map {
                    entry.attributes[$0.name] ?? .null
                }
                if try evaluator.maySelect([entry.id.value] + values, of: index) {
                    visible.update.append(entry.id)
                    visible.entries.append(entry)
                } else if named.contains(entry.oldID ?? entry.id) {
                    visible.delete.append(entry.id)
                }
            }
            return visible.update.isEmpty && visible.delete.isEmpty ? nil : visible
        }
    }

    /// Returns what judges rows by these rights.
    package func evaluator(over rows: any RuleRows) -> RuleEvaluator {
        RuleEvaluator(program, for: viewer, over: rows)
    }
}
