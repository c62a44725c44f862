internal import CPostgres

/// A statement and its values.
public struct PostgresStatement: Hashable, Sendable {
    public let sql: String
    public let values: [PostgresValue]

    public init(_ sql: String, _ values: [PostgresValue] = []) {
        self.sql = sql
        self.values = values
    }
}

extension PostgresConnection {
    /// The outcome of one statement of a pipeline.
    public typealias Answer = Result<PostgresRows, PostgresError>

    /// Runs statements in one round trip: it sends all of them before the server answers the first.
    ///
    /// The call prepares all statements before it runs any. New statements cost another round trip.
    /// A statement therefore cannot name a table that an earlier statement of the same call
    /// creates.
    ///
    /// ```swift
    /// let connection = try PostgresConnection(address)
    /// let answers = try connection.pipeline([
    ///     [PostgresStatement("INSERT INTO clubs (name) VALUES ($1)", [.text("Rowing")])],
    ///     [PostgresStatement("SELECT count(*) FROM clubs")],
    /// ])
    /// let count = try answers[1][0].get().integer(0, 0)
    /// ```
    ///
    /// - Parameter segments: Groups of statements. A failure skips the rest of its segment, and
    ///   nothing of the next. Outside a transaction each segment is a transaction of its own.
    /// - Returns: An answer for each statement, in the order of the statements.
    /// - Throws: `PostgresError` if a statement cannot be prepared, a value does not fit its
    ///   parameter, or the connection is lost.
    public func pipeline(_ segments: [[PostgresStatement]]) throws(PostgresError) -> [[Answer]] {
        try check()
        let sqls = segments.flatMap { $0.map(\.sql) }
        try prepare(sqls)
        var work: [[(Prepared, ParameterBuffer)]] = []
        for segment in segments {
            var part: [(Prepared, ParameterBuffer)] = []
            for statement in segment {
                guard let prepared = statements.find(statement.sql) else {
                    preconditionFailure("prepared just now")
                }
                part.append(
                    (
                        prepared,
                        try ParameterBuffer(
                            statement.values, types: prepared.parameters, types,
                            sql: statement.sql)
                    ))
            }
            work.append(part)
        }
        let leavesDoubt = StatementWord.leaveDoubt(sqls, isInTransaction: isInTransaction)
        wire.begin(mayCommit: leavesDoubt && !options.readOnly)
        let answers = try exchange(work)
        for (statement, answer) in zip(sqls, answers.joined()) {
            guard case .failure(let error) = answer, error.kind == .stalePlan else { continue }
            if error.sqlState == "26000" {
                statements.dropAll()
            } else {
                statements.drop(statement)
            }
        }
        return answers
    }

    private func exchange(
        _ work: [[(Prepared, ParameterBuffer)]]
    ) throws(PostgresError) -> [[Answer]] {
        try inPipeline { () throws(PostgresError) in
            for segment in work {
                for (prepared, values) in segment {
                    let sent = values.withPointers { count, pointers, lengths, formats in
                        PQsendQueryPrepared(
                            wire.pointer, prepared.name, count, pointers, lengths, formats, 1)
                    }
                    guard sent == 1 else { throw wire.lost(sql: prepared.sql) }
                }
                guard PQpipelineSync(wire.pointer) == 1 else { throw wire.lost() }
            }
            try wire.flush()
            var answers: [[Answer]] = []
            for segment in work {
                var part: [Answer] = []
                for (prepared, _) in segment { part.append(try answer(sql: prepared.sql)) }
                try takeSync()
                answers.append(part)
            }
            return answers
        }
    }

    /// The number of dropped statements that the server may keep although nothing uses them.
    private static let mostDropped = 50

