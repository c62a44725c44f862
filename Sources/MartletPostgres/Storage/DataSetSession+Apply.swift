import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

extension DataSetSession {
    /// The most sets in one round trip. Savepoints nest, and PostgreSQL keeps 64 of a transaction's
    /// in shared memory.
    private static let mostSets = 32

    /// Carries out acceptable sets in order, and stops at the first that is refused.
    func apply(_ works: [SetWork]) throws(PostgresError) -> [SetOutcome] {
        var outcomes: [SetOutcome] = []
        var next = 0
        while next < works.count {
            if let refusal = refusalBefore(works[next]) {
                outcomes.append(.refused(refusal))
                return outcomes
            }
            if let refusal = works[next].refusal {
                return outcomes + [try refused(refusal, works[next], nil)]
            }
            underway = group(works, from: next)
            let done = try carryOut(underway)
            underway = []
            outcomes += done
            if case .refused? = done.last { return outcomes }
            next += done.count
        }
        return outcomes
    }

    /// Returns why a set is refused without being tried; nil if it is to be tried.
    private func refusalBefore(_ work: SetWork) -> Refusal? {
        if isBarred(work) {
            return Refusal(
                .busy, "another program has locked a table that the set needs; send it again",
                retryAfter: Self.retrySeconds)
        }
        if let seconds = slow.wait(of: work) {
            return Refusal(
                .busy, "the database cannot carry out the change now: it took too long",
                retryAfter: seconds)
        }
        if let seconds = slow.waitAfterEnd(of: work) {
            let words = "a trigger ends the server's connection"
            if trouble == nil { trouble = PostgresError(.other, words, sqlState: "57P01") }
            return Refusal(
                .busy, "the database cannot carry out the change now: \(words)",
                retryAfter: seconds)
        }
        guard !contested.isEmpty, isContested(work) else { return nil }
        return Refusal(
            .busy, "another program is changing a record the set names; send it again",
            retryAfter: Self.retrySeconds)
    }

    private func isContested(_ work: SetWork) -> Bool {
        for change in work.plan.updates + work.plan.deletes
        where contested.contains(work.facts.permanentAddress(of: change.address)) {
            return true
        }
        return work.plan.creates.contains { contested.contains($0.address) }
            || work.facts.affected.contains { contested.contains($0.address) }
    }

    /// Returns the sets that run together: sets whose statements change nothing else.
    private func group(_ works: [SetWork], from first: Int) -> [SetWork] {
        // The rows that a set leaves are judged before the next set runs.
        if isCareful || works[first].rights != nil || SetExecution.captures(works[first], self) {
            return [works[first]]
        }
        var group: [SetWork] = []
        for work in works[first...].prefix(Self.mostSets) {
            let isPlain =
                !SetExecution.captures(work, self) && work.rights == nil
                && (contested.isEmpty || !isContested(work)) && !isBarred(work)
                && slow.wait(of: work) == nil && slow.waitAfterEnd(of: work) == nil
            guard isPlain else { break }
            group.append(work)
        }
        return group
    }

    // MARK: - Ids

    /// Assigns permanent ids to the set's new records.
    /// - Throws: `SetFailure` if there are not enough keys.
    private func assign(_ work: SetWork) throws(SetFailure) -> [RecordAddress: RecordID] {
        var assigned: [RecordAddress: RecordID] = [:]
        for create in work.plan.creates where create.id.isTemporary {
            guard let key = keys.take(of: create.type) else {
                giveBack(assigned)
                throw .refused(
                    Refusal(
                        .busy,
                        """
                        the database has no keys left for new records of \
                        “\(schema.types[create.type].name)”: the operator has to move its sequence \
                        behind the highest key, or raise its end
                        """, retryAfter: Self.repairSeconds))
            }
            assigned[create.address] = .integer(key)
        }
        return assigned
    }

    private func giveBack(_ assigned: [RecordAddress: RecordID]) {
        var free: [Int: [Int64]] = [:]
        for (address, id) in assigned {
            if case .integer(let key) = id { free[address.type, default: []].append(key) }
        }
        for (type, ids) in free { keys.giveBack(ids, of: type) }
    }

    private func newKeys(_ works: [SetWork]) -> [Int] {
        var counts = [Int](repeating: 0, count: tables.count)
        for work in works {
            for create in work.plan.creates where create.id.isTemporary {
                counts[create.type] += 1
            }
        }
        return counts
    }

    // MARK: - Sets

