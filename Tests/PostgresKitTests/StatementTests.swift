import PostgresKit
import Synchronization
import Testing

@Suite("Statements")
struct StatementTests {
    @Test("are prepared once, and no more are kept than was said")
    func prepared() async throws {
        let (kept, onServer, sum) = try await TestServer.connected(
            PostgresOptions(preparedStatements: 4)
        ) { connection in
            var sum: Int64 = 0
            for round in 0..<3 {
                for number in 0..<10 {
                    sum += try connection.query(
                        "SELECT \(number) + $1::integer", [.integer(Int64(round))]
                    ).integer(0, 0)
                }
            }
            let onServer = try connection.query("SELECT count(*) FROM pg_prepared_statements")
            return (connection.preparedStatements, try onServer.integer(0, 0), sum)
        }
        #expect(kept == 4)
        // One that was dropped goes with the next that is prepared.
        #expect(onServer <= 5)
        #expect(sum == 3 * 45 + 30)
    }

    @Test("are prepared anew when a table's shape has changed, or the server forgot them")
    func staleStatements() async throws {
        let columns = try await TestServer.connected { connection in
            try connection.execute("CREATE TEMP TABLE shape (a integer)")
            var columns = [try connection.query("SELECT * FROM shape").columnNames]
            try connection.execute("ALTER TABLE shape ADD b text")
            columns.append(try connection.query("SELECT * FROM shape").columnNames)
            try connection.execute("DEALLOCATE ALL")
            columns.append(try connection.query("SELECT * FROM shape").columnNames)
            try connection.begin()
            try connection.execute("ALTER TABLE shape ADD c text")
            let error = try TestServer.error { _ = try connection.query("SELECT * FROM shape") }
            #expect(error.kind == .stalePlan && error.mayPass)
            try connection.rollback()
            columns.append(try connection.query("SELECT * FROM shape").columnNames)
            return columns
        }
        #expect(columns == [["a"], ["a", "b"], ["a", "b"], ["a", "b"]])
    }

    @Test("are not heaped up on a server that says it forgot them, and did not")
    func pretended() async throws {
        let counts = try await TestServer.connected { connection in
            try connection.execute(
                """
                CREATE FUNCTION pg_temp.pretend() RETURNS integer LANGUAGE plpgsql AS
                    $$ BEGIN RAISE EXCEPTION 'gone' USING ERRCODE = '26000'; END $$
                """)
            for _ in 1...30 {
                let error = try TestServer.error {
                    _ = try connection.query("SELECT pg_temp.pretend()")
                }
                #expect(error.sqlState == "26000")
            }
            return try connection.query("SELECT count(*) FROM pg_prepared_statements").integer(0, 0)
        }
        #expect(counts <= 5)
    }

