import MartletModel
import MartletServerCore
import PostgresKit

extension DataSetSession {
    /// The seconds after which a device should resend a set that met a lock.
    static let retrySeconds: Int64 = 1
    /// The seconds after which a device should resend a set that may need the changed tables.
    static let takeUpSeconds: Int64 = 2
    /// The seconds after which a device should resend a set that met a fault of the server.
    static let repairSeconds: Int64 = 60

    /// Returns the refusal of a set that was not carried out.
    /// - Throws: `PostgresError` if the set is not the cause.
    func refusal(for failure: SetFailure, _ work: SetWork) throws(PostgresError) -> Refusal {
        let error: PostgresError
        switch failure {
        case .refused(let refusal): return refusal
        case .failed(let cause): error = cause
        }
        switch SetError(error) {
        // The first try after a change to the tables may fail like this.
        case .fault where error.kind == .stalePlan && isCareful: return putOff(error)
        case .fault: throw error
        case .passing:
            if slow.noteObstruction(of: work), trouble == nil { trouble = error }
            return Refusal(
                .busy, "another program holds what the change needs; send it again",
                retryAfter: Self.retrySeconds)
        case .tooLong:
            let took = ContinuousClock.now - tried
            guard slow.isLong(took, for: work) else {
                // A trigger raised the error.
                let words = PostgresError(
                    .other, error.message, sqlState: error.sqlState, sql: error.sql)
                return try refusal(for: .failed(words), work)
            }
            if trouble == nil { trouble = error }
            slow.note(work, took: took)
            return Refusal(
                .busy, "the database cannot carry out the change now: it takes too long",
                retryAfter: Self.repairSeconds)
        case .ofTheServer, .noRoom:
            guard concernsOneSet(error) else { throw error }
            return putOff(error)
        case .ofTheSet: break
        }
        if error.isUnsendable, !error.message.hasPrefix("a trigger") {
            return Refusal(
                .constraint,
                "the database stored a value no device can be sent: \(error.message)")
        }
        if error.isForeignKeyViolation, let words = referenceWords(error, work) {
            return Refusal(.constraint, words)
        }
        if error.sqlState?.hasPrefix("P0") == true {
            // The message is from the user's schema.
            return Refusal(.constraint, "the database refused: \(error.message)")
        }
        return Refusal(
            .constraint, "the database refused the change: \(error.wordsForDevices)")
    }

    private func putOff(_ error: PostgresError) -> Refusal {
        if trouble == nil { trouble = error }
        return Refusal(
            .busy, "the database cannot carry out the change now: \(error.wordsForDevices)",
            retryAfter: Self.repairSeconds)
    }

    /// Returns whether an error of the server, whose statements were undone, concerns only this
    /// set.
    ///
    /// It concerns other sets if the tables have changed, or if the database has no room for
    /// anything else either.
    private func concernsOneSet(_ error: PostgresError) -> Bool {
        guard !connection.isLost else { return false }
        switch error.kind {
        case .statement: return (try? TableState.read(connection)) == state
        case .full where error.sqlState == "53100":
            // There is one try in each transaction. If it finds no room, the whole batch fails.
            if !hasFoundRoom { hasFoundRoom = hasRoom() }
            return hasFoundRoom
        default: return true
        }
    }

    /// Returns whether the database's disk has room: makes a file of about 1 MB and undoes it. A
    /// temporary table always makes a new file, in which nothing can be reused.
    private func hasRoom() -> Bool {
        let answers = try? run([
            [
                PostgresStatement("SAVEPOINT martlet_room"),
                PostgresStatement("SELECT set_config('temp_tablespaces', '', true)"),
                PostgresStatement(
                    """
                    CREATE TEMPORARY TABLE martlet_room AS \
                    SELECT repeat('x', 1000) FROM generate_series(1, 1000)
                    """),
            ],
            [
                PostgresStatement("ROLLBACK TO SAVEPOINT martlet_room"),
                PostgresStatement("RELEASE SAVEPOINT martlet_room"),
            ],
        ])
        guard let answers else { return false }
        return answers.joined().allSatisfy { answer in
            if case .success = answer { true } else { false }
        }
    }

    /// Returns the message for a foreign key of one column between types; nil for any other.
    private func referenceWords(_ error: PostgresError, _ work: SetWork) -> String? {
        guard let table = error.table, let constraint = error.constraint,
            let column = model.referenceColumns[.init(table: table, constraint: constraint)],
            let reference = schema.types[column.type].reference(of: column.attribute),
            let parent = schema.index(of: reference.target)
        else { return nil }
        // The server names the same constraint for both ends. Only its message, which may be in any
        // language, tells them apart. A set that writes no such reference must have deleted the
        // record.
        let writes = (work.plan.creates + work.plan.updates).contains {
            $0.type == column.type && $0.attributes[column.attribute].map { $0 != .null } == true
        }
        let holder = "\(schema.types[column.type].name).\(column.attribute)"
        let deletes =
            work.plan.deletes.contains { $0.type == parent }
            || work.facts.affected.contains { $0.address.type == parent && $0.effect == .removed }
        if deletes, !writes || error.message.hasPrefix("update or delete") {
            return """
                a record of “\(reference.target)” cannot be deleted: records still refer to it in \
                “\(holder)”
                """
        }
        return """
            “\(holder)” refers to a record of “\(reference.target)” that does not exist
            """
    }

    /// Returns whether records already have keys that were drawn for new ones.
    func areTaken(_ assigned: [RecordAddress: RecordID]) throws(PostgresError) -> Bool {
        var ids: [Int: [RecordID]] = [:]
        for (address, id) in assigned { ids[address.type, default: []].append(id) }
        guard !ids.isEmpty else { return false }
        let statements = ids.sorted { $0.key < $1.key }.map { type, ids in
            let form = model.forms[type]
            return PostgresStatement(
                """
                SELECT EXISTS (SELECT FROM \(form.table.sqlName) AS t \
                WHERE t.\(form.key) = ANY ($1::\(form.keyType)))
                """, [form.keys(ids)])
        }
        for rows in try run(statements) {
            if try rows.boolean(0, 0) { return true }
        }
        return false
    }
}
