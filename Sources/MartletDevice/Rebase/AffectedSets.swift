internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Finds the waiting sets that an answer moves: sets that touch a record of the answer, sets that
/// refer to temporary ids that it makes permanent, and sets that share a record with any of these.
///
/// The sets whose verdicts the answer brings are marked as decided in the queue.
struct AffectedSets {
    let store: LocalStore
    let plan: Rebase.Plan

    /// The first condition is that of the index.
    private static let decided =
        "(SELECT sequence FROM martlet_outbox WHERE settling > 0 AND settling = 1)"

    /// Returns the sequences of these sets; nil for all, if finding them is not cheap.
    func sequences() throws -> Set<Int64>? {
        guard try Withheld(store: store, now: 0).isEmpty else { return nil }
        if let (rows, slice) = plan.sources.part { return try sequences(slice, of: rows) }
        if try !unapplied().isEmpty || comesWithoutTelling() { return nil }
        let deletes = "SELECT 1 FROM martlet_changes WHERE operation = 3 AND sequence NOT IN"
        let hasDeletes = try store.connection.integer("\(deletes) \(Self.decided) LIMIT 1") != nil
        var found = try numbers(
            """
            SELECT DISTINCT other.sequence FROM (
                SELECT DISTINCT type, id FROM martlet_changes WHERE sequence IN \(Self.decided)
            ) AS decided CROSS JOIN martlet_changes AS other
                ON other.type = decided.type AND other.id = decided.id
            WHERE other.sequence NOT IN \(Self.decided)
            """)
        found.formUnion(
            try numbers(
                """
                SELECT DISTINCT r.sequence FROM martlet_changes AS a JOIN martlet_references AS r
                    ON r.target = a.type AND r.temporary = a.id
                WHERE a.operation = 1 AND a.sequence IN \(Self.decided)
                    AND r.sequence NOT IN \(Self.decided)
                """))
        var met: Set<RecordKey> = []
        for set in plan.sets where isFresh(set) {
            for changes in set.types {
                try add(changes, to: &found, &met)
                if hasDeletes, try !addDeletes(ofWhat: changes, to: &found) { return nil }
            }
        }
        try close(&found, met)
        return found
    }

    /// Returns the waiting sets that a slice of a part moves. Sets that cannot be applied yet wait
    /// for the last slice, because any slice may bring the records that they need.
    private func sequences(_ slice: SnapshotSlice, of rows: SnapshotRows) throws -> Set<Int64>? {
        let unapplied = try unapplied()
        if slice.next == nil {
            let deletes = "SELECT 1 FROM martlet_changes WHERE operation = 3 LIMIT 1"
            guard unapplied.isEmpty, try store.connection.integer(deletes) == nil else {
                return nil
            }
        }
        var found: Set<Int64> = []
        for run in slice.runs {
            let type = rows.reader.schema.types[run.type]
            guard let number = try store.number(ofType: type.name) else { continue }
            let key = "martlet_key.\(SQLName.quoted(type.key))"
            let touched = try store.connection.prepare(
                """
                SELECT DISTINCT sequence FROM martlet_changes AS change WHERE type = ?3 \
                AND (typeof(id) = 'text' OR id > 0) AND EXISTS (
                    SELECT 1 FROM \(SnapshotRows.name).\(SQLName.quoted(type.name)) AS martlet_key \
                    WHERE \(key) = change.id\(run.keys.condition(key)))
                """)
            run.keys.bind(to: touched)
            touched.bind(3, integer: number)
            defer { touched.reset() }
            while try touched.step() { found.insert(touched.integer(0)) }
        }
        try close(&found, [])
        return found.subtracting(plan.decided).subtracting(unapplied)
    }

    /// Returns the waiting sets whose edits the tables do not show.
    private func unapplied() throws -> Set<Int64> {
        try numbers(
            "SELECT sequence FROM martlet_outbox WHERE applied = 0 AND \(Outbox.isWaiting)")
    }