    /// Carries out sets in one round trip if none fails.
    private func carryOut(_ works: [SetWork]) throws(PostgresError) -> [SetOutcome] {
        try drawKeys(newKeys(works))
        var segments: [[PostgresStatement]] = []
        if openSavepoints {
            segments.append([PostgresStatement("RELEASE SAVEPOINT martlet_0")])
        }
        let before = segments.count
        var executions: [SetExecution] = []
        var keyless: SetOutcome?
        for (index, work) in works.enumerated() {
            do throws(SetFailure) {
                let execution = SetExecution(
                    self, work, revision: head.revision + Revision(index + 1),
                    assigned: try assign(work), savepoint: "martlet_\(index)")
                segments.append(execution.steps.statements)
                executions.append(execution)
                if !execution.captures {
                    uncaptured.formUnion(SetExecution.written(by: work))
                }
            } catch {
                keyless = .refused(try refusal(for: error, work))
                break
            }
        }
        if executions.isEmpty, let keyless { return [keyless] }
        tried = .now
        let answers = try run(segments)
        if before > 0 { _ = try answers[0][0].get() }
        openSavepoints = true
        var outcomes: [SetOutcome] = []
        for index in executions.indices {
            var execution = executions[index]
            do throws(SetFailure) {
                outcomes.append(try take(answers[before + index], of: &execution))
                continue
            } catch {
                for execution in executions[index...] { giveBack(execution.assigned) }
                _ = try run([PostgresStatement("ROLLBACK TO SAVEPOINT martlet_\(index)")])
                outcomes.append(try outcome(of: execution, index, after: error))
                return outcomes
            }
        }
        return outcomes + [keyless].compactMap(\.self)
    }

    /// Processes the answers to a set's statements.
    /// - Throws: `SetFailure` if the set cannot be accepted. The caller must then undo the
    ///   statements.
    private func take(
        _ answers: [PostgresConnection.Answer], of execution: inout SetExecution
    ) throws(SetFailure) -> SetOutcome {
        let left = try execution.settings(in: answers)
        try checkVital(left, captures: execution.captures)
        if let error = Self.failure(answers) { throw .failed(error) }
        if let last = left.last { try putBack(last) }
        try execution.finish(answers)
        if execution.captures { try noteBehind(&execution) }
        try measure(execution.enlarged)
        let refusal = try SetFailure.of { () throws(PostgresError) in
            try execution.work.rights?.refusal(assigned: execution.assigned, read: ruleRows)
        }
        if let refusal { throw .refused(refusal) }
        return try enter(execution)
    }

    private static func failure(_ answers: [PostgresConnection.Answer]) -> PostgresError? {
        for answer in answers {
            if case .failure(let error) = answer { return error }
        }
        return nil
    }

    /// Returns the outcome of a set whose statements failed and were undone.
    private func outcome(
        of failed: SetExecution, _ number: Int, after failure: SetFailure
    ) throws(PostgresError) -> SetOutcome {
        let work = failed.work
        if case .failed(let error) = failure, error.concernsEncoding,
            let cause = try probe(failed, savepoint: "martlet_\(number)_probe")
        {
            return .refused(try refusal(for: cause, work))
        }
        if case .failed(let error) = failure, error.isUniqueViolation {
            // The values may conflict only during the change, or another program may have taken a
            // key.
            if try areTaken(failed.assigned) { try drawUntakenKeys(newKeys([work])) }
            let assigned: [RecordAddress: RecordID]
            do throws(SetFailure) {
                assigned = try assign(work)
            } catch {
                return .refused(try refusal(for: error, work))
            }
            var execution = SetExecution(
                self, work, revision: head.revision + 1, assigned: assigned,
                savepoint: "martlet_\(number)_again", parking: true)
            tried = .now
            let answers = try run([execution.steps.statements])[0]
            do throws(SetFailure) {
                return try take(answers, of: &execution)
            } catch {
                giveBack(assigned)
                _ = try run([
                    PostgresStatement("ROLLBACK TO SAVEPOINT martlet_\(number)_again")
                ])
                return try refused(try refusal(for: error, work), work, assigned)
            }
        }
        return try refused(try refusal(for: failure, work), work, failed.assigned)
    }

