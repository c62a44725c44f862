import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// A change set that is being carried out: keys first, then creates, updates and deletes.
///
/// Foreign keys are deferred, so cyclic and self references need no particular order. SQLite counts
/// violations, and they are checked before the savepoint is released.
struct SetExecution {
    private let session: EmbeddedSession
    private let plan: SetPlan
    private let facts: SetFacts
    private let rights: SetRights?
    private let device: Int64
    private let revision: Revision
    /// The permanent ids of the records that the set creates.
    private var assigned: [RecordAddress: RecordID] = [:]
    private var effects: SetEffects
    /// The values, rows and keys that were moved out of the way until the set itself changes their records.
    private var parked = ValueParking.Parked()

    init(session: EmbeddedSession, work: SetWork, revision: Revision) {
        self.session = session
        plan = work.plan
        facts = work.facts
        rights = work.rights
        device = work.request.device
        self.revision = revision
        effects = SetEffects(types: work.plan.types)
    }

    /// The set as every device but its author receives it, and the temporary ids of its created
    /// records.
    var accepted: (set: ChangeSet, created: [RecordID?]) {
        effects.changeSet(session.schema, revision: revision)
    }

    /// Carries out the set.
    ///
    /// - Returns: The refusal if the set cannot be accepted; nil if all is done.
    /// - Throws: The database's error if it refused a statement or failed.
    mutating func run(parking: Bool) throws(SQLiteError) -> Refusal? {
        for create in plan.creates where create.id.isTemporary {
            guard let id = try session.nextID(of: create.type) else {
                return Refusal(
                    .busy,
                    """
                    the server has no keys left for new records of \
                    “\(session.schema.types[create.type].name)”: the operator has to set its counter \
                    back, as “martlet doctor” says
                    """, retryAfter: 60)
            }
            assigned[create.address] = .integer(id)
        }
        try session.capture?.start()
        if parking {
            parked = try ValueParking(session: session, plan: plan, facts: facts).park()
        }
        for create in plan.creates {
            try perform(create: create)
            if let refusal = SetMeasure.refusal(ofEntryBytes: effects.heldByteCount) {
                return refusal
            }
        }
        for update in plan.updates {
            if let refusal = try perform(update: update) { return refusal }
        }
        let order = DeleteOrder(session: session, plan: plan, facts: facts)
        for delete in try order.deletes() { try perform(delete: delete) }
        if let refusal = try rights?.refusal(assigned: assigned, read: session.ruleRows) {
            return refusal
        }
        if session.connection.hasDeferredForeignKeyViolation {
            return try ReferenceCheck(
                session: session, plan: plan, assigned: assigned, facts: facts
            )
            .refusal()
        }
        if !plan.deletes.isEmpty, let refusal = try noteDeletes() { return refusal }
        if let capture = session.capture {
            for delete in plan.deletes {
                try noteRow(facts.permanentAddress(of: delete.address), columns: nil)
            }
            for address in try capture.changedRows() { try noteRow(address, columns: nil) }
            if parking, let refusal = effects.refusalOfKept(plan, facts, session.schema) {
                return refusal
            }
        }
        return nil
    }

    // MARK: - Steps

    private mutating func perform(create: SetPlan.Change) throws(SQLiteError) {
        let id = assigned[create.address] ?? create.id
        let address = RecordAddress(create.type, id)
        let stored = try session.tables[create.type].insertReturning(
            id, session.resolved(create, assigned: assigned, facts), absentMeansNull: false)
        try store(facts.rows[address], address, isDeleted: false)
        if device != 0, case .integer(let temporary) = create.id, temporary < 0,
            case .integer(let permanent) = id
        {
            try session.map(
                temporary: temporary, type: create.type, device: device, to: permanent)
        }
        effects.set(
            address, .created, session.columns[create.type].withoutNulls(stored),
            temporary: create.id.isTemporary ? create.id : nil)
    }

    private mutating func perform(update: SetPlan.Change) throws(SQLiteError) -> Refusal? {
        let address = facts.permanentAddress(of: update.address)
        var attributes = session.resolved(update, assigned: assigned, facts)
        for name in session.columns[update.type].generated { attributes[name] = .null }
        let table = session.tables[update.type]
        guard let stored = try write(attributes, to: address, table) else {
            let name = table.type.name
            return try table.read(address.id) == nil
                ? Refusal(.stale, "a record of “\(name)” is gone from its table")
                : Refusal(.constraint, "a trigger of “\(name)” kept the change out")
        }
        // This also reads the attributes that stay, and throws if devices cannot receive all of
        // them.
        if stored.heldByteCount > Limits.unmeasuredBytes { _ = try table.read(address.id) }
        try store(facts.rows[address], address, isDeleted: false)
        effects.set(address, .updated, stored)
        return SetMeasure.refusal(ofEntryBytes: effects.heldByteCount)
    }

