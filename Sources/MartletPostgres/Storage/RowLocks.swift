import MartletModel
import MartletServerCore
import PostgresKit

/// The rows that a batch would write, locked before they are judged: what is found then holds until
/// the commit.
struct RowLocks {
    /// Records to be changed and deleted, by type.
    private var changed: [Int: Set<RecordID>] = [:]
    private var deleted: [Int: Set<RecordID>] = [:]
    /// Records to be created under ids that devices made.
    private var created: Set<RecordAddress> = []
    /// The types with rows to lock: one statement each, changed before deleted.
    private(set) var types: [Int] = []
    /// All records named.
    private(set) var all: [RecordAddress] = []

    /// - Parameter barred: Types whose rows cannot be locked.
    init(_ questions: [FactsRequest], _ facts: [SetFacts], barred: Set<Int>) {
        var named: Set<RecordAddress> = []
        func isNew(_ address: RecordAddress) -> Bool {
            guard !address.id.isTemporary, named.insert(address).inserted else { return false }
            return true
        }
        for (question, facts) in zip(questions, facts) {
            guard let plan = question.plan else { continue }
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
        types = changed.keys.sorted() + deleted.keys.sorted()
    }

    /// One for each of `types`. Rows that somebody else has locked are passed over.
    func statements(_ forms: [TableFormat], isVersioned: Bool) -> [PostgresStatement] {
        changed.sorted { $0.key < $1.key }.map {
            forms[$0.key].locking(
                Array($0.value), isDelete: false, skips: true, isVersioned: isVersioned)
        }
            + deleted.sorted { $0.key < $1.key }.map {
                forms[$0.key].locking(
                    Array($0.value), isDelete: true, skips: true, isVersioned: isVersioned)
            }
    }

    /// Whether a record is to be deleted.
    func deletes(_ address: RecordAddress) -> Bool {
        deleted[address.type]?.contains(address.id) ?? false
    }

    /// Notes what a statement locked.
    static func add(
        _ rows: PostgresRows, _ form: TableFormat, to held: inout HeldRows
    ) throws(PostgresError) {
        for row in 0..<rows.count {
            held[RecordAddress(form.position, try form.id(rows, row, 0))] =
                rows.columnCount > 1 ? try rows.integer(row, 1) : 0
        }
    }
}

/// Rows that are locked, and the transactions that wrote them, where those are asked for.
typealias HeldRows = [RecordAddress: Int64]

/// What was found about records once their rows were locked.
struct RecordFacts {
    /// Records that other programs changed after the batch had begun.
    var external: Set<RecordAddress>
    var facts: [RecordAddress: RowFacts]
    /// Records whose rows are locked.
    var held: HeldRows

    /// Records that are there, as far as is known, and whose rows somebody else holds.
    func missing(of addresses: [RecordAddress]) -> [RecordAddress] {
        addresses.filter { held[$0] == nil && facts[$0]?.isDeleted == false }
    }

    /// Records about which nothing can be decided now.
    var contested: Set<RecordAddress> = []
}

extension TableFormat {
    /// Locks rows, and gives their keys.
    /// - Parameters:
    ///   - isDelete: Whether they are to be deleted: then nobody may point at them meanwhile.
    ///   - skips: Whether rows that others have locked are passed over; else they are waited for.
    ///   - isVersioned: Whether the numbers of the transactions that wrote them are given too.
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

extension StoreSession {
    /// Locks the records not held yet, and reads what is known of all.
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

    /// Gives those who hold rows a moment more; what is not to be had then is contested.
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
                // One after the other: until the first has run, nothing else can be prepared.
                _ = try run([PostgresStatement("ROLLBACK TO SAVEPOINT martlet_wait")])
                _ = try run([PostgresStatement("RELEASE SAVEPOINT martlet_wait")])
                known.contested.formUnion(ids.map { RecordAddress(type, $0) })
            }
        }
        // Whoever held them may have changed them.
        let answers = try run([
            RecordLookup.external(missing, tables), RecordLookup.facts(missing, tables),
        ])
        known.contested.formUnion(try RecordLookup.external(answers[0], of: missing))
        known.facts.merge(try RecordLookup.facts(answers[1], of: missing)) { $1 }
    }

    /// Where other programs' writes are read from the write-ahead log, what they committed shows in
    /// the rows before it is noted. Rows that a transaction wrote which may not have been read, and
    /// those that are gone, are asked about again once everything up to now has been read: they are
    /// locked, so no more can come.
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
            // This transaction is none the worse for it.
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
        // Begun anew, the batch has it in the log. Once: whoever writes without end stops nobody.
        guard isAnew else {
            isOutdated = true
            throw PostgresError(.busy, "what other programs wrote was read under a batch")
        }
        known.contested.formUnion(external)
    }
}
