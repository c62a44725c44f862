import SQLiteKit
import Testing

@Suite("Deferred foreign keys")
struct ForeignKeyTests {
    private let connection: Connection
    private static let insertChild = "INSERT INTO children (parent) VALUES (?1)"

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.execute(
            """
            PRAGMA foreign_keys = ON;
            CREATE TABLE parents (id INTEGER PRIMARY KEY);
            CREATE TABLE children (
                id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parents(id) ON DELETE RESTRICT);
            """)
    }

    private func insertChild(of parent: Int64) throws {
        let statement = try connection.statement(Self.insertChild)
        defer { statement.reset() }
        statement.bind(1, integer: parent)
        while try statement.step() {}
    }

    @Test("a child may come before its parent; nothing is compiled anew from the second time on")
    func again() throws {
        for round in 1...4 as ClosedRange<Int64> {
            try connection.begin()
            try connection.deferForeignKeys()
            _ = connection.takeRecompilations()
            try insertChild(of: round)
            #expect(connection.hasDeferredForeignKeyViolation)
            let parent = try connection.statement("INSERT INTO parents VALUES (?1)")
            parent.bind(1, integer: round)
            try parent.run()
            #expect(!connection.hasDeferredForeignKeyViolation)
            try connection.commit()
            if round > 1 { #expect(connection.takeRecompilations() == 0) }
        }
        #expect(try connection.integer("SELECT count(*) FROM children") == 4)
    }

    @Test("a statement compiled before foreign keys were deferred heeds that they are")
    func compiledBefore() throws {
        for round in 1...2 as ClosedRange<Int64> {
            connection.clearStatementCache()
            // Compiled here: at once, or where a transaction has not deferred them yet.
            #expect(throws: SQLiteError.self) { try insertChild(of: 9) }
            try connection.begin()
            #expect(throws: SQLiteError.self) { try insertChild(of: 9) }
            try connection.deferForeignKeys()
            try insertChild(of: 9)
            #expect(connection.hasDeferredForeignKeyViolation)
            connection.rollback()
            #expect(try connection.integer("SELECT count(*) FROM children") == 0, "\(round)")
        }
    }

    @Test("they are deferred for one transaction, whichever way it ends", arguments: [true, false])
    func ends(isCommitted: Bool) throws {
        for _ in 1...2 {
            try connection.begin()
            try connection.deferForeignKeys()
            try insertChild(of: 9)
            try connection.run("DELETE FROM children")
            if isCommitted { try connection.commit() } else { connection.rollback() }
            // The statement was compiled while they were.
            #expect(throws: SQLiteError.self) { try insertChild(of: 9) }
            try connection.begin()
            #expect(throws: SQLiteError.self) { try insertChild(of: 9) }
            connection.rollback()
        }
    }

    @Test("what is open at the end does not commit")
    func open() throws {
        for _ in 1...2 {
            try connection.begin()
            try connection.deferForeignKeys()
            try insertChild(of: 9)
            #expect(throws: SQLiteError.self) { try connection.commit() }
            connection.rollback()
        }
    }
}
