import MartletStore
import Testing

/// The closure is the transaction, whatever SQL it runs.
@Suite("Transactions of a closure", .timeLimit(.minutes(5)))
struct TransactionTests {
    private static let script = """
        CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT UNIQUE);
        INSERT INTO notes(body) VALUES ('old');

        """

    @Test(
        "statements that begin or end a transaction are refused",
        arguments: [
            "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a",
        ])
    func transactionControl(_ sql: String) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let writing = await refusal {
            try await pool.write { context in
                _ = try context.rows("INSERT INTO notes(body) VALUES ('new')")
                _ = try context.rows(sql)
            }
        }
        #expect(writing?.kind == .misuse)
        let reading = await refusal { try await pool.read { _ = try $0.rows(sql) } }
        #expect(reading?.kind == .misuse)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test(
        "a statement that writes is refused where one reads",
        arguments: [
            "INSERT INTO notes(body) VALUES ('new')", "UPDATE notes SET body = 'new'",
            "DELETE FROM notes", "CREATE TABLE t(a)", "DROP TABLE notes",
        ])
    func writingInRead(_ sql: String) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let error = await refusal { try await pool.read { _ = try $0.rows(sql) } }
        #expect(error?.kind == .misuse)
        #expect(error?.remedy == .correctTheProgram)
        #expect(try await pool.integer("SELECT count(*) FROM notes WHERE body = 'old'") == 1)
    }

    @Test("a statement that rolls everything back ends the save, even where its error is caught")
    func rollbackByConflict() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let error = await refusal {
            try await pool.write { context in
                _ = try context.rows("INSERT INTO notes(body) VALUES ('first')")
                _ = try? context.rows("INSERT OR ROLLBACK INTO notes(body) VALUES ('old')")
                // Outside a transaction this would stay.
                _ = try context.rows("INSERT INTO notes(body) VALUES ('second')")
            }
        }
        #expect(error?.kind == .misuse)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test("the same, where the table writes and nothing follows")
    func rollbackByTrigger() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        try await pool.write { context in
            _ = try context.rows(
                """
                CREATE TRIGGER no BEFORE INSERT ON notes WHEN new.body = 'bad'
                BEGIN SELECT RAISE(ROLLBACK, 'no'); END
                """)
        }
        let notes = PlainTable("notes")
        for follows in [true, false] {
            let error = await refusal {
                try await pool.write { context in
                    try notes.insert(["body": "first"] as RecordValues, in: context)
                    let bad: RecordValues = ["body": "bad"]
                    _ = try? notes.insert(bad, in: context)
                    guard follows else { return }
                    _ = try? context.savepoint {
                        try notes.insert(["body": "second"] as RecordValues, in: context)
                    }
                }
            }
            #expect(error != nil)
            #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
        }
    }

    @Test("a savepoint takes back its own writes only; they may be nested")
    func savepoints() async throws {
        struct Stop: Error {}
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let insert: @Sendable (String, WriteContext) throws -> Void = { body, context in
            _ = try context.rows("INSERT INTO notes(body) VALUES (?)", [.text(body)])
        }
        try await pool.write { context in
            try insert("a", context)
            try? context.savepoint {
                try insert("b", context)
                try? context.savepoint {
                    try insert("c", context)
                    throw Stop()
                }
                try insert("d", context)
                try context.savepoint { try insert("e", context) }
            }
            try? context.savepoint {
                try insert("f", context)
                try context.savepoint { try insert("g", context) }
                throw Stop()
            }
        }
        let bodies = try await pool.read { context in
            try context.rows("SELECT body FROM notes ORDER BY id").map { $0["body"] }
        }
        #expect(bodies == ["old", "a", "b", "d", "e"])
    }

    @Test("an error within a savepoint is a refusal of the store")
    func savepointError() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        try await pool.write { context in
            #expect(throws: StoreError.self) {
                try context.savepoint {
                    _ = try context.rows("INSERT INTO notes(body) VALUES ('old')")
                }
            }
        }
    }
}
