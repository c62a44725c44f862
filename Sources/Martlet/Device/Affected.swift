internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Which waiting sets an answer moves: those that touch a record it touches, those that refer to
/// temporary ids it makes permanent, and those that share a record with any of these.
///
/// The sets whose fate the answer brings are marked as settling in the queue.
struct Affected {
    let store: LocalStore
    let plan: Rebase.Plan

    private static let settling = "(SELECT sequence FROM martlet_outbox WHERE settling = 1)"

    /// The sets' numbers; nil where it is not cheap to tell, which means all.
    func sequences() throws -> Set<Int64>? {
        guard !plan.waiting.isEmpty else { return nil }
        if plan.waiting.contains(where: { !$0.isApplied }) || comesWithoutTelling() { return nil }
        // What was deleted here may be referred to by any row that comes.
        let deletes = "SELECT 1 FROM martlet_changes WHERE operation = 3 AND sequence NOT IN"
        if try store.connection.integer("\(deletes) \(Self.settling) LIMIT 1") != nil { return nil }
        var found = try numbers(
            """
            SELECT DISTINCT b.sequence FROM martlet_changes AS a JOIN martlet_changes AS b
                ON a.type = b.type AND a.id = b.id
            WHERE a.sequence IN \(Self.settling) AND b.sequence NOT IN \(Self.settling)
            """)
        found.formUnion(
            try numbers(
                """
                SELECT DISTINCT r.sequence FROM martlet_changes AS a JOIN martlet_references AS r
                    ON r.target = a.type AND r.temporary = a.id
                WHERE a.operation = 1 AND a.sequence IN \(Self.settling)
                    AND r.sequence NOT IN \(Self.settling)
                """))
        for set in plan.sets where isFresh(set) {
            for changes in set.types { try add(changes, to: &found) }
        }
        try close(&found)
        return found
    }

    /// Whether the answer refuses an own set, or deletes records, which waiting sets may depend on
    /// without naming them.
    private func comesWithoutTelling() -> Bool {
        plan.sets.contains { set in
            let isOwn = set.identifier.map { plan.own[$0] != nil } ?? false
            if set.conflict == true { return isOwn && set.retryAfter == nil }
            return isFresh(set) && set.types.contains { !$0.delete.isEmpty }
        }
    }

    private func isFresh(_ set: ChangeSet) -> Bool {
        set.conflict != true && (set.revision ?? 0) > plan.current
    }

    /// Adds the waiting sets that touch the same records.
    private func add(_ changes: TypeChanges, to found: inout Set<Int64>) throws {
        guard let number = try store.number(ofType: changes.name) else { return }
        let find = try store.connection.statement(
            "SELECT sequence FROM martlet_changes WHERE type = ? AND id = ?"
                + " AND sequence NOT IN \(Self.settling)")
        defer { find.reset() }
        for ids in [changes.update, changes.create] {
            for id in ids {
                find.rewind()
                find.bind(1, integer: number)
                find.bind(2, id)
                while try find.step() { found.insert(find.integer(0)) }
            }
        }
    }

    /// Adds the waiting sets that share a record with one found, until there are no more.
    private func close(_ found: inout Set<Int64>) throws {
        var open = found.sorted()
        while let next = open.popLast() {
            let share = try store.connection.statement(
                """
                SELECT DISTINCT b.sequence FROM martlet_changes AS a JOIN martlet_changes AS b
                    ON a.type = b.type AND a.id = b.id
                WHERE a.sequence = ? AND b.sequence NOT IN \(Self.settling)
                """)
            share.bind(1, integer: next)
            defer { share.reset() }
            while try share.step() {
                if found.insert(share.integer(0)).inserted { open.append(share.integer(0)) }
            }
        }
    }

    private func numbers(_ sql: String) throws -> Set<Int64> {
        let rows = try store.connection.statement(sql)
        defer { rows.reset() }
        var numbers: Set<Int64> = []
        while try rows.step() { numbers.insert(rows.integer(0)) }
        return numbers
    }
}
