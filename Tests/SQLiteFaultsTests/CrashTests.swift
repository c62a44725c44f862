import SQLiteFaults
import SQLiteKit
import Testing

@Suite("Crashes")
struct CrashTests {
    @Test(
        "a crash at any operation leaves the old state or the new one, and what was acknowledged",
        arguments: [
            Workload(journal: "WAL", synchronous: "FULL"),
            Workload(journal: "DELETE", synchronous: "EXTRA"),
            Workload(journal: "TRUNCATE", synchronous: "FULL"),
        ])
    func everyOperationCrashes(workload: Workload) throws {
        let operations = workload.operations()
        #expect(operations > 60)
        for operation in 1...operations {
            for survival in FaultDisk.Survival.allCases {
                let disk = FaultDisk(name: "\(workload.journal)-\(operation)-\(survival)")
                disk.failAfter(operations: operation, kind: .crash)
                let acknowledged = workload.run(disk)
                #expect(disk.isDown)
                var numbers = Numbers(state: UInt64(operation))
                disk.restart(survival, using: &numbers)
                let state = try workload.state(workload.open(disk))
                #expect(
                    state == acknowledged || state == acknowledged + 1,
                    "crash at \(operation), \(survival): \(state ?? -1) of \(acknowledged)")
            }
        }
    }

    @Test(
        "a disk that crashes again and again, also while it recovers, keeps what was acknowledged",
        arguments: [
            Workload(journal: "WAL", synchronous: "FULL"),
            Workload(journal: "DELETE", synchronous: "EXTRA"),
        ])
    func manyLives(workload: Workload) throws {
        let operations = workload.operations()
        for seed in 1...200 as ClosedRange<UInt64> {
            var numbers = Numbers(state: seed)
            let disk = FaultDisk(name: "\(workload.journal)-lives-\(seed)", seed: seed)
            var acknowledged: Int64 = 0
            while acknowledged < Workload.transactions {
                // Half of the crashes come while the file is opened.
                let most = Bool.random(using: &numbers) ? 20 : operations
                disk.failAfter(operations: .random(in: 1...most, using: &numbers), kind: .crash)
                acknowledged = workload.run(disk, after: acknowledged)
                disk.restart(using: &numbers)
                let looking = try workload.open(disk)
                let state = try workload.state(looking)
                // Closing would check the WAL's changes into the file and remove it.
                disk.crash()
                disk.restart(using: &numbers)
                #expect(
                    state == acknowledged || state == acknowledged + 1,
                    "seed \(seed): \(state ?? -1) of \(acknowledged)")
                guard let state else { break }
                acknowledged = state
            }
        }
    }

    @Test("without syncs a crash loses or damages what was acknowledged: the disk does bite")
    func withoutSyncs() throws {
        let workload = Workload(journal: "DELETE", synchronous: "OFF")
        var lost = 0
        var damaged = 0
        for operation in 1...workload.operations() {
            let disk = FaultDisk(name: "unsynced-\(operation)")
            disk.failAfter(operations: operation, kind: .crash)
            let acknowledged = workload.run(disk)
            var numbers = Numbers(state: UInt64(operation))
            disk.restart(using: &numbers)
            let state = try? workload.state(workload.open(disk))
            switch state {
            case .some(let number): lost += number < acknowledged ? 1 : 0
            case .none: damaged += 1
            }
        }
        #expect(lost > 0 && damaged > 0)
    }

    @Test("a commit without a sync is lost or kept as the crash says")
    func survivals() throws {
        for (survival, kept) in [(FaultDisk.Survival.nothing, 0), (.everything, 1)] {
            let disk = FaultDisk(name: "survival-\(survival)")
            let workload = Workload(journal: "WAL", synchronous: "OFF")
            let connection = try workload.open(disk)
            try workload.transact(1, connection)
            disk.crash()
            var numbers = Numbers(state: 1)
            disk.restart(survival, using: &numbers)
            #expect(try workload.state(workload.open(disk)) == Int64(kept))
        }
    }

    @Test("a connection from before a crash can neither read nor write after it")
    func oldConnections() throws {
        let workload = Workload(journal: "WAL", synchronous: "FULL")
        let disk = FaultDisk(name: "old-connections")
        var old: Connection? = try workload.open(disk)
        try workload.transact(1, try #require(old))
        try old?.begin()
        try old?.execute("DELETE FROM item")
        let name = disk.vfsName
        disk.crash()
        #expect(throws: SQLiteError.self) { try Connection(path: "/data/store.db", vfs: name) }
        var numbers = Numbers(state: 1)
        disk.restart(.everything, using: &numbers)
        #expect(disk.vfsName != name)
        let new = try workload.open(disk)
        let operations = disk.operationCount
        // The open transaction may still look into its own memory; nothing gets out of it.
        #expect(throws: SQLiteError.self) { try old?.commit() }
        old?.rollback()
        #expect(throws: SQLiteError.self) { try old?.execute("SELECT count(*) FROM item") }
        old = nil
        #expect(disk.operationCount == operations)
        try workload.transact(2, new)
        #expect(try workload.state(new) == 2)
    }

    @Test("closing the last connection after a restart leaves a database another process can read")
    func contents() throws {
        let workload = Workload(journal: "WAL", synchronous: "FULL")
        let disk = FaultDisk(name: "contents")
        #expect(workload.run(disk) == Workload.transactions)
        #expect(disk.paths == ["/data/store.db"])
        let bytes = try #require(disk.contents(of: "/data/store.db"))
        let other = FaultDisk(name: "contents-copy")
        other.install(bytes, at: "/data/store.db")
        var numbers = Numbers(state: 1)
        other.restart(.nothing, using: &numbers)
        #expect(try workload.state(workload.open(other)) == Workload.transactions)
        #expect(disk.contents(of: "/data/gone.db") == nil)
    }

    @Test("the same seed leaves the same files, another seed others")
    func determinism() throws {
        let workload = Workload(journal: "TRUNCATE", synchronous: "NORMAL")
        func files(_ seed: UInt64) throws -> [[UInt8]?] {
            var all: [[UInt8]?] = []
            for operation in stride(from: 5, to: 100, by: 7) {
                let disk = FaultDisk(name: "determinism")
                disk.failAfter(operations: operation, kind: .crash)
                _ = workload.run(disk)
                var numbers = Numbers(state: seed &+ UInt64(operation))
                disk.restart(.sectors, using: &numbers)
                all.append(disk.contents(of: "/data/store.db"))
            }
            return all
        }
        let first = try files(1)
        let same = try files(1) == first
        let other = try files(2) == first
        #expect(same && !other)
    }
}