    /// Returns whether the answer refuses an own set, or deletes records that are not gone here
    /// yet. Waiting sets may depend on these without naming them.
    private func comesWithoutTelling() throws -> Bool {
        try plan.sets.contains { set in
            let own = set.identifier.flatMap { plan.own[$0] }
            if set.conflict == true { return own != nil && set.retryAfter == nil }
            let types = isFresh(set) ? set.types.filter { !$0.delete.isEmpty } : []
            guard !types.isEmpty else { return false }
            guard let own, own.isApplied else { return true }
            var gone: Set<RecordKey> = []
            for change in try Outbox(store: store).changes(of: own.sequence)
            where change.operation == .delete { gone.insert(change.key) }
            return try types.contains { changes in
                guard let number = try store.number(ofType: changes.name) else { return false }
                return changes.delete.contains { !gone.contains(RecordKey(type: number, id: $0)) }
            }
        }
    }

    private func isFresh(_ set: ChangeSet) -> Bool {
        set.conflict != true && (set.revision ?? 0) > plan.current
    }

    /// Adds the waiting sets that touch the same records.
    /// - Parameter met: The records looked up so far. Many sets of an answer may touch one record
    ///   on which many sets wait.
    private func add(
        _ changes: TypeChanges, to found: inout Set<Int64>, _ met: inout Set<RecordKey>
    ) throws {
        guard let number = try store.number(ofType: changes.name) else { return }
        for ids in [changes.update, changes.create] {
            for id in ids {
                let key = RecordKey(type: number, id: id)
                if met.insert(key).inserted { found.formUnion(try waiting(on: key)) }
            }
        }
    }

    /// Adds the waiting sets that delete records to which arriving rows refer.
    /// - Returns: False if some may be missing, because a text may name a record whose key is
    ///   written in another case.
    private func addDeletes(ofWhat changes: TypeChanges, to found: inout Set<Int64>) throws -> Bool
    {
        guard let type = store.schema.index(of: changes.name) else { return true }
        let deletes = try store.connection.statement(
            "SELECT sequence FROM martlet_changes WHERE type = ? AND id = ? AND operation = 3")
        defer { deletes.reset() }
        for reference in store.schema.types[type].references {
            guard let target = store.schema.index(of: reference.target) else { continue }
            for entry in changes.entries {
                guard let id = entry.attributes[reference.attribute].flatMap(RecordID.init) else {
                    continue
                }
                if case .text = id {
                    guard try store.tables[target].equal(to: id) != nil else { return false }
                    continue
                }
                deletes.rewind()
                deletes.bind(1, integer: store.numbers[target])
                deletes.bind(2, id)
                while try deletes.step() {
                    if !plan.decided.contains(deletes.integer(0)) {
                        found.insert(deletes.integer(0))
                    }
                }
            }
        }
        return true
    }

    /// Adds the waiting sets that share a record with one found, until there are no more.
    /// - Complexity: O(*n*) in the changes of the sets found: each record is looked up once.
    /// - Parameter looked: The records whose sets were found already.
    private func close(_ found: inout Set<Int64>, _ looked: Set<RecordKey>) throws {
        var open = found.sorted()
        var met = looked
        let records = try store.connection.statement(
            "SELECT type, id FROM martlet_changes WHERE sequence = ?")
        defer { records.reset() }
        while let next = open.popLast() {
            records.rewind()
            records.bind(1, integer: next)
            while try records.step() {
                let key = RecordKey(type: records.integer(0), id: try records.recordID(1))
                guard met.insert(key).inserted else { continue }
                for sequence in try waiting(on: key) where found.insert(sequence).inserted {
                    open.append(sequence)
                }
            }
        }
    }

    /// Returns the sets that change a record and are not decided now.
    private func waiting(on key: RecordKey) throws -> [Int64] {
        let find = try store.connection.statement(
            "SELECT sequence FROM martlet_changes WHERE type = ? AND id = ?")
        find.bind(1, integer: key.type)
        find.bind(2, key.id)
        defer { find.reset() }
        var sequences: [Int64] = []
        while try find.step() {
            if !plan.decided.contains(find.integer(0)) { sequences.append(find.integer(0)) }
        }
        return sequences
    }

    private func numbers(_ sql: String) throws -> Set<Int64> {
        Set(
            try store.connection.statement(sql).rows { (row) throws(SQLiteError) in
                row.integer(0)
            })
    }
}
