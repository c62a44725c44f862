import MartletServerCore
import Synchronization
import Testing

@testable import MartletServer

@Suite("Shares of descriptors")
struct DescriptorSharesTests {
    @Test("connections and data sets leave room for each other, whatever the limit")
    func shares() {
        for limit in [512, 1_024, 2_048, 65_536] {
            let shares = DescriptorShares(limit: limit)
            for open in stride(from: 0, through: shares.dataSets(connections: 0), by: 1) {
                // Connections take all descriptors that they may, and then one more data set is
                // asked for.
                let connections = max(16, limit - DescriptorShares.other(openDataSets: open))
                let fitting = shares.dataSets(connections: connections)
                let files =
                    connections + max(open, fitting) * DescriptorShares.filesPerDataSet
                #expect(files <= limit, "\(limit), \(open) open")
            }
            #expect(shares.dataSets(connections: 0) * DescriptorShares.filesPerDataSet <= limit / 2)
        }
        #expect(DescriptorShares(limit: nil).dataSets(connections: 9) == .max)
        #expect(DescriptorShares(limit: 65_536).dataSets(connections: 100) > 3_000)
    }
}

/// A clock that the test sets.
private final class Clock: Sendable {
    private let moment = Mutex(ContinuousClock.now)

    func advance(_ duration: Duration) { moment.withLock { $0 += duration } }
    var now: ContinuousClock.Instant { moment.withLock { $0 } }
}

@Suite("Tables that another program keeps locked")
struct LockedTablesTests {
    @Test("are told of once, when the lock has lasted, and when it is gone")
    func told() {
        let clock = Clock()
        let locked = LockedTables { clock.now }
        #expect(locked.found(["teams"]) == nil)
        clock.advance(.seconds(2))
        #expect(locked.found(["teams"]) == nil)
        #expect(locked.found([]) == nil, "it did not last")
        #expect(locked.found(["teams"]) == nil)
        #expect(locked.count == 0)
        clock.advance(.seconds(3))
        #expect(locked.found(["players", "teams"]) == .locked(["players", "teams"]))
        #expect(locked.count == 2)
        #expect(locked.found(["teams"]) == nil, "it was told")
        #expect(locked.count == 1)
        #expect(locked.found([]) == .free)
        #expect(locked.count == 0)
        #expect(locked.found([]) == nil)
    }
}

@Suite("A writer's health")
struct WriterHealthTests {

    @Test("a writer that does nothing but fail is a hindrance until it works, or nobody tries")
    func blocked() {
        let clock = Clock()
        let health = WriterHealth { clock.now }
        #expect(health.blocked == .zero)
        health.failed(.failed)
        clock.advance(.seconds(2))
        health.failed(.failed)
        #expect(health.blocked == .seconds(2))
        #expect(!health.isHindered, "a moment's trouble")
        clock.advance(.seconds(1))
        #expect(health.isHindered)
        clock.advance(.seconds(29))
        #expect(!health.isHindered, "nobody knows")
        health.failed(.busy)
        #expect(health.isHindered)
        #expect(health.blocked == .seconds(32))
        health.worked()
        #expect(!health.isHindered)
        #expect(health.blocked == .zero)
        health.failed(.full)
        clock.advance(.seconds(9))
        health.failed(.full)
        #expect(!health.isHindered, "all can be read")
        #expect(health.blocked == .seconds(9))
        health.failed(.moved)
        clock.advance(.seconds(60))
        #expect(health.isHindered && health.isMoved, "until a look finds it")
    }

    @Test("a commit that takes long counts from three seconds on, until it ends")
    func commit() {
        let clock = Clock()
        let health = WriterHealth { clock.now }
        health.commits(true)
        clock.advance(.milliseconds(2_999))
        #expect(health.commitWait == nil)
        #expect(health.blocked == .zero)
        clock.advance(.milliseconds(1))
        #expect(health.commitWait == .seconds(3))
        #expect(health.blocked == .seconds(3))
        health.commits(false)
        #expect(health.commitWait == nil)
        #expect(health.blocked == .zero)
    }
}