    /// Returns the outcome of a set that the tables do not take.
    ///
    /// - Parameter assigned: The ids of its new records; nil if they have none yet.
    private func refused(
        _ refusal: Refusal, _ work: SetWork, _ assigned: [RecordAddress: RecordID]?
    ) throws(PostgresError) -> SetOutcome {
        .refused(
            try work.refusal(after: refusal) { (rights) throws(PostgresError) in
                var ids = assigned ?? [:]
                if assigned == nil {
                    for create in work.plan.creates where create.id.isTemporary {
                        ids[create.address] = .integer(.max)
                    }
                }
                let rows = try SetTrial(self, work, assigned: ids).rows(rights)
                return try rights.refusal(assigned: ids, leaving: rows, read: ruleRows)
            })
    }

    /// Runs a failed set's statements again without their answers, and undoes them.
    /// - Returns: The failure that a trigger changes a vital setting; nil if that is not why the
    ///   set failed.
    private func probe(
        _ failed: SetExecution, savepoint: String
    ) throws(PostgresError) -> SetFailure? {
        let probe = SetExecution(
            self, failed.work, revision: head.revision + 1, assigned: failed.assigned,
            savepoint: savepoint, isProbe: true)
        let answers = try run([probe.steps.statements])[0]
        _ = try run([PostgresStatement("ROLLBACK TO SAVEPOINT \(savepoint)")])
        do throws(SetFailure) {
            try checkVital(try probe.settings(in: answers), captures: probe.captures)
            return nil
        } catch {
            return error
        }
    }

    /// Reads records that have grown, including unchanged attributes, if they are large.
    /// - Throws: `SetFailure` for a record that no device can receive.
    private func measure(_ enlarged: [RecordAddress]) throws(SetFailure) {
        guard !enlarged.isEmpty else { return }
        try SetFailure.of { () throws(PostgresError) in
            var ids: [Int: [RecordID]] = [:]
            for address in enlarged { ids[address.type, default: []].append(address.id) }
            let parts = ids.sorted { $0.key < $1.key }
            let answers = try run(parts.map { model.forms[$0.key].readingLarge($0.value) })
            for ((type, _), answer) in zip(parts, answers) {
                for row in 0..<answer.count { _ = try model.forms[type].attributes(answer, row) }
            }
        }
    }

    /// Processes the rows that changed apart from a set's statements.
    private func noteBehind(_ execution: inout SetExecution) throws(SetFailure) {
        let deleted = execution.deleted
        let behind = try SetFailure.of { () throws(PostgresError) in try rowsBehind(and: deleted) }
        try execution.noteRow(behind.addresses, rows: behind.rows, known: behind.known)
    }

    /// Returns the records that changed apart from a set's statements, their present rows, and
    /// their facts before the set.
    /// - Parameter deleted: The records that the set deletes. A trigger may have kept them.
    private func rowsBehind(and deleted: [RecordAddress]) throws(PostgresError) -> (
        addresses: [RecordAddress], rows: [RecordAddress: SetExecution.Row],
        known: [RecordAddress: RowFacts]
    ) {
        let first = try run([RowsBehind.take, RowsBehind.end])
        let noted = try RowsBehind.addresses(first[0], model)
        let addresses = noted + deleted.filter { !noted.contains($0) }
        guard !addresses.isEmpty else { return ([], [:], [:]) }
        var ids: [Int: [RecordID]] = [:]
        for address in addresses { ids[address.type, default: []].append(address.id) }
        let parts = ids.sorted { $0.key < $1.key }
        var statements = parts.map { model.forms[$0.key].reading($0.value) }
        statements.append(RecordLookup.facts(addresses, tables))
        let answers = try run(statements)
        var rows: [RecordAddress: SetExecution.Row] = [:]
        for ((type, _), answer) in zip(parts, answers) {
            for row in 0..<answer.count {
                let id = try model.forms[type].id(answer, row, 0)
                rows[RecordAddress(type, id)] = .init(rows: answer, row: row)
            }
        }
        var known = try RecordLookup.facts(answers[parts.count], of: addresses)
        for (address, facts) in pending.records { known[address] = facts }
        return (addresses, rows, known)
    }

    /// Writes the log entry of a set that was carried out.
    private func enter(_ execution: SetExecution) throws(SetFailure) -> SetOutcome {
        let work = execution.work
        let accepted = execution.accepted
        let (entry, set): (LogEntry, ChangeSet)
        do throws(Refusal) {
            (entry, set) = try work.entry(accepted.set, created: accepted.created, after: head)
        } catch {
            throw .refused(error)
        }
        head = LogHead(revision: entry.revision, hash: entry.hash)
        slow.noteEndOfObstruction(of: work)
        pending.add(
            execution.written, execution.mappings, entry, content: work.request.content,
            remade: execution.remade)
        return .accepted(entry, set)
    }
}
