package import MartletModel
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

    /// Returns the records among `addresses` that exist and that the principal may see.
    package func visible<Fault: Error>(
        _ addresses: [RecordAddress], read: RowReading<Fault>
    ) throws(Fault) -> Set<RecordAddress> {
        let rows = try Self.rows(of: addresses, read)
        return try RowLookups.working(read) { lookups in
            let evaluator = evaluator(over: lookups)
            return try Set(
                rows.filter { try evaluator.maySelect($0.value, of: $0.key.type) }.keys)
        }
    }

    /// Reads the rows of records. Those that do not exist, or that no device can receive, have none.
    static func rows<Fault: Error>(
        of addresses: [RecordAddress], _ read: RowReading<Fault>
    ) throws(Fault) -> [RecordAddress: RuleRow] {
        var ids: [Int: [Value]] = [:]
        for address in addresses { ids[address.type, default: []].append(address.id.value) }
        var rows: [RecordAddress: RuleRow] = [:]
        for (type, values) in ids.sorted(by: { $0.key < $1.key }) {
            for row in try read(type, 0, values) { rows[RecordAddress(type, row)] = row }
        }
        return rows
    }

    /// Returns what judges rows by these rights.
    package func evaluator(over rows: any RuleRows) -> RuleEvaluator {
        RuleEvaluator(program, for: viewer, over: rows)
    }
}