    /// Changes a record, with its parked values.
    ///
    /// - Returns: The attributes as the database then has them; nil if there is no such record.
    private func write(
        _ attributes: Attributes, to address: RecordAddress, _ table: RecordTable
    ) throws(SQLiteError) -> Attributes? {
        let generated = session.columns[address.type].generated
        var whole = parked.rows[address] ?? attributes
        let moved = parked.values[address] ?? Attributes()
        for (name, value) in zip(moved.names, moved.values) { whole[name] = value }
        for (name, value) in zip(attributes.names, attributes.values) { whole[name] = value }
        guard parked.rows[address] != nil || !moved.isEmpty else {
            return try table.updateReturning(address.id, attributes)
        }
        let stored: Attributes?
        if parked.rows[address] == nil {
            stored = try table.updateReturning(address.id, whole)
        } else {
            for name in generated { whole[name] = nil }
            stored = try table.insertReturning(address.id, whole, absentMeansNull: true)
        }
        guard let stored else { return nil }
        return Attributes(
            names: attributes.names, values: attributes.names.map { stored[$0] ?? .null })
    }

    private mutating func perform(delete: SetPlan.Change) throws(SQLiteError) {
        let address = facts.permanentAddress(of: delete.address)
        // The delete of a parent may have deleted the record, too.
        _ = try session.tables[delete.type].delete(parked.keys[address] ?? address.id)
        try store(facts.rows[address], address, isDeleted: true)
        effects.set(address, .deleted)
    }

    private func store(
        _ before: RowFacts?, _ address: RecordAddress, isDeleted: Bool
    ) throws(SQLiteError) {
        let facts =
            before?.changed(by: device, at: revision, isDeleted: isDeleted)
            ?? RowFacts(revision: revision, author: device, others: 0, isDeleted: isDeleted)
        try session.store(facts, of: address)
        if before?.isDeleted == true || self.facts.remade.contains(address), !isDeleted {
            try session.noteRemade(address, at: revision)
        }
    }

    // MARK: - Changes by the database

    /// Notes the records that ON DELETE actions changed. It reads the records again that the set
    /// itself created, because the actions may have changed them too.
    private mutating func noteDeletes() throws(SQLiteError) -> Refusal? {
        for row in facts.affected {
            switch row.effect {
            case .removed: try noteRow(row.address, columns: [])
            case .changed(let attribute, let held):
                let now = try Self.row(row.address, [attribute], session)
                guard now?[attribute] != held.value else { continue }
                try noteRow(row.address, columns: [attribute])
            }
        }
        for create in plan.creates {
            let address = RecordAddress(create.type, assigned[create.address] ?? create.id)
            let table = session.tables[address.type]
            guard let now = try table.read(address.id) else {
                return Refusal(
                    .invalid,
                    "the set creates a record of “\(table.type.name)” that its deletes remove")
            }
            effects.set(address, .created, session.columns[address.type].withoutNulls(now))
        }
        return nil
    }

    /// Notes the present state of a record.
    ///
    /// - Parameter names: The attributes to list, in addition to the generated ones and those
    ///   listed already; nil lists all.
    private mutating func noteRow(
        _ address: RecordAddress, columns names: [String]?
    ) throws(SQLiteError) {
        let session = session
        let before = try session.rowFacts(address)
        if before == nil, effects[address] == nil {
            let type = session.schema.types[address.type]
            if let fault = SendableKey.fault(of: address.id, type, greatest: Limits.greatestKey) {
                session.unsendable.note(type.name, address.id, fault)
                return
            }
        }
        let outcome = try effects.update(
            address, listing: names, facts: before, of: session.columns[address.type]
        ) { (names) throws(SQLiteError) in try Self.row(address, names, session) }
        switch outcome {
        case .noted: break
        case .deleted: try store(facts.rows[address] ?? before, address, isDeleted: true)
        case .changed(let isNew):
            try store(facts.rows[address] ?? before, address, isDeleted: false)
            if isNew, case .integer(let id) = address.id {
                session.skipIDs(of: address.type, through: id)
            }
        }
    }

    /// Returns a record's named attributes, or all of them if `names` is nil; nil if there is no
    /// such record.
    private static func row(
        _ address: RecordAddress, _ names: [String]?, _ session: EmbeddedSession
    ) throws(SQLiteError) -> Attributes? {
        let table = session.tables[address.type]
        guard let names else { return try table.read(address.id) }
        guard !names.isEmpty else { return try table.exists(address.id) ? Attributes() : nil }
        return try table.read(address.id, names)
    }
}
