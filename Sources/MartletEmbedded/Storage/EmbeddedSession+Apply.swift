import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

extension EmbeddedSession {
    private enum Attempt {
        case accepted(LogEntry, ChangeSet)
        case refused(Refusal)
        /// The database refused a statement.
        case failed(SQLiteError)
    }

    /// Carries out one set within a savepoint.
    ///
    /// - Throws: The errors that the set has not caused.
    func apply(_ work: SetWork) throws(SQLiteError) -> SetOutcome {
        if let refusal = work.refusal {
            return try bounded { () throws(SQLiteError) in try refused(refusal, work) }
        }
        return try bounded { () throws(SQLiteError) in try outcome(of: work) }
    }

    private func outcome(of work: SetWork) throws(SQLiteError) -> SetOutcome {
        let counters = idCounters
        var attempt = try attempt(work, parking: false)
        if case .failed(let error) = attempt, error.isUniqueViolation {
            // The values may only have met on their way to their new places, or an external write
            // may have taken an id.
            idCounters = counters
            try skipTakenIDs(work.plan)
            attempt = try self.attempt(work, parking: true)
        }
        switch attempt {
        case .accepted(let entry, let set):
            return .accepted(entry, set)
        case .refused(let refusal):
            idCounters = counters
            return try refused(refusal, work)
        case .failed(let error):
            idCounters = counters
            guard !error.isInterrupted else { return .refused(Acceptance.excess) }
            return try refused(Self.refusal(for: error), work)
        }
    }

    /// Returns the outcome of a set that the tables do not take.
    private func refused(_ refusal: Refusal, _ work: SetWork) throws(SQLiteError) -> SetOutcome {
        let counters = idCounters
        defer { idCounters = counters }
        do throws(SQLiteError) {
            return .refused(
                try work.refusal(after: refusal) { (rights) throws(SQLiteError) in
                    let trial = try SetTrial(session: self, work: work, rights: rights)
                    return try rights.refusal(
                        assigned: trial.assigned, leaving: trial.rows, read: ruleRows)
                })
        } catch {
            guard connection.isInTransaction, error.isInterrupted else { throw error }
            return .refused(Acceptance.excess)
        }
    }

    private func attempt(_ work: SetWork, parking: Bool) throws(SQLiteError) -> Attempt {
        try connection.run("SAVEPOINT martlet_set")
        let result: Attempt
        do throws(SQLiteError) {
            let revision = try nextRevision()
            var execution = SetExecution(session: self, work: work, revision: revision)
            if let refusal = try execution.run(parking: parking) {
                result = .refused(refusal)
            } else {
                result = try enter(execution.accepted, work)
            }
        } catch {
            guard connection.isInTransaction else { throw error }
            if error.isDiskFull, let table = try tableWithoutKeys() {
                result = .refused(Self.noKeys(table))
            } else if Self.isOfTheSet(error) {
                result = .failed(error)
            } else {
                throw error
            }
        }
        if case .accepted = result {
            try connection.run("RELEASE martlet_set")
        } else {
            try connection.run("ROLLBACK TO martlet_set")
            try connection.run("RELEASE martlet_set")
        }
        return result
    }

    /// Returns a table whose AUTOINCREMENT has assigned the last key, which SQLite reports as a
    /// full disk: an external write has used that key, and a trigger wants one more. Nil if there
    /// is none.
    private func tableWithoutKeys() throws(SQLiteError) -> String? {
        let counters = try connection.integer(
            "SELECT count(*) FROM main.sqlite_schema WHERE name = 'sqlite_sequence'")
        guard counters == 1 else { return nil }
        return try connection.text(
            "SELECT name FROM main.sqlite_sequence WHERE seq = \(Int64.max) LIMIT 1")
    }

    private static func noKeys(_ table: String) -> Refusal {
        Refusal(
            .busy,
            """
            the database has no keys left for new rows of “\(table)”: the operator has to delete its row \
            with the greatest key, and that of the table in sqlite_sequence
            """, retryAfter: 60)
    }

    /// Writes the log entry of a set that was carried out.
    private func enter(
        _ accepted: (set: ChangeSet, created: [RecordID?]), _ work: SetWork
    ) throws(SQLiteError) -> Attempt {
        let (entry, set): (LogEntry, ChangeSet)
        do throws(Refusal) {
            (entry, set) = try work.entry(accepted.set, created: accepted.created, after: head)
        } catch {
            return .refused(error)
        }
        try append(entry, content: work.request.content, now: work.now)
        return .accepted(entry, set)
    }

    private func highestID(of type: Int) throws(SQLiteError) -> Int64? {
        let name = schema.types[type]
        let key = SQLName.quoted(name.key)
        return try connection.integer(
            """
            SELECT max(\(key)) FROM \(SQLName.quoted(name.name)) WHERE \(key) <= \(EmbeddedStore.greatestFollowedKey)
            """)
    }

    private func skipTakenIDs(_ plan: SetPlan) throws(SQLiteError) {
        for type in Set(plan.creates.map(\.type)) where schema.types[type].keyKind == .integer {
            if let highest = try highestID(of: type) {
                skipIDs(of: type, through: highest)
            }
        }
    }

    /// Returns whether an error is about the set, and not about the machine.
    static func isOfTheSet(_ error: SQLiteError) -> Bool {
        let tooBig: Int32 = 18
        return error.isConstraint || error.isMismatch || error.isStatementError
            || error.isInterrupted || error.code == tooBig
    }

    private static func refusal(for error: SQLiteError) -> Refusal {
        if error.isRaised {
            // The sentence is from the schema's RAISE.
            return Refusal(.constraint, "the database refused: \(error.message)")
        }
        return Refusal(.constraint, "the database refused the change: \(error.message)")
    }
}