    /// Prepares the statements that are not prepared yet, in one round trip.
    private func prepare(_ sqls: [String]) throws(PostgresError) {
        var new: [(name: String, sql: String)] = []
        for sql in sqls where statements.find(sql) == nil && !new.contains(where: { $0.sql == sql })
        {
            new.append((statements.newName(), sql))
        }
        // In a transaction the dropped statements stay: they may be gone already, and that failure
        // would end the transaction.
        let dropped = isInTransaction ? [] : statements.dropped
        // If a caller prepares statements only in transactions, this deallocates the dropped ones
        // before a transaction begins.
        guard !new.isEmpty || dropped.count > Self.mostDropped else { return }
        wire.begin(mayCommit: false)
        var strange: [UInt32] = []
        let found = try inPipeline { () throws(PostgresError) in
            for name in dropped {
                let sent = PQsendQueryParams(
                    wire.pointer, "DEALLOCATE \(name)", 0, nil, nil, nil, nil, 1)
                guard sent == 1, PQpipelineSync(wire.pointer) == 1 else { throw wire.lost() }
            }
            for (name, sql) in new {
                guard PQsendPrepare(wire.pointer, name, sql, 0, nil) == 1,
                    PQsendDescribePrepared(wire.pointer, name) == 1
                else { throw wire.lost(sql: sql) }
            }
            guard PQpipelineSync(wire.pointer) == 1 else { throw wire.lost() }
            try wire.flush()
            var found: [Result<Prepared, PostgresError>] = []
            for _ in dropped {
                _ = try answer(sql: nil)
                try takeSync()
            }
            for (name, sql) in new {
                let prepared = try result(sql: sql)
                if case .success(let none) = prepared { PQclear(none) }
                let described = try result(sql: sql)
                switch (prepared.failure, described) {
                case (let error?, _), (nil, .failure(let error)): found.append(.failure(error))
                case (nil, .success(let description)):
                    defer { PQclear(description) }
                    let parameters = (0..<PQnparams(description)).map {
                        PQparamtype(description, $0)
                    }
                    let columns = (0..<PQnfields(description)).map { PQftype(description, $0) }
                    strange += (parameters + columns).filter { types.isStrange($0) }
                    found.append(
                        .success(Prepared(name: name, sql: sql, parameters: parameters)))
                }
            }
            try takeSync()
            return found
        }
        var failure: PostgresError?
        for result in found {
            switch result {
            case .success(let prepared): statements.keep(prepared)
            case .failure(let error): if failure == nil { failure = error }
            }
        }
        if let failure { throw failure }
        if !dropped.isEmpty { statements.forgetDropped() }
        statements.shrink(sparing: Set(sqls))
        if !strange.isEmpty { try learn(strange) }
    }

    /// Asks the database about types that it defines itself.
    private func learn(_ numbers: [UInt32]) throws(PostgresError) {
        let list = PostgresArray(numbers.map { .integer(Int64($0)) })
        let rows = try query(TypeCatalogue.query, [.array(list)])
        for row in 0..<rows.count {
            types.learn(
                UInt32(truncatingIfNeeded: try rows.integer(row, 0)),
                kind: try rows.text(row, 1),
                base: UInt32(truncatingIfNeeded: try rows.integer(row, 2)),
                element: UInt32(truncatingIfNeeded: try rows.integer(row, 3)))
        }
    }

    // MARK: - Results

    private func inPipeline<Value>(
        _ body: () throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        guard PQenterPipelineMode(wire.pointer) == 1 else {
            throw PostgresError(.misuse, "the connection is busy with something else")
        }
        let value: Value
        do {
            value = try body()
        } catch {
            // Without the cut, later statements would take answers that nothing has read for their
            // own.
            wire.cut()
            throw error
        }
        guard PQexitPipelineMode(wire.pointer) == 1 else { throw wire.lost() }
        return value
    }

    /// Returns the answer to one statement.
    private func answer(sql: String?) throws(PostgresError) -> Answer {
        try result(sql: sql).map { PostgresRows($0, types) }
    }

    /// Returns the one result of a statement, and reads to the end of its results. The caller
    /// clears it.
    private func result(sql: String?) throws(PostgresError) -> Result<OpaquePointer, PostgresError>
    {
        wire.limit(options.answer)
        guard let result = try wire.result() else { throw wire.lost(sql: sql) }
        let outcome: Result<OpaquePointer, PostgresError>
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY:
            outcome = .success(result)
        default:
            let error = wire.error(result, sql: sql)
            PQclear(result)
            if wire.isLost || error.endsConnection { throw error }
            outcome = .failure(error)
        }
        if let more = try wire.result() {
            PQclear(more)
            if case .success(let first) = outcome { PQclear(first) }
            throw wire.lost(sql: sql)
        }
        return outcome
    }

    /// Takes the end of a segment.
    private func takeSync() throws(PostgresError) {
        guard let result = try wire.result() else { throw wire.lost() }
        defer { PQclear(result) }
        guard PQresultStatus(result) == PGRES_PIPELINE_SYNC else {
            throw wire.error(result, sql: nil)
        }
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { return failure }
        return nil
    }
}
