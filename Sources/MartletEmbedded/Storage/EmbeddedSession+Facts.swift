import MartletModel
import MartletServerCore
import SQLiteKit

extension EmbeddedSession {
    /// Returns the facts by which a set is judged. If the search takes too long, the facts say so.
    func facts(for request: FactsRequest) throws(SQLiteError) -> SetFacts {
        var facts = SetFacts()
        do throws(SQLiteError) {
            try bounded { () throws(SQLiteError) in try find(&facts, for: request) }
        } catch {
            guard error.isInterrupted, connection.isInTransaction else { throw error }
            facts.isExcessive = true
        }
        return facts
    }

    private func find(_ facts: inout SetFacts, for request: FactsRequest) throws(SQLiteError) {
        if request.device != 0, let sequence = request.sequence {
            facts.used = try usedSequence(sequence, device: request.device)
        }
        facts.decided = try decided(request)
        guard facts.decided == nil else { return }
        if let dependency = request.dependency {
            facts.isDependencyDecided = try verdict(identifier: dependency) != nil
        }
        guard let plan = request.plan else { return }
        if request.device != 0 {
            for address in plan.earlierTemporaries {
                if case .integer(let number) = address.id {
                    facts.permanent[address] = try permanentID(
                        of: number, type: address.type, device: request.device)
                }
            }
            for create in plan.creates {
                guard case .integer(let number) = create.id, number < 0 else { continue }
                if try isUsed(temporary: number, type: create.type, device: request.device) {
                    facts.usedTemporaries.append(create.address)
                }
            }
        }
        for change in plan.updates + plan.deletes {
            let address = facts.permanentAddress(of: change.address)
            guard !address.id.isTemporary else { continue }
            facts.rows[address] = try rowFacts(address)
        }
        for create in plan.creates where !create.id.isTemporary {
            facts.rows[create.address] = try rowFacts(create.address)
        }
        if let affected = try affected(by: plan, facts) {
            facts.affected = affected
        } else {
            facts.isExcessive = true
        }
    }

    private func affected(
        by plan: SetPlan, _ facts: SetFacts
    ) throws(SQLiteError) -> [AffectedRow]? {
        let deleted = plan.deletes.map { facts.permanentAddress(of: $0.address) }
            .filter { !$0.id.isTemporary }
        guard deleted.contains(where: { !cascades.links(from: $0.type).isEmpty }) else {
            return []
        }
        var updated: [RecordAddress: Attributes] = [:]
        for change in plan.updates {
            updated[facts.permanentAddress(of: change.address)] = resolved(
                change, assigned: [:], facts)
        }
        return try affected(byDeleting: deleted, updating: updated)
    }

    /// Returns a change's attributes with permanent ids in place of temporary ones, as far as they
    /// are known.
    func resolved(
        _ change: SetPlan.Change, assigned: [RecordAddress: RecordID], _ facts: SetFacts
    ) -> Attributes {
        var attributes = change.attributes
        for (attribute, target) in columns[change.type].references {
            guard let index = attributes.names.firstIndex(of: attribute),
                case .integer(let number) = attributes.values[index], number < 0
            else { continue }
            let address = RecordAddress(target, .integer(number))
            if let id = assigned[address] ?? facts.permanent[address] {
                attributes.setValue(id.value, at: index)
            }
        }
        return attributes
    }
}

// MARK: - Sets decided before

extension EmbeddedSession {
    /// A stored verdict.
    struct StoredVerdict {
        let device: Int64
        let content: [UInt8]
        let identifier: String?
        let verdict: DecidedSet.Verdict
    }

    private func decided(_ request: FactsRequest) throws(SQLiteError) -> DecidedSet? {
        guard let stored = try storedVerdict(request) else { return nil }
        if case .refused(let refusal) = stored.verdict, refusal.isOfTheSchema,
            request.plan != nil
        {
            // The schema has gained the missing part since, so the set is judged for the first
            // time.
            return nil
        }
        var isSamePrincipal = stored.device == 0 || stored.device == request.device
        if !isSamePrincipal {
            isSamePrincipal = try principal(of: stored.device) == request.principal.identity
        }
        return DecidedSet(
            verdict: stored.verdict, isSameContent: stored.content == request.content,
            isSamePrincipal: isSamePrincipal)
    }

