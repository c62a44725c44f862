import MartletModel
import MartletServerCore
import PostgresKit

/// The rows that a batch would write. The store locks them before it judges the sets, so that its
/// findings hold until the commit.
struct RowLocks {
    /// The records to be changed, and the records to be deleted, by type.
    private var changed: [Int: Set<RecordID>] = [:]
    private var deleted: [Int: Set<RecordID>] = [:]
    /// The records to be created under ids that devices made.
    private var created: Set<RecordAddress> = []
    /// All records that the sets name.
    private(set) var all: [RecordAddress] = []

    /// Collects the rows of a batch's sets.
    /// - Parameter barred: The types whose rows cannot be locked.
    init(_ requests: [FactsRequest], _ facts: [SetFacts], barred: Set<Int>) {
        var named: Set<RecordAddress> = []
        func isNew(_ address: RecordAddress) -> Bool {
            guard !address.id.isTemporary, named.insert(address).inserted else { return false }
            return true
        }
        for (request, facts) in zip(requests, facts) {
            guard let plan = request.plan else { continue }
            for change in plan.deletes {
                let address = facts.permanentAddress(of: change.address)
                guard !address.id.isTemporary else { continue }
                if isNew(address) { all.append(address) }
                deleted[address.type, default: []].insert(address.id)
            }
            for change in plan.updates {
                let address = facts.permanentAddress(of: change.address)
                guard !address.id.isTemporary else { continue }
                if isNew(address) { all.append(address) }
                changed[address.type, default: []].insert(address.id)
            }
            for create in plan.creates where isNew(create.address) { all.append(create.address) }
        }
        for type in barred {
            changed[type] = nil
            deleted[type] = nil
        }
    }

    /// Returns one statement for each type with rows to change, then one for each with rows to
    /// delete. They skip rows that another transaction has locked.
    func statements(
        _ forms: [TableFormat], isVersioned: Bool
    ) -> [(type: Int, statement: PostgresStatement)] {
        [(changed, false), (deleted, true)].flatMap { rows, isDelete in
            rows.sorted { $0.key < $1.key }.map { type, ids in
                (
                    type,
                    forms[type].locking(
                        Array(ids), isDelete: isDelete, skips: true, isVersioned: isVersioned)
                )
            }
        }
    }

    /// Returns whether a record is to be deleted.
    func deletes(_ address: RecordAddress) -> Bool {
        deleted[address.type]?.contains(address.id) ?? false
    }

    /// Notes the rows that a statement locked.
    static func add(
        _ rows: PostgresRows, _ form: TableFormat, to held: inout HeldRows
    ) throws(PostgresError) {
        for row in 0..<rows.count {
            held[RecordAddress(form.position, try form.id(rows, row, 0))] =
                rows.columnCount > 1 ? try rows.integer(row, 1) : 0
        }
    }
}

/// The locked rows, and the transactions that wrote them if these were requested.
typealias HeldRows = [RecordAddress: Int64]

/// The facts of records that were read after their rows were locked.
struct RecordFacts {
    /// The records that other programs changed after the batch had begun.
    var external: Set<RecordAddress>
    var facts: [RecordAddress: RowFacts]
    /// The records whose rows are locked.
    var held: HeldRows

    /// Returns the records that exist, as far as is known, and whose rows another transaction
    /// holds.
    func missing(of addresses: [RecordAddress]) -> [RecordAddress] {
        addresses.filter { held[$0] == nil && facts[$0]?.isDeleted == false }
    }

    /// The records about which the store cannot decide now.
    var contested: Set<RecordAddress> = []
}