    @Test("errors name what was violated, and no values")
    func errors() async throws {
        let errors = try await TestServer.connected { connection in
            try connection.execute(
                """
                CREATE TEMP TABLE teams (id integer PRIMARY KEY, name text NOT NULL,
                    size integer CONSTRAINT small CHECK (size < 10));
                CREATE TEMP TABLE players (team integer CONSTRAINT in_team REFERENCES teams);
                INSERT INTO teams VALUES (1, 'secret', 1)
                """)
            return try [
                "INSERT INTO teams VALUES (1, 'secret', 1)",
                "INSERT INTO teams VALUES (2, NULL, 1)",
                "INSERT INTO teams VALUES (2, 'secret', 11)",
                "INSERT INTO players VALUES (7)",
                "SELECT * FROM missing", "SELEKT 1", "SELECT 'secret'::integer", "SELECT 1 / 0",
            ].map { sql in try TestServer.error { try connection.execute(sql) } }
        }
        #expect(
            errors.map(\.kind) == [
                .constraint, .constraint, .constraint, .constraint, .statement, .statement,
                .invalidValue, .invalidValue,
            ])
        #expect(errors[0].isUniqueViolation && errors[0].constraint == "teams_pkey")
        #expect(errors[1].isNotNullViolation && errors[1].column == "name")
        #expect(errors[2].isCheckViolation && errors[2].constraint == "small")
        #expect(errors[3].isForeignKeyViolation && errors[3].constraint == "in_team")
        #expect(errors[3].table == "players")
        for error in errors {
            #expect(!error.description.contains("secret"))
            #expect(!error.endsConnection)
            #expect(!error.remedy.isEmpty)
        }
    }

    @Test("a pipeline skips the rest of a segment that failed, and nothing else")
    func pipeline() async throws {
        let outcome = try await TestServer.connected { connection in
            try connection.execute("CREATE TEMP TABLE numbers (n integer CHECK (n < 100))")
            let insert = "INSERT INTO numbers VALUES ($1)"
            func put(_ number: Int64) -> PostgresStatement {
                PostgresStatement(insert, [.integer(number)])
            }
            try connection.begin()
            let answers = try connection.pipeline([
                [PostgresStatement("SAVEPOINT a"), put(1), PostgresStatement("RELEASE a")],
                [PostgresStatement("SAVEPOINT a"), put(200), put(2)],
                [PostgresStatement("ROLLBACK TO a"), PostgresStatement("RELEASE a")],
                [PostgresStatement("SAVEPOINT a"), put(3), PostgresStatement("RELEASE a")],
            ])
            try connection.commit()
            let kept = try connection.query("SELECT n FROM numbers ORDER BY n").values()
            let words = answers.map { segment in
                segment.map { answer in
                    switch answer {
                    case .success(let rows): rows.tag
                    case .failure(let error): error.kind.rawValue
                    }
                }
            }
            return (words, kept)
        }
        #expect(
            outcome.0 == [
                ["SAVEPOINT", "INSERT 0 1", "RELEASE"], ["SAVEPOINT", "constraint", "skipped"],
                ["ROLLBACK", "RELEASE"], ["SAVEPOINT", "INSERT 0 1", "RELEASE"],
            ])
        #expect(outcome.1 == [[.integer(1)], [.integer(3)]])
    }

    @Test("a long pipeline with long answers does not block itself", .timeLimit(.minutes(1)))
    func longPipeline() async throws {
        let bytes = try await TestServer.connected { connection in
            let text = String(repeating: "x", count: 20_000)
            let statements = (0..<500).map { _ in
                PostgresStatement("SELECT $1::text", [.text(text)])
            }
            return try connection.pipeline([statements])[0].reduce(0) {
                $0 + (try $1.get().text(0, 0).utf8.count)
            }
        }
        #expect(bytes == 10_000_000)
    }

    @Test("a statement that cannot be prepared leaves the others usable")
    func unprepared() async throws {
        let number = try await TestServer.connected { connection in
            let error = try TestServer.error {
                _ = try connection.pipeline([
                    [PostgresStatement("SELECT 1")], [PostgresStatement("SELECT nothing")],
                ])
            }
            #expect(error.kind == .statement && error.sql == "SELECT nothing")
            return try connection.query("SELECT 1").integer(0, 0)
        }
        #expect(number == 1)
    }

    @Test("a script is one transaction, and COPY in it is refused")
    func script() async throws {
        let count = try await TestServer.connected { connection in
            try connection.execute("CREATE TEMP TABLE items (n integer)")
            let failed = try TestServer.error {
                try connection.execute(
                    "INSERT INTO items VALUES (1); INSERT INTO items VALUES ('x')")
            }
            #expect(failed.kind == .invalidValue)
            for copy in ["COPY items FROM STDIN", "COPY items TO STDOUT"] {
                #expect(try TestServer.error { try connection.execute(copy) }.kind == .misuse)
            }
            try connection.execute("INSERT INTO items VALUES (1); INSERT INTO items VALUES (2)")
            return try connection.query("SELECT count(*) FROM items").integer(0, 0)
        }
        #expect(count == 2)
    }

    @Test("a value that is not of the type asked for is an error, not a guess")
    func readingWrongType() async throws {
        let kinds = try await TestServer.connected { connection in
            let rows = try connection.query("SELECT 1, 'a', NULL::integer")
            return try [
                TestServer.error { _ = try rows.text(0, 0) },
                TestServer.error { _ = try rows.integer(0, 1) },
                TestServer.error { _ = try rows.integer(0, 2) },
                TestServer.error { _ = try rows.binary(0, 1) },
                TestServer.error { _ = try rows.boolean(0, 0) },
            ].map(\.kind)
        }
        #expect(kinds == Array(repeating: .invalidValue, count: 5))
    }
}