    private func storedVerdict(_ request: FactsRequest) throws(SQLiteError) -> StoredVerdict? {
        if let identifier = request.identifier,
            let known = try verdict(identifier: identifier)
        {
            return known
        }
        guard request.device != 0, let sequence = request.sequence,
            try mayHaveUsed(sequence, device: request.device)
        else { return nil }
        return try verdict(sequence: sequence, device: request.device)
    }

    /// Returns the verdict on the set with that identifier, if it was accepted or finally refused;
    /// nil otherwise.
    func verdict(identifier: String) throws(SQLiteError) -> StoredVerdict? {
        if let accepted = try acceptedSet(identifier: identifier) { return accepted }
        return try refusedSet(identifier: identifier)
    }

    private func verdict(
        sequence: Int64, device: Int64
    ) throws(SQLiteError) -> StoredVerdict? {
        if let accepted = try acceptedSet(sequence: sequence, device: device) { return accepted }
        return try refusedSet(sequence: sequence, device: device)
    }

    func usedSequence(_ sequence: Int64, device: Int64) throws(SQLiteError) -> UsedSequence? {
        guard try mayHaveUsed(sequence, device: device) else { return nil }
        return try verdict(sequence: sequence, device: device).map {
            UsedSequence(identifier: $0.identifier, content: $0.content)
        }
    }

    private func acceptedSet(identifier: String) throws(SQLiteError) -> StoredVerdict? {
        let statement = try connection.statement(
            "SELECT device, content, identifier, revision FROM martlet_log WHERE identifier = ?1")
        statement.bind(1, text: identifier)
        return try acceptedSet(statement)
    }

    private func acceptedSet(
        sequence: Int64, device: Int64
    ) throws(SQLiteError) -> StoredVerdict? {
        let statement = try connection.statement(
            """
            SELECT device, content, identifier, revision FROM martlet_log \
            WHERE device = ?1 AND device <> 0 AND sequence = ?2
            """)
        statement.bind(1, integer: device)
        statement.bind(2, integer: sequence)
        return try acceptedSet(statement)
    }

    private func acceptedSet(_ statement: Statement) throws(SQLiteError) -> StoredVerdict? {
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return StoredVerdict(
            device: statement.integer(0), content: statement.blob(1),
            identifier: statement.isNull(2) ? nil : statement.text(2),
            verdict: .accepted(statement.integer(3)))
    }

    private func refusedSet(identifier: String) throws(SQLiteError) -> StoredVerdict? {
        let statement = try connection.statement(
            """
            SELECT device, content, identifier, reason, message FROM martlet_refusals \
            WHERE identifier = ?1
            """)
        statement.bind(1, text: identifier)
        return try refusedSet(statement)
    }

    private func refusedSet(
        sequence: Int64, device: Int64
    ) throws(SQLiteError) -> StoredVerdict? {
        let statement = try connection.statement(
            """
            SELECT device, content, identifier, reason, message FROM martlet_refusals \
            WHERE device = ?1 AND sequence = ?2
            """)
        statement.bind(1, integer: device)
        statement.bind(2, integer: sequence)
        return try refusedSet(statement)
    }

    private func refusedSet(_ statement: Statement) throws(SQLiteError) -> StoredVerdict? {
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let refusal = Refusal(RefusalReason(rawValue: statement.text(3)), statement.text(4))
        return StoredVerdict(
            device: statement.integer(0), content: statement.blob(1),
            identifier: statement.isNull(2) ? nil : statement.text(2),
            verdict: .refused(refusal))
    }

    func remember(
        _ refusal: Refusal, of request: FactsRequest, now: Int64
    ) throws(SQLiteError) {
        guard request.device != 0, request.identifier != nil || request.sequence != nil else {
            return
        }
        let statement = try connection.statement(
            """
            INSERT OR REPLACE INTO martlet_refusals (device, sequence, identifier, content, reason, message, \
            time) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """)
        defer { statement.reset() }
        statement.bind(1, integer: request.device)
        if let sequence = request.sequence { statement.bind(2, integer: sequence) }
        if let identifier = request.identifier { statement.bind(3, text: identifier) }
        statement.bind(4, blob: request.content)
        statement.bind(5, text: refusal.reason.rawValue)
        statement.bind(6, text: refusal.message)
        statement.bind(7, integer: now)
        try statement.run()
        note(sequence: request.sequence, device: request.device)
    }
}