extension TableFormat {
    /// Returns a statement that locks rows and returns their keys.
    /// - Parameters:
    ///   - isDelete: Whether they are to be deleted. Then no other transaction may refer to them
    ///     meanwhile.
    ///   - skips: Whether to skip rows that other transactions have locked, or else to wait for
    ///     them.
    ///   - isVersioned: Whether to return also the numbers of the transactions that wrote the rows.
    func locking(
        _ ids: [RecordID], isDelete: Bool, skips: Bool, isVersioned: Bool
    ) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT t.\(key)\(isVersioned ? ", t.xmin::text::bigint" : "") FROM \(table.sqlName) AS t WHERE t.\(key) = ANY ($1::\(keyType)) \
            ORDER BY 1 FOR \(isDelete ? "UPDATE" : "NO KEY UPDATE")\(skips ? " SKIP LOCKED" : "")
            """, [keys(ids)])
    }
}

extension DataSetSession {
    /// Locks the records that are not held yet, and reads the facts of all.
    func lockAndRead(
        _ addresses: [RecordAddress], held: HeldRows
    ) throws(PostgresError) -> RecordFacts {
        var known = RecordFacts(external: [], facts: [:], held: held)
        let all = Array(Set(addresses))
        guard !all.isEmpty else { return known }
        var wanted: [Int: [RecordID]] = [:]
        for address in all where held[address] == nil && !barred.contains(address.type) {
            wanted[address.type, default: []].append(address.id)
        }
        let parts = wanted.sorted { $0.key < $1.key }
        var statements = parts.map { type, ids in
            model.forms[type].locking(
                ids, isDelete: true, skips: true, isVersioned: horizon != nil)
        }
        statements.append(RecordLookup.external(all, tables))
        statements.append(RecordLookup.facts(all, tables))
        let answers = try run(statements)
        for ((type, _), rows) in zip(parts, answers) {
            try RowLocks.add(rows, model.forms[type], to: &known.held)
        }
        known.external = try RecordLookup.external(answers[parts.count], of: all)
        known.facts = try RecordLookup.facts(answers[parts.count + 1], of: all)
        return known
    }

    /// Waits a moment for transactions that hold rows. If rows are still locked then, their records
    /// are contested.
    func wait(for known: inout RecordFacts, _ locks: RowLocks) throws(PostgresError) {
        known.contested = known.external
        let unheld = known.missing(of: Array(known.facts.keys))
        known.contested.formUnion(unheld.filter { barred.contains($0.type) })
        let missing = unheld.filter { !barred.contains($0.type) }
        guard !missing.isEmpty else { return }
        var wanted: [Int: [RecordID]] = [:]
        for address in missing { wanted[address.type, default: []].append(address.id) }
        for (type, ids) in wanted.sorted(by: { $0.key < $1.key }) {
            let form = model.forms[type]
            let isDelete = ids.contains { locks.deletes(RecordAddress(type, $0)) }
            let answers = try run([
                [
                    PostgresStatement("SAVEPOINT martlet_wait"),
                    PostgresStatement("SELECT set_config('lock_timeout', '50', true)"),
                    form.locking(
                        ids, isDelete: isDelete, skips: false, isVersioned: horizon != nil),
                ]
            ])[0]
            switch answers[2] {
            case .success(let rows):
                _ = try run([
                    PostgresStatement(
                        "SELECT set_config('lock_timeout', '\(Self.lockMilliseconds)', true)"),
                    PostgresStatement("RELEASE SAVEPOINT martlet_wait"),
                ])
                try RowLocks.add(rows, form, to: &known.held)
            case .failure(let error):
                guard SetError(error) == .passing else { throw error }
                // These run one after another, because nothing else can be prepared before the
                // first has run.
                _ = try run([PostgresStatement("ROLLBACK TO SAVEPOINT martlet_wait")])
                _ = try run([PostgresStatement("RELEASE SAVEPOINT martlet_wait")])
                known.contested.formUnion(ids.map { RecordAddress(type, $0) })
            }
        }
        // The transactions that held the rows may have changed them.
        let answers = try run([
            RecordLookup.external(missing, tables), RecordLookup.facts(missing, tables),
        ])
        known.contested.formUnion(try RecordLookup.external(answers[0], of: missing))
        known.facts.merge(try RecordLookup.facts(answers[1], of: missing)) { $1 }
    }

    /// Waits for external writes that the log's reader may not have read. If these are read from
    /// the write-ahead log, a commit is visible in the rows before it is noted. Rows whose last
    /// transaction may be unread, and missing rows, are checked again when everything up to now has
    /// been read. They are locked, so no other writes can be added.
    func awaitUnread(
        _ addresses: [RecordAddress], _ known: inout RecordFacts
    ) throws(PostgresError) {
        guard let horizon, let logicalWait else { return }
        let doubtful = Set(addresses).filter { address in
            if let version = known.held[address] {
                return !LogicalState.isRead(version, horizon: horizon)
            }
            return known.facts[address]?.isDeleted == false
        }.subtracting(known.contested)
        guard !doubtful.isEmpty else { return }
        let isRead: Bool
        do throws(PostgresError) {
            isRead = try logicalWait.wait()
        } catch {
            // A failed wait does not harm this transaction.
            isRead = false
        }
        guard isRead else {
            known.contested.formUnion(doubtful)
            return
        }
        let asked = Array(doubtful)
        let rows = try run([RecordLookup.external(asked, tables)])[0]
        let external = try RecordLookup.external(rows, of: asked)
        guard !external.isEmpty else { return }
        // When the batch restarts, it has the writes in the log. It restarts only once, so a
        // program that writes without end stops nothing.
        guard isRestarted else {
            isOutdated = true
            throw PostgresError(.busy, "what other programs wrote was read under a batch")
        }
        known.contested.formUnion(external)
    }
}
