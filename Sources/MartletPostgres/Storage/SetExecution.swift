import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// The reason why a set was not carried out.
enum SetFailure: Error {
    /// The server refused it.
    case refused(Refusal)
    /// One of its statements failed.
    case failed(PostgresError)

    /// Returns the result of `body`. If PostgreSQL refuses a statement or returns unreadable data,
    /// the set fails.
    static func of<Result>(
        _ body: () throws(PostgresError) -> Result
    ) throws(SetFailure) -> Result {
        do throws(PostgresError) {
            return try body()
        } catch {
            throw .failed(error)
        }
    }
}

/// The execution of one change set: its statements, and the changes that their answers report.
struct SetExecution {
    /// A row at the end of the set. There is none for a record that does not exist.
    struct Row {
        let rows: PostgresRows
        let row: Int
    }

    let work: SetWork
    /// The permanent ids of the records that the set creates.
    let assigned: [RecordAddress: RecordID]
    let steps: SetSteps
    /// Whether rows may change apart from the statements.
    let captures: Bool
    /// Whether unique values were replaced temporarily.
    private let parking: Bool
    private let session: DataSetSession
    private let revision: Revision
    private var effects: SetEffects
    private var stored: [RecordAddress: Attributes] = [:]
    private var rowsNow: [RecordAddress: Row] = [:]
    private var present: Set<RecordAddress> = []
    /// The facts of the records that the set changed.
    private(set) var written: [RecordAddress: RowFacts] = [:]
    /// Those of them that have the keys of deleted ones.
    private(set) var remade: Set<RecordAddress> = []

    init(
        _ session: DataSetSession, _ work: SetWork, revision: Revision,
        assigned: [RecordAddress: RecordID], savepoint: String, parking: Bool = false,
        isProbe: Bool = false
    ) {
        self.session = session
        self.work = work
        self.revision = revision
        self.assigned = assigned
        self.parking = parking
        captures = Self.captures(work, session)
        effects = SetEffects(types: work.plan.types)
        steps = SetSteps(
            session, work.plan, work.facts, assigned: assigned, savepoint: savepoint,
            captures: captures, parking: parking, limit: session.slow.limit(of: work),
            isProbe: isProbe)
    }

    static func captures(_ work: SetWork, _ session: DataSetSession) -> Bool {
        written(by: work).contains { session.changesBehind($0) }
    }

    /// Returns the types to whose tables a set's statements, and the foreign keys between types,
    /// write.
    static func written(by work: SetWork) -> Set<Int> {
        Set(work.plan.types).union(work.facts.affected.map(\.address.type))
    }

    private var plan: SetPlan { work.plan }
    private var facts: SetFacts { work.facts }

    /// The records that the set deletes.
    var deleted: [RecordAddress] {
        plan.deletes.map { facts.permanentAddress(of: $0.address) }
    }

    /// The records whose updates wrote so much that the complete record must be measured.
    var enlarged: [RecordAddress] {
        plan.updates.map { facts.permanentAddress(of: $0.address) }
            .filter { (stored[$0]?.heldByteCount ?? 0) > Limits.unmeasuredBytes }
    }

    /// The set as all devices except its author receive it, and the temporary ids of its created
    /// records.
    var accepted: (set: ChangeSet, created: [RecordID?]) {
        effects.changeSet(session.schema, revision: revision)
    }

    /// The records that received permanent ids in place of temporary ones.
    var mappings: [PendingWrites.Mapping] {
        guard work.request.device != 0 else { return [] }
        return plan.creates.compactMap { create in
            guard case .integer(let temporary) = create.id, temporary < 0,
                case .integer(let id)? = assigned[create.address]
            else { return nil }
            return .init(
                device: work.request.device, type: create.type, temporary: temporary, id: id)
        }
    }

    // MARK: - Answers

