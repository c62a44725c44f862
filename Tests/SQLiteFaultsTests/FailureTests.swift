import SQLiteFaults
import SQLiteKit
import Testing

@Suite("Failing operations")
struct FailureTests {
    @Test(
        "a failure at any operation, once or lasting, loses nothing acknowledged",
        arguments: [FaultDisk.Failure.ioError, .full], [false, true])
    func everyOperationFails(kind: FaultDisk.Failure, lasting: Bool) throws {
        for workload in [
            Workload(journal: "WAL", synchronous: "FULL"),
            Workload(journal: "DELETE", synchronous: "EXTRA"),
        ] {
            var failures = 0
            for operation in 1...workload.operations() {
                let disk = FaultDisk(name: "\(kind)-\(lasting)-\(workload.journal)-\(operation)")
                disk.failAfter(operations: operation, kind: kind, lasting: lasting)
                let acknowledged = workload.run(disk)
                failures += acknowledged < Workload.transactions ? 1 : 0
                disk.heal()
                // The program goes on with the file as it is.
                let connection = try workload.open(disk)
                let state = try #require(try workload.state(connection), "at \(operation)")
                #expect(state == acknowledged || state == acknowledged + 1, "at \(operation)")
                try workload.transact(state + 1, connection)
                disk.crash()
                var numbers = Numbers(state: UInt64(operation))
                disk.restart(.nothing, using: &numbers)
                #expect(try workload.state(workload.open(disk)) == state + 1, "at \(operation)")
            }
            #expect(failures > 20)
        }
    }

    @Test("a read that fails says so, once or as long as it lasts", arguments: [false, true])
    func readsThatFail(lasting: Bool) throws {
        let workload = Workload(journal: "WAL", synchronous: "FULL")
        let disk = FaultDisk(name: "reads-\(lasting)")
        #expect(workload.run(disk) == Workload.transactions)
        let lengths = "SELECT sum(length(body)) FROM item"
        let expected = try workload.open(disk).integer(lengths)
        let before = disk.readCount
        #expect(try workload.open(disk).integer(lengths) == expected)
        let reads = disk.readCount - before
        #expect(reads > 10)
        var failures = 0
        for read in 1...reads {
            disk.failAfter(reads: read, lasting: lasting)
            do {
                // Those of closing are of no consequence.
                #expect(try workload.open(disk).integer(lengths) == expected, "read \(read)")
            } catch let error as SQLiteError {
                #expect(error.isInputOutput, "read \(read): \(error)")
                failures += 1
            }
            disk.heal()
            #expect(try workload.state(workload.open(disk)) == Workload.transactions)
        }
        #expect(failures > reads * 3 / 4)
    }

    @Test("a full disk says so, and a failing one too")
    func errors() throws {
        let workload = Workload(journal: "WAL", synchronous: "FULL")
        let disk = FaultDisk(name: "errors")
        let connection = try workload.open(disk)
        try workload.transact(1, connection)
        disk.failAfter(operations: 1, kind: .full, lasting: true)
        let full = #expect(throws: SQLiteError.self) { try workload.transact(2, connection) }
        #expect(full?.isDiskFull == true)
        disk.failAfter(operations: 1, kind: .ioError)
        let failing = #expect(throws: SQLiteError.self) { try workload.transact(2, connection) }
        #expect(failing?.isInputOutput == true)
        // Once was meant once.
        try workload.transact(2, connection)
        #expect(try workload.state(connection) == 2)
    }
}

@Suite("Locks between connections")
struct LockTests {
    @Test("in WAL mode one writes while others read what was")
    func wal() throws {
        let workload = Workload(journal: "WAL", synchronous: "FULL")
        let disk = FaultDisk(name: "locks-wal")
        let one = try workload.open(disk)
        let two = try workload.open(disk)
        try workload.transact(1, one)
        try one.begin()
        try one.execute("DELETE FROM item")
        let busy = #expect(throws: SQLiteError.self) { try two.begin() }
        #expect(busy?.isBusy == true)
        #expect(try two.integer("SELECT count(*) FROM item") == 20)
        try one.commit()
        #expect(try two.integer("SELECT count(*) FROM item") == 0)
        try two.begin()
        try two.commit()
    }

    @Test("with a rollback journal a writer waits for readers, and readers for a writer")
    func rollbackJournal() throws {
        let workload = Workload(journal: "DELETE", synchronous: "FULL")
        let disk = FaultDisk(name: "locks-journal")
        let one = try workload.open(disk)
        let two = try workload.open(disk)
        try workload.transact(1, one)
        try two.execute("BEGIN; SELECT count(*) FROM item")
        let reading = try two.statement("SELECT id FROM item")
        #expect(try reading.step())
        try one.begin()
        try one.execute("DELETE FROM item")
        let busy = #expect(throws: SQLiteError.self) { try one.commit() }
        #expect(busy?.isBusy == true)
        reading.reset()
        try two.commit()
        try one.commit()
        try one.execute("BEGIN EXCLUSIVE")
        let shut = #expect(throws: SQLiteError.self) {
            try two.integer("SELECT count(*) FROM item")
        }
        #expect(shut?.isBusy == true)
        one.rollback()
        #expect(try two.integer("SELECT count(*) FROM item") == 0)
    }

    @Test("locks die with the machine")
    func afterCrash() throws {
        let workload = Workload(journal: "WAL", synchronous: "FULL")
        let disk = FaultDisk(name: "locks-crash")
        let one = try workload.open(disk)
        try workload.transact(1, one)
        try one.begin()
        try one.execute("DELETE FROM item")
        var numbers = Numbers(state: 1)
        disk.restart(.everything, using: &numbers)
        let two = try workload.open(disk)
        try workload.transact(2, two)
        #expect(try workload.state(two) == 2)
    }

    @Test("the clock is the disk's")
    func clock() throws {
        let disk = FaultDisk(name: "clock", now: 0)
        let connection = try Connection(path: "/c.db", vfs: disk.vfsName)
        #expect(try connection.text("SELECT datetime('now')") == "1970-01-01 00:00:00")
        disk.now = 1_795_252_364_120
        #expect(
            try connection.text("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')")
                == "2026-11-21 09:12:44.120")
    }

    @Test("temporary files and statements larger than the cache work")
    func temporaryFiles() throws {
        let disk = FaultDisk(name: "temporary")
        let connection = try Connection(path: "/t.db", vfs: disk.vfsName)
        try connection.execute(
            """
            PRAGMA cache_size = 10; PRAGMA temp_store = FILE; PRAGMA journal_mode = WAL;
            CREATE TEMP TABLE big AS WITH RECURSIVE n(i) AS
              (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
              SELECT i, hex(randomblob(100)) AS h FROM n;
            CREATE TABLE sorted AS SELECT * FROM big ORDER BY h;
            VACUUM;
            """)
        #expect(try connection.integer("SELECT count(*) FROM sorted") == 5_000)
        #expect(try connection.text("PRAGMA integrity_check") == "ok")
        #expect(!disk.paths.contains(""))
    }
}