@Suite("Transactions")
struct TransactionTests {
    private struct Stop: Error {}

    @Test("a value of a row that is not there is an error, and no trap")
    func readingNoRow() async throws {
        let message = try await TestServer.connected { connection in
            let rows = try connection.query(
                "SELECT reltuples::bigint AS size FROM pg_class WHERE oid = $1::bigint::oid",
                [.integer(1)])
            #expect(rows.count == 0 && rows.isNull(0, 0))
            let error = try TestServer.error { _ = try rows.integer(0, 0) }
            #expect(error.kind == .invalidValue)
            return error.message
        }
        #expect(message == "the answer has 0 rows; size of row 0 is asked for")
    }

    private func table(_ body: @escaping @Sendable (PostgresConnection) throws -> Void)
        async throws -> [Int64]
    {
        try await TestServer.connected { connection in
            try connection.execute(
                """
                CREATE TEMP TABLE numbers (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)
                """)
            try body(connection)
            #expect(!connection.isInTransaction)
            let rows = try connection.query("SELECT n FROM numbers ORDER BY n")
            return try (0..<rows.count).map { try rows.integer($0, 0) }
        }
    }

    private static func put(_ connection: PostgresConnection, _ number: Int64) throws {
        _ = try connection.query("INSERT INTO numbers VALUES ($1)", [.integer(number)])
    }

    @Test("happen as a whole or not at all")
    func wholeTransactions() async throws {
        let found = try await table { connection in
            try connection.transaction { try Self.put(connection, 1) }
            #expect(throws: Stop.self) {
                try connection.transaction {
                    try Self.put(connection, 2)
                    throw Stop()
                }
            }
            #expect(throws: PostgresError.self) {
                try connection.transaction {
                    try Self.put(connection, 3)
                    try connection.execute("SELECT 1 / 0")
                }
            }
        }
        #expect(found == [1])
    }

    @Test("a savepoint undoes its part alone, at any depth")
    func savepoints() async throws {
        let found = try await table { connection in
            try connection.transaction {
                try Self.put(connection, 1)
                #expect(throws: PostgresError.self) {
                    try connection.savepoint {
                        try Self.put(connection, 2)
                        try connection.execute("SELECT 1 / 0")
                    }
                }
                try connection.savepoint {
                    try Self.put(connection, 3)
                    #expect(throws: Stop.self) {
                        try connection.savepoint {
                            try Self.put(connection, 4)
                            throw Stop()
                        }
                    }
                    try Self.put(connection, 5)
                }
            }
        }
        #expect(found == [1, 3, 5])
    }

    @Test("a commit that is refused, or that commits nothing, is an error")
    func commit() async throws {
        let found = try await table { connection in
            try Self.put(connection, 1)
            let deferred = #expect(throws: PostgresError.self) {
                try connection.transaction { try Self.put(connection, 1) }
            }
            #expect(deferred?.isUniqueViolation == true)
            try connection.begin()
            try Self.put(connection, 2)
            _ = try? connection.query("SELECT 1 / 0")
            #expect(connection.hasFailedTransaction)
            #expect(try TestServer.error { try connection.commit() }.kind == .rolledBack)
        }
        #expect(found == [1])
    }

    @Test("locks, deadlocks and statements that take too long")
    func limitsOfStatementTime() async throws {
        let name = TestServer.name("locked")
        let options = PostgresOptions(statement: .seconds(2), lock: .milliseconds(50))
        let kinds = try await TestServer.connected { connection in
            try connection.execute("CREATE TABLE \(name) (n integer)")
            let other = try PostgresConnection(connection.address, options)
            try connection.begin()
            try connection.execute("LOCK TABLE \(name)")
            let locked = try TestServer.error { _ = try other.query("TABLE \(name)") }
            try connection.rollback()
            let slow = try TestServer.error { _ = try other.query("SELECT pg_sleep(600)") }
            let after = try other.query("SELECT 1").integer(0, 0)
            try connection.execute("DROP TABLE \(name)")
            #expect(after == 1)
            return [locked.kind, slow.kind]
        }
        #expect(kinds == [.busy, .timedOut])
    }

    @Test("the codes of a full disk and of a deadlock say what to do")
    func codes() {
        #expect(PostgresError.Kind.allCases.count > 20)
        let codes: [(String, PostgresError.Kind)] = [
            ("53100", .full), ("40P01", .busy), ("40001", .busy), ("53200", .exhausted),
            ("57P03", .restarting), ("28P01", .unauthorized), ("XX000", .other),
        ]
        for (code, kind) in codes { #expect(PostgresError.Kind(sqlState: code) == kind) }
        #expect(PostgresError(.full, "").remedy.contains("disk"))
        let pooled = PostgresError(.statement, "exists already", sqlState: "42P05")
        #expect(pooled.remedy.contains("session mode"))
    }

    @Test("a server out of room for a statement's files says so")
    func fullServerInStatement() async throws {
        let error = try await TestServer.connected { connection in
            try connection.execute("SET temp_file_limit = '64kB'; SET work_mem = '64kB'")
            return try TestServer.error {
                _ = try connection.query(
                    "SELECT n FROM generate_series(1, 200000) n ORDER BY random()")
            }
        }
        #expect(error.kind == .full)
    }
}