    /// Returns the session's settings between the set's statements, and after them.
    func settings(
        in answers: [PostgresConnection.Answer]
    ) throws(SetFailure) -> [SessionSettings] {
        var found: [SessionSettings] = []
        for (purpose, answer) in zip(steps.purposes, answers) {
            guard case .settings = purpose, case .success(let rows) = answer else { continue }
            found.append(
                try SetFailure.of { () throws(PostgresError) in try SessionSettings(rows) })
        }
        return found
    }

    /// Processes the answers to `steps.statements`, all of which succeeded.
    /// - Throws: `SetFailure` if the set cannot be accepted.
    mutating func finish(_ answers: [PostgresConnection.Answer]) throws(SetFailure) {
        for (purpose, answer) in zip(steps.purposes, answers) {
            try SetFailure.of { () throws(PostgresError) in try take(try answer.get(), purpose) }
        }
        for create in plan.creates { try enter(create: create) }
        for update in plan.updates { try enter(update: update) }
        if let refusal = SetMeasure.refusal(ofEntryBytes: effects.heldByteCount) {
            throw .refused(refusal)
        }
        for delete in plan.deletes {
            let address = facts.permanentAddress(of: delete.address)
            write(facts.rows[address], address, isDeleted: true)
            effects.set(address, .deleted)
        }
        if !plan.deletes.isEmpty { try noteDeletes() }
    }

    private mutating func take(
        _ rows: PostgresRows, _ purpose: SetSteps.Purpose
    ) throws(PostgresError) {
        switch purpose {
        case .none, .settings: break
        case .created(let type):
            let form = session.model.forms[type]
            for row in 0..<rows.count {
                let address = RecordAddress(type, try form.id(rows, row, 0))
                stored[address] = try form.attributes(rows, row)
            }
        case .changed(let type, let names):
            let form = session.model.forms[type]
            for row in 0..<rows.count {
                let address = RecordAddress(type, try form.id(rows, row, 0))
                stored[address] = try form.returned(names, rows, row)
            }
        case .looked(let type):
            let form = session.model.forms[type]
            for row in 0..<rows.count {
                stored[RecordAddress(type, try form.id(rows, row, 0))] = Attributes()
            }
        case .current(let type):
            let form = session.model.forms[type]
            for row in 0..<rows.count {
                let address = RecordAddress(type, try form.id(rows, row, 0))
                rowsNow[address] = Row(rows: rows, row: row)
            }
        }
    }

    private mutating func enter(create: SetPlan.Change) throws(SetFailure) {
        let address = RecordAddress(create.type, assigned[create.address] ?? create.id)
        let form = session.model.forms[create.type]
        guard let row = stored[address] else {
            throw .failed(PostgresError(.invalidValue, whatTriggerDid(create.type, "a new record")))
        }
        write(facts.rows[address], address, isDeleted: false)
        effects.set(
            address, .created, form.columns.withoutNulls(row),
            temporary: create.id.isTemporary ? create.id : nil)
    }

    private mutating func enter(update: SetPlan.Change) throws(SetFailure) {
        let address = facts.permanentAddress(of: update.address)
        guard let row = stored[address] else {
            let form = session.model.forms[update.type]
            let found = try SetFailure.of { () throws(PostgresError) in
                try session.run([form.reading([address.id])])[0].count
            }
            let words =
                found > 0 || hasOther(update.type)
                ? Refusal(.constraint, whatTriggerDid(update.type, "the change"))
                : Refusal(.stale, "a record of “\(form.type.name)” is gone from its table")
            throw .refused(words)
        }
        write(facts.rows[address], address, isDeleted: false)
        effects.set(address, .updated, row)
    }

    /// Returns the message for a row that the statements did not return.
    private func whatTriggerDid(_ type: Int, _ what: String) -> String {
        let name = session.schema.types[type].name
        return hasOther(type)
            ? "a trigger of “\(name)” gave a record another key"
            : "a trigger of “\(name)” kept \(what) out"
    }

