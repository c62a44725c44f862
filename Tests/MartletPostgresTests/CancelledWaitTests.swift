import MartletModel
import PostgresKit
import Synchronization
import TestDatabases
import Testing
import Waiting

@testable import MartletPostgres

@Suite("Commits that wait for a synchronous standby", .timeLimit(.minutes(3)))
struct CancelledWaitTests {
    @Test("if the wait is cancelled, the commit holds, and that is told")
    func cancelledCommitWait() async throws {
        let servers = try await DatabaseServers.start()
        let address = try PostgresAddress(servers.postgresURL)
        let count = Mutex(0)
        let cancelled = Mutex(0)
        let isDone = Mutex(false)
        try await TestDatabase.blocking {
            let program = try PostgresConnection(address)
            try program.execute(StoreTests.script)
            try program.register(StoreTests.tables)
            let store = try PostgresStore(
                address, PostgresOptions(name: "waiting"),
                unreplicated: { count.withLock { $0 += 1 } })
            _ = try store.begin(now: 1, maxBytes: 0)
            _ = try store.register(
                clientID: "one", principal: TestStore.user, most: 10, now: 1)
            try store.commit()
            #expect(count.withLock { $0 } == 0)
            // A standby that never comes.
            try program.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            try program.execute("SELECT pg_reload_conf()")
        }
        async let committed: Void = TestDatabase.blocking {
            let store = try PostgresStore(
                address, PostgresOptions(name: "waiting"),
                unreplicated: { count.withLock { $0 += 1 } })
            // Until the server has read its settings, a commit waits for nobody.
            var number = 0
            while count.withLock({ $0 }) == 0, cancelled.withLock({ $0 }) < 50 {
                number += 1
                _ = try store.begin(now: 1, maxBytes: 0)
                _ = try store.register(
                    clientID: "two\(number)", principal: TestStore.user, most: 100_000, now: 1)
                try store.commit()
            }
            isDone.withLock { $0 = true }
        }
        // Opening the store may wait, too, before the commit does.
        try await waitUntil("the commit waits and is cancelled") {
            let few = try await TestDatabase.connected(to: address) { (program) throws in
                try program.query(
                    """
                    SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
                    WHERE application_name = 'waiting' AND wait_event = 'SyncRep'
                    """
                ).count
            }
            cancelled.withLock { $0 += few }
            return isDone.withLock { $0 }
        }
        try await committed
        #expect(count.withLock { $0 } == 1)
        _ = servers
    }
}
