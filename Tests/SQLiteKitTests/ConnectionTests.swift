import Foundation
import SQLiteKit
import Testing

@Suite("Connection")
struct ConnectionTests {
    private let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.execute("PRAGMA foreign_keys = ON")
    }

    @Test("what holds for the whole process is not changed once SQLite is in use")
    func process() {
        #expect(!SQLiteProcess.countNoMemory())
    }

    @Test("stores and reads back each class of value")
    func valuesOfConnection() throws {
        let statement = try connection.statement("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7")
        statement.bind(1, integer: .min)
        statement.bind(2, real: 0.1)
        statement.bind(3, text: "é\u{0}\u{1F600}")
        statement.bind(4, text: "")
        statement.bind(5, blob: [0, 255])
        statement.bind(6, blob: [])
        statement.bindNull(7)
        #expect(try statement.step())
        #expect(statement.columnCount == 7 && statement.parameterCount == 7)
        #expect(statement.integer(0) == .min)
        #expect(statement.real(1) == 0.1)
        #expect(statement.text(2) == "é\u{0}\u{1F600}")
        #expect(statement.text(3) == "" && statement.storage(3) == .text)
        #expect(statement.blob(4) == [0, 255])
        #expect(statement.blob(5) == [] && statement.storage(5) == .blob)
        #expect(statement.isNull(6) && !statement.isNull(5))
        #expect(try !statement.step())
    }

    @Test("tells text that is not UTF-8 from text that is")
    func invalidText() throws {
        let statement = try connection.statement("SELECT CAST(x'61ff' AS TEXT), 'é', NULL")
        #expect(try statement.step())
        #expect(statement.validatedText(0) == nil)
        #expect(statement.text(0) == "a\u{FFFD}")
        #expect(statement.validatedText(1) == "é")
        #expect(statement.validatedText(2) == "")
    }

    @Test("changed rows are listed up to the capacity, those listed with all that happens to them")
    func collected() throws {
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
        let collector = ChangeCollector(capacity: 2, ignoredPrefix: "martlet_")
        connection.report(to: collector)
        try connection.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        try connection.execute("DELETE FROM t WHERE id = 1")
        #expect(collector.take()["t"]?.operations == [1: .passing, 2: .insert])
        try connection.execute("INSERT INTO t VALUES (1, 1), (3, 3)")
        let mark = collector.mark()
        try connection.execute(
            "UPDATE t SET a = 9; INSERT INTO t VALUES (4, 4), (5, 5), (6, 6), (7, 7)")
        // Of the rows that find no room, one note is kept to be taken back.
        #expect(collector.mark() == 1)
        collector.release()
        collector.rollBack(to: mark)
        let kept = collector.take()["t"]
        #expect(kept?.operations == [1: .insert, 3: .insert] && kept?.isComplete == true)
        let second = collector.mark()
        try connection.execute("UPDATE t SET a = 10")
        #expect(collector.take()["t"]?.isComplete == false)
        collector.rollBack(to: second)
    }

    @Test("a statement from the cache comes reset and without values, and is not shared while busy")
    func cache() throws {
        let sql = "SELECT ?1 UNION ALL SELECT 2"
        let first = try connection.statement(sql)
        first.bind(1, integer: 1)
        #expect(try first.step())
        let second = try connection.statement(sql)
        #expect(first !== second)
        #expect(try second.step() && second.isNull(0))
        #expect(first.integer(0) == 1)
        first.reset()
        second.reset()
        let third = try connection.statement(sql)
        #expect(third === second)
        #expect(try third.step() && third.isNull(0))
    }

    @Test("the cache keeps to its bound and drops the statement used longest ago")
    func bound() throws {
        let small = try Connection(path: ":memory:", cachedStatements: 2)
        let one = try small.statement("SELECT 1")
        let two = try small.statement("SELECT 2")
        #expect(try small.statement("SELECT 1") === one)
        _ = try small.statement("SELECT 3")
        #expect(try small.statement("SELECT 1") === one)
        #expect(try small.statement("SELECT 2") !== two)
    }

    @Test("a statement outlives its connection")
    func lifetime() throws {
        var short: Connection? = try Connection(path: ":memory:")
        let statement = try #require(try short?.statement("SELECT 7"))
        short = nil
        #expect(try statement.step() && statement.integer(0) == 7)
    }

    @Test("a transaction commits, or rolls back when its body throws")
    func transactions() throws {
        try connection.execute("CREATE TABLE t (a)")
        let result = try connection.transaction {
            try connection.run("INSERT INTO t VALUES (1)")
            return 5
        }
        #expect(result == 5 && !connection.isInTransaction)
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try connection.transaction {
                try connection.run("INSERT INTO t VALUES (2)")
                #expect(connection.isInTransaction)
                throw Stop()
            }
        }
        #expect(!connection.isInTransaction)
        #expect(try connection.integer("SELECT count(*) FROM t") == 1)
        #expect(connection.changes == 1)
    }

    @Test("a commit that fails on a deferred foreign key can be rolled back")
    func deferredKeys() throws {
        try connection.execute(
            """
            CREATE TABLE p (id INTEGER PRIMARY KEY);
            CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)
            """)
        let error = #expect(throws: SQLiteError.self) {
            try connection.transaction {
                #expect(!connection.hasDeferredForeignKeyViolation)
                try connection.run("INSERT INTO c VALUES (1)")
                #expect(connection.hasDeferredForeignKeyViolation)
            }
        }
        #expect(error?.isConstraint == true)
        #expect(!connection.isInTransaction)
        #expect(try connection.integer("SELECT count(*) FROM c") == 0)
    }

    @Test("says what kind of failure it was, in which statement, and never a value")
    func errors() throws {
        try connection.execute(
            """
            CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL);
            CREATE TRIGGER r BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'kept'); END;
            INSERT INTO t VALUES (1, 1, 1)
            """)
        func failure(_ sql: String) -> SQLiteError? {
            #expect(throws: SQLiteError.self) {
                let statement = try connection.statement(sql)
                if statement.parameterCount > 0 { statement.bind(1, text: "secret") }
                try statement.run()
            }
        }
        try connection.run("INSERT INTO t VALUES (2, 'secret', 1)")
        let unique = failure("INSERT INTO t VALUES (9, ?1, 1)")
        #expect(unique?.isUniqueViolation == true && unique?.isConstraint == true)
        #expect(unique?.description.contains("secret") == false)
        #expect(unique?.sql == "INSERT INTO t VALUES (9, ?1, 1)")
        #expect(failure("INSERT INTO t VALUES (1, 2, 1)")?.isUniqueViolation == true)
        let null = failure("INSERT INTO t VALUES (3, 3, NULL)")
        #expect(null?.isConstraint == true && null?.isUniqueViolation == false)
        #expect(failure("DELETE FROM t")?.isRaised == true)
        #expect(failure("SELECT * FROM gone")?.isStatementError == true)
        #expect(failure("")?.message == "empty statement")
        #expect(SQLiteError.mismatch("m").isMismatch)
    }

    @Test("a script shows every statement before it runs and stops at the first that is refused")
    func scripts() throws {
        struct Refused: Error {}
        var seen: [String] = []
        #expect(throws: Refused.self) {
            try connection.execute(
                script:
                    "-- c\n CREATE TABLE a (x);; CREATE INDEX i ON a (x) ; /* */ DROP TABLE a; x"
            ) { sql in
                seen.append(sql)
                if sql.contains("DROP") { throw Refused() }
            }
        }
        #expect(seen.map { $0.hasSuffix(";") } == [true, true, true])
        #expect(seen.map { $0.contains("TABLE a") } == [true, false, true])
        #expect(try connection.integer("SELECT count(*) FROM sqlite_schema") == 2)
        #expect(throws: SQLiteError.self) {
            try connection.execute(script: "CREATE TABLE b (x); nonsense") { _ in }
        }
        #expect(try connection.integer("SELECT count(*) FROM sqlite_schema") == 3)
        try connection.execute(script: " -- nothing") { _ in }
    }

    @Test("rows are collected, and the statement is reset where the body throws")
    func rowsAreCollected() throws {
        let statement = try connection.statement("SELECT 1 UNION ALL SELECT 2")
        #expect(try statement.rows { (row) throws(SQLiteError) in row.integer(0) } == [1, 2])
        #expect(throws: SQLiteError.self) {
            _ = try statement.rows { (_) throws(SQLiteError) -> Int in
                throw SQLiteError.mismatch("stop")
            }
        }
        #expect(!statement.isBusy)
    }

    @Test(
        "a second connection to a locked file is told it is busy; a missing file cannot be opened")
    func filesLockedOrMissing() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("connection-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("f.db").path
        #expect(throws: SQLiteError.self) { try Connection(path: path, mode: .readWrite) }
        let one = try Connection(path: path)
        try one.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
        let two = try Connection(path: path, mode: .readWrite, busyTimeoutMilliseconds: 0)
        let reader = try Connection(path: path, mode: .readOnly)
        try one.begin()
        let busy = #expect(throws: SQLiteError.self) { try two.begin() }
        #expect(busy?.isBusy == true)
        #expect(throws: SQLiteError.self) { try reader.execute("INSERT INTO t VALUES (1)") }
        try one.commit()
        try two.transaction { try two.run("INSERT INTO t VALUES (1)") }
        #expect(try reader.integer("SELECT a FROM t") == 1)
    }
}
