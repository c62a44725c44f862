package import MartletModel

/// The rules by which a change set is accepted or refused, as far as they can be decided before the
/// set is carried out.
///
/// Only the database can decide the rest (unique, not null, check, a missing parent), when the set
/// is carried out.
package enum Acceptance {
    /// The seconds that a device waits before it resends a set that depends on another one.
    package static let dependencyWaitSeconds: Int64 = 1

    /// The refusal of a set that would occupy the database, and so delay all other devices, for too
    /// long.
    package static let excess = Refusal(
        .invalid,
        """
        carrying the set out takes the database too long; make it in several smaller sets, and see \
        that the columns that refer to other records have an index
        """)

    /// Returns the verdict on a set that was decided before.
    ///
    /// - Throws: `Refusal` if the identifier belongs to another set or principal. It must not be
    ///   stored over the old verdict.
    package static func repeated(
        _ decided: DecidedSet
    ) throws(Refusal) -> DecidedSet.Verdict {
        guard decided.isSameContent else {
            throw Refusal(
                .invalid,
                """
                the identifier names another change set with other content; give this one an \
                identifier of its own
                """)
        }
        guard decided.isSamePrincipal else {
            throw Refusal(
                .invalid, "the identifier is in use; give the set an identifier of its own")
        }
        return decided.verdict
    }

    /// Judges a set that was not decided before. If nothing is thrown, the set is to be carried
    /// out. If the data set has policies, `collision` may still refuse it.
    ///
    /// - Parameter rights: The judgement by the data set's policies; nil if it has none.
    /// - Throws: `Refusal`, with the reason.
    /// - Complexity: O(*n*) in the number of records that the set names or affects.
    package static func judge(
        _ plan: SetPlan, in context: SetContext, facts: SetFacts, schema: Schema, rules: Rules,
        rights: SetRights? = nil
    ) throws(Refusal) {
        guard context.seen <= context.maxRevision else {
            throw Refusal(.invalid, "“seen” is newer than the device's own “maxRevision”")
        }
        if let refusal = facts.refusal { throw refusal }
        if context.dependency != nil, !facts.isDependencyDecided {
            throw Refusal(
                .dependency, "the set this one depends on has not arrived yet",
                retryAfter: dependencyWaitSeconds)
        }
        if facts.isExcessive, rights == nil { throw excess }
        if let refusal = rights?.refusal { throw refusal }
        let facts = rights?.visibleFacts(of: facts) ?? facts
        try judgePermission(plan, context, schema, rules)
        try judgeCascades(plan, context, facts, schema, rules)
        try judgeTemporaries(plan, context, facts, schema)
        // With policies, a key must not tell somebody who may not create the record that it is taken.
        if rights == nil { try judgeCreates(plan, context, facts, schema) }
        for change in plan.updates {
            try judge(change, verb: "update", context, facts, schema)
        }
        for change in plan.deletes {
            try judge(change, verb: "delete", context, facts, schema)
        }
        // Earlier, this would tell somebody of a record that he does not see.
        if facts.isExcessive { throw excess }
        try judgeAffected(plan, context, facts, schema)
    }

    /// Returns why a set may not create its records: a record has the id of a new one, or had it. Nil if
    /// none has. It holds if the policies let the person create them.
    package static func collision(
        _ plan: SetPlan, in context: SetContext, facts: SetFacts, schema: Schema
    ) -> Refusal? {
        do throws(Refusal) {
            try judgeCreates(plan, context, facts, schema)
            return nil
        } catch {
            return error
        }
    }

    private static func judgePermission(
        _ plan: SetPlan, _ context: SetContext, _ schema: Schema, _ rules: Rules
    ) throws(Refusal) {
        for type in plan.types {
            let name = schema.types[type].name
            let allowed = rules.operations(of: context.principal, on: name)
            guard allowed != .all else { continue }
            let missing = plan.operations(on: type).subtracting(allowed)
            for (word, operation) in Operations.words where missing.contains(operation) {
                throw Refusal(
                    .permission, "you may not \(word) records of “\(name)”")
            }
        }
    }

    /// Judges the effect of deletes on other records. It needs the same rights as the same
    /// operation on a named record.
    private static func judgeCascades(
        _ plan: SetPlan, _ context: SetContext, _ facts: SetFacts, _ schema: Schema, _ rules: Rules
    ) throws(Refusal) {
        guard !facts.affected.isEmpty else { return }
        var allowed: [Int: Operations] = [:]
        for row in facts.affected {
            let type = row.address.type
            let name = schema.types[type].name
            let known = allowed[type] ?? rules.operations(of: context.principal, on: name)
            allowed[type] = known
            switch row.effect {
            case .removed where !known.contains(.delete):
                throw Refusal(
                    .permission,
                    "deleting would delete records of “\(name)”, which you may not delete")
            case .changed where !known.contains(.update):
                throw Refusal(
                    .permission,
                    "deleting would change records of “\(name)”, which you may not update")
            case .removed, .changed: break
            }
        }
    }

    private static func judgeTemporaries(
        _ plan: SetPlan, _ context: SetContext, _ facts: SetFacts, _ schema: Schema
    ) throws(Refusal) {
        if let used = facts.usedTemporaries.first {
            throw Refusal(
                .invalid,
                """
                a new record of “\(schema.types[used.type].name)” has a temporary id this device \
                used before
                """)
        }
        for address in plan.earlierTemporaries where facts.permanent[address] == nil {
            throw Refusal(
                .dependency,
                """
                a temporary id of “\(schema.types[address.type].name)” stands for a record the \
                server does not have
                """, retryAfter: context.followsRetryable ? dependencyWaitSeconds : nil)
        }
        guard !plan.earlierTemporaries.isEmpty else { return }
        var named: Set<RecordAddress> = []
        for change in plan.updates + plan.deletes {
            guard named.insert(facts.permanentAddress(of: change.address)).inserted else {
                throw Refusal(
                    .invalid,
                    """
                    a record of “\(schema.types[change.type].name)” is named twice in the set, by \
                    two ids
                    """)
            }
        }
    }

    /// The server assigns new integer ids, so only text ids can meet an existing record.
    private static func judgeCreates(
        _ plan: SetPlan, _ context: SetContext, _ facts: SetFacts, _ schema: Schema
    ) throws(Refusal) {
        guard !facts.rows.isEmpty else { return }
        for change in plan.creates {
            guard !change.id.isTemporary, let row = facts.rows[change.address] else { continue }
            let isKnown = row.newestByOthers(to: context.device) <= context.seen
            guard row.isDeleted, isKnown else {
                throw Refusal(
                    .stale,
                    """
                    a record of “\(schema.types[change.type].name)” with the new record's id \
                    \(row.isDeleted ? "was deleted meanwhile" : "exists already")
                    """)
            }
        }
    }

    private static func judge(
        _ change: SetPlan.Change, verb: String, _ context: SetContext, _ facts: SetFacts,
        _ schema: Schema
    ) throws(Refusal) {
        let name = schema.types[change.type].name
        let address = facts.permanentAddress(of: change.address)
        guard let row = facts.rows[address], !row.isDeleted else {
            throw Refusal(.stale, "a record of “\(name)” the set would \(verb) does not exist")
        }
        if let base = change.base, base > row.revision {
            throw Refusal(
                .invalid,
                "a record of “\(name)” is based on a revision it never had")
        }
        guard !row.isLeftOut else {
            throw Refusal(.stale, "\(leftOut(name)), which the set would \(verb): \(correction)")
        }
        guard (change.base ?? context.seen) >= row.newestByOthers(to: context.device) else {
            throw Refusal(
                .stale, "someone else changed a record of “\(name)” the set would \(verb)")
        }
    }

    private static func leftOut(_ name: String) -> String {
        "another program changed a record of “\(name)”"
    }

    /// The end of the sentence about a record that is left out of the log.
    private static let correction = """
        a value of it cannot be sent to devices, and it must be corrected in the database
        """

    private static func judgeAffected(
        _ plan: SetPlan, _ context: SetContext, _ facts: SetFacts, _ schema: Schema
    ) throws(Refusal) {
        guard !facts.affected.isEmpty else { return }
        var named: Set<RecordAddress> = []
        for change in plan.updates { named.insert(facts.permanentAddress(of: change.address)) }
        for change in plan.deletes { named.insert(facts.permanentAddress(of: change.address)) }
        for row in facts.affected where row.isKnowable && !named.contains(row.address) {
            guard row.facts?.isLeftOut != true else {
                let name = schema.types[row.address.type].name
                throw Refusal(
                    .stale, "\(leftOut(name)), which deleting would change: \(correction)")
            }
            let newest = row.facts?.newestByOthers(to: context.device)
            guard let newest, newest <= context.seen else {
                throw Refusal(
                    .stale,
                    """
                    deleting would change a record of “\(schema.types[row.address.type].name)” \
                    the device had not seen in its present state
                    """)
            }
        }
    }
}

extension SetFacts {
    /// Returns the address with the permanent id. It is the same address if the id is permanent
    /// already or the facts do not have it.
    package func permanentAddress(of address: RecordAddress) -> RecordAddress {
        guard address.id.isTemporary, let id = permanent[address] else { return address }
        return RecordAddress(address.type, id)
    }
}
