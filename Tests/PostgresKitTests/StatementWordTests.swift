import Testing

@testable import PostgresKit

@Suite("What losing a connection leaves in doubt")
struct StatementWordTests {
    @Test(
        "outside a transaction everything that may change something",
        arguments: [
            ("INSERT INTO a VALUES (1)", true), ("select f()", true), ("BEGIN", false),
            ("  -- a note\n BEGIN", false), ("/* a /* nested */ note */ SHOW TimeZone", false),
            ("SET x = 1", false), ("ROLLBACK", false), ("COMMIT", true), ("", true),
        ])
    func withoutTransaction(sql: String, doubt: Bool) {
        #expect(StatementWord.leaveDoubt([sql], isInTransaction: false) == doubt)
    }

    @Test("inside a transaction only what ends it")
    func inside() {
        func doubt(_ statements: String...) -> Bool {
            StatementWord.leaveDoubt(statements, isInTransaction: true)
        }
        #expect(!doubt("INSERT INTO a VALUES (1)", "SAVEPOINT b", "RELEASE b"))
        #expect(doubt("INSERT INTO a VALUES (1)", "commit"))
        #expect(doubt(" END"))
        #expect(doubt("PREPARE TRANSACTION 'x'"))
        #expect(!doubt("ROLLBACK"))
    }

    @Test("a transaction that a pipeline begins")
    func begun() {
        func doubt(_ statements: String...) -> Bool {
            StatementWord.leaveDoubt(statements, isInTransaction: false)
        }
        #expect(!doubt("BEGIN", "INSERT INTO a VALUES (1)"))
        #expect(doubt("BEGIN", "INSERT INTO a VALUES (1)", "COMMIT"))
        #expect(doubt("INSERT INTO a VALUES (1)", "BEGIN"))
    }

    @Test("scripts, whose statements nobody counts here")
    func scripts() {
        func doubt(_ script: String, inside: Bool) -> Bool {
            StatementWord.leavesDoubt(script: script, isInTransaction: inside)
        }
        #expect(!doubt("SET a = 1; SET b = 2;\n", inside: false))
        #expect(doubt("SET a = 1; CREATE TABLE b ()", inside: false))
        #expect(doubt("BEGIN; CREATE TABLE b (); COMMIT", inside: false))
        #expect(!doubt("CREATE TABLE b (); INSERT INTO b DEFAULT VALUES", inside: true))
        #expect(doubt("CREATE TABLE b (); COMMIT", inside: true))
    }
}