    /// Returns whether the statements returned a row that none of them names.
    private func hasOther(_ type: Int) -> Bool {
        let own = Set(
            plan.creates.map { RecordAddress($0.type, assigned[$0.address] ?? $0.id) }
                + plan.updates.map { facts.permanentAddress(of: $0.address) })
        return stored.keys.contains { $0.type == type && !own.contains($0) }
    }

    private mutating func write(
        _ before: RowFacts?, _ address: RecordAddress, isDeleted: Bool
    ) {
        let device = work.request.device
        written[address] =
            before?.changed(by: device, at: revision, isDeleted: isDeleted)
            ?? RowFacts(revision: revision, author: device, others: 0, isDeleted: isDeleted)
        if before?.isDeleted == true || facts.remade.contains(address), !isDeleted {
            remade.insert(address)
        }
    }

    // MARK: - What the database changed on its own

    /// Lists the records that ON DELETE actions changed. It also reads the records that the set
    /// itself created once more, because the actions may have changed them, too.
    private mutating func noteDeletes() throws(SetFailure) {
        for row in facts.affected {
            switch row.effect {
            case .removed: try noteRow(row.address, columns: [], before: row.facts)
            case .changed(let attribute, let held):
                let now = try self.row(row.address, [attribute])
                guard now?[attribute] != held.value else { continue }
                try noteRow(row.address, columns: [attribute], before: row.facts)
            }
        }
        for create in plan.creates {
            let address = RecordAddress(create.type, assigned[create.address] ?? create.id)
            let form = session.model.forms[address.type]
            guard let now = try row(address, nil) else {
                throw .refused(
                    Refusal(
                        .invalid,
                        "the set creates a record of “\(form.type.name)” that its deletes remove"))
            }
            effects.set(address, .created, form.columns.withoutNulls(now))
        }
    }

    /// Processes rows that changed apart from the statements.
    /// - Parameters:
    ///   - rows: The present rows, by record.
    ///   - known: The facts of the records before the set, as far as there are any.
    mutating func noteRow(
        _ addresses: [RecordAddress], rows: [RecordAddress: Row],
        known: [RecordAddress: RowFacts]
    ) throws(SetFailure) {
        rowsNow = rows
        for address in addresses {
            try noteRow(address, columns: nil, before: known[address])
        }
        if parking, let refusal = effects.refusalOfKept(plan, facts, session.schema) {
            throw .refused(refusal)
        }
    }

    /// Processes one such row.
    /// - Parameters:
    ///   - names: The attributes to list, in addition to the generated ones and those listed
    ///     already; nil lists all.
    ///   - before: The record's facts before the set.
    private mutating func noteRow(
        _ address: RecordAddress, columns names: [String]?, before: RowFacts?
    ) throws(SetFailure) {
        let before = facts.rows[address] ?? before
        let current = written[address] ?? before
        let (found, form) = (rowsNow[address], session.model.forms[address.type])
        if current == nil, effects[address] == nil,
            let fault = SendableKey.fault(of: address.id, form.type)
        {
            session.unsendable.note(form.type.name, address.id, fault)
            return
        }
        let outcome = try effects.update(
            address, listing: names, facts: current, of: form.columns
        ) { (names) throws(SetFailure) in try Self.row(found, names, form) }
        switch outcome {
        case .noted: break
        case .deleted: write(before ?? current, address, isDeleted: true)
        case .changed: write(before, address, isDeleted: false)
        }
    }

    /// Returns a record's named attributes, or all if `names` is nil; nil if the record does not
    /// exist.
    private func row(
        _ address: RecordAddress, _ names: [String]?
    ) throws(SetFailure) -> Attributes? {
        try Self.row(rowsNow[address], names, session.model.forms[address.type])
    }

    private static func row(
        _ found: Row?, _ names: [String]?, _ form: TableFormat
    ) throws(SetFailure) -> Attributes? {
        guard let found else { return nil }
        return try SetFailure.of { () throws(PostgresError) in
            guard let names else { return try form.attributes(found.rows, found.row) }
            return try form.attributes(names, found.rows, found.row)
        }
    }
}