@Suite("COPY")
struct CopyTests {
    private struct Stop: Error {}

    @Test("brings rows in and out as they are")
    func rowsCopied() async throws {
        let (copied, out, text) = try await TestServer.connected { connection in
            try connection.execute("CREATE TEMP TABLE items (n integer, t text)")
            let all = (1...5_000).map { "\($0)\titem \($0)\n" }.joined().utf8
            // Cut where no row ends.
            var rest = Array(all)[...]
            let copied = try connection.copyIn("COPY items FROM STDIN") {
                guard !rest.isEmpty else { return nil }
                defer { rest = rest.dropFirst(777) }
                return Array(rest.prefix(777))
            }
            var text: [UInt8] = []
            let out = try connection.copyOut("COPY items TO STDOUT") { text += $0 }
            return (copied, out, text == Array(all))
        }
        #expect(copied == 5_000 && out == 5_000 && text)
    }

    @Test("given up halfway it leaves nothing, and the connection usable")
    func givenUpStatement() async throws {
        let (count, seen) = try await TestServer.connected { connection in
            try connection.execute("CREATE TEMP TABLE items (n integer)")
            var parts = 0
            #expect(throws: Stop.self) {
                _ = try connection.copyIn("COPY items FROM STDIN") {
                    parts += 1
                    if parts == 3 { throw Stop() }
                    return Array("1\n".utf8)
                }
            }
            let wrong = #expect(throws: PostgresError.self) {
                var isFirst = true
                _ = try connection.copyIn("COPY items FROM STDIN") {
                    defer { isFirst = false }
                    return isFirst ? Array("one\n".utf8) : nil
                }
            }
            #expect(wrong?.kind == .invalidValue)
            try connection.execute("INSERT INTO items SELECT generate_series(1, 100000)")
            var seen = 0
            #expect(throws: Stop.self) {
                _ = try connection.copyOut("COPY items TO STDOUT") { _ in
                    seen += 1
                    if seen == 10 { throw Stop() }
                }
            }
            let misuse = #expect(throws: PostgresError.self) {
                _ = try connection.copyOut("SELECT 1") { _ in }
            }
            #expect(misuse?.kind == .misuse)
            return (try connection.query("SELECT count(*) FROM items").integer(0, 0), seen)
        }
        #expect(count == 100_000 && seen == 10)
    }
}
