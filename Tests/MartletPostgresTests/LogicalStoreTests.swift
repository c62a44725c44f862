import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import Synchronization
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Accepting beside other programs whose writes are read from the write-ahead log")
struct LogicalStoreTests {
    /// Reads the write-ahead log on a thread of its own.
    final class Pump: Sendable {
        private let isStopped = Mutex(false)
        private let ended = DispatchSemaphore(value: 0)

        init(_ address: PostgresAddress) {
            Thread.detachNewThread { [self] in
                let reader = LogicalReader(address)
                var failures = 0
                while !isStopped.withLock({ $0 }) {
                    do {
                        _ = try reader.step(within: .milliseconds(50))
                        failures = 0
                    } catch {
                        // As a server does, it tries again; a busy machine is slow to connect.
                        failures += 1
                        guard failures > 20 else { continue }
                        Issue.record("\(error)")
                        break
                    }
                }
                reader.close()
                ended.signal()
            }
        }

        func stop() {
            isStopped.withLock { $0 = true }
            ended.wait()
        }
    }

    private static func on(
        _ script: String = StoreTests.script, tables: [String] = StoreTests.tables,
        reads: Bool = true, capture: ExternalCapture = .logical,
        _ body: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        let database = try await TestDatabase.make(on: .logical())
        try await TestDatabase.blocking {
            let store = try TestStore(
                database.address, script, tables: tables, adopts: true, capture: capture)
            let pump = reads ? Pump(database.address) : nil
            defer {
                pump?.stop()
                store.store.close()
                if let state = try? LogicalState.read(store.other) {
                    try? LogicalSlot(on: store.other).drop(state.slot)
                }
            }
            try store.send(
                TestStore.set(
                    "teams", create: ["-1", "-2"], #""-1":{"name":"Red"},"-2":{"name":"Blue"}"#))
            try body(store)
        }
    }

    /// Sends a set until it is decided: where the reader is late, a device is asked to wait.
    static func decided(
        _ store: TestStore, _ set: String, at revision: Revision
    ) throws -> ChangeSet {
        var fate = try store.send(set, at: revision)
        for _ in 1...200 where fate.reason == .busy { fate = try store.send(set, at: revision) }
        return fate
    }

    private static func win(_ team: Int, _ wins: Int, at revision: Revision = 1) -> String {
        TestStore.set(
            "teams", update: ["\(team)"],
            #""\#(team)":{"revision":\#(revision),"wins":\#(wins)}"#)
    }

    @Test(
        "a stale edit against an UPDATE committed just now is never accepted, and refused with the truth",
        arguments: ["on", "off"])
    func staleAgainstFreshCommit(synchronousCommit: String) async throws {
        try await Self.on { (store: TestStore) throws in
            try store.other.execute("SET synchronous_commit = \(synchronousCommit)")
            var known: Revision = 1
            for round in 1...10 {
                try store.other.execute("UPDATE teams SET wins = \(100 + round) WHERE id = 1")
                let fate = try Self.decided(store, Self.win(1, 5, at: known), at: known)
                #expect(fate.fate.hasPrefix("stale: someone else changed"), "\(fate.fate)")
                #expect(
                    fate.types.first?.entries.first?.attributes["wins"]
                        == .integer(Int64(100 + round)))
                known = store.node.head.revision
            }
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "110\n0")
            // Nobody else has written since: own edits follow each other.
            for wins in 1...3 {
                let fate = try Self.decided(store, Self.win(1, wins, at: known), at: known)
                #expect(fate.reason == nil, "\(fate.fate)")
                known = store.node.head.revision
            }
        }
    }

    @Test(
        "where nobody reads, what another program has changed is busy, and nothing is overwritten")
    func unread() async throws {
        try await Self.on(reads: false) { (store: TestStore) throws in
            try store.other.execute("UPDATE teams SET wins = 9 WHERE id = 1")
            try store.other.execute("DELETE FROM teams WHERE id = 2")
            #expect(try store.send(Self.win(1, 5), at: 1).reason == .busy)
            #expect(try store.send(Self.win(2, 5), at: 1).reason == .busy)
            // New records are nobody's.
            let team = TestStore.set("teams", create: ["-3"], #""-3":{"name":"Green"}"#)
            #expect(try store.send(team).fate == "accepted 2")
            let pump = Pump(store.address)
            defer { pump.stop() }
            let fate = try Self.decided(store, Self.win(1, 5), at: 1)
            #expect(fate.reason == .stale)
            #expect(try store.send(Self.win(2, 5), at: 1).reason == .stale)
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "9\n0")
        }
    }

    /// Ends the connection on which a storage waits for the reader, whenever it does, on a thread of
    /// its own.
    private final class Killer: Sendable {
        private let ended = Mutex(0)
        private let isStopped = Mutex(false)
        private let done = DispatchSemaphore(value: 0)

        init(_ address: PostgresAddress) {
            Thread.detachNewThread { [self] in
                defer { done.signal() }
                do {
                    let connection = try PostgresConnection(address)
                    while !isStopped.withLock({ $0 }) {
                        let rows = try connection.query(
                            """
                            SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                            WHERE datname = current_database() AND pid <> pg_backend_pid() \
                            AND (query LIKE '%pg_sleep(0.001)%' OR query LIKE '%position >= %')
                            """)
                        let count = Int(try rows.integer(0, 0))
                        ended.withLock { $0 += count }
                    }
                    connection.close()
                } catch {
                    Issue.record("\(error)")
                }
            }
        }

        /// How many connections it has ended.
        func stop() -> Int {
            isStopped.withLock { $0 = true }
            done.wait()
            return ended.withLock { $0 }
        }
    }

    @Test("where the wait for the reader breaks off, the change is busy, and none is overwritten")
    func brokenWait() async throws {
        try await Self.on(reads: false) { (store: TestStore) throws in
            try store.other.execute("UPDATE teams SET wins = 9 WHERE id = 1")
            let killer = Killer(store.address)
            let fate = try store.send(Self.win(1, 5), at: 1)
            #expect(killer.stop() > 0)
            #expect(fate.reason == .busy)
            let pump = Pump(store.address)
            defer { pump.stop() }
            #expect(try Self.decided(store, Self.win(1, 5), at: 1).reason == .stale)
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "9\n0")
        }
    }

    @Test("a batch is begun anew once for what others write; then the change is busy")
    func writtenAgain() async throws {
        try await Self.on { (store: TestStore) throws in
            let request = try OthersTests.factsRequest(Self.win(1, 5), store)
            let plan = try #require(request.plan)
            _ = try store.store.begin(now: 1, maxBytes: 1 << 20)
            try store.other.execute("UPDATE teams SET wins = 9 WHERE id = 1")
            #expect(throws: StorageFault.self) { try store.store.facts(for: [request]) }
            try store.store.recover()
            #expect(try store.store.begin(now: 1, maxBytes: 1 << 20).count == 1)
            try store.other.execute("UPDATE teams SET wins = 10 WHERE id = 1")
            let facts = try store.store.facts(for: [request])[0]
            let work = SetWork(
                request: request, plan: plan, facts: facts, timestamp: nil, now: 1)
            guard case .refused(let refusal)? = try store.store.apply([work]).first else {
                Issue.record("the change was overwritten")
                return
            }
            #expect(refusal.reason == .busy)
            try store.store.commit()
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "10\n0")
        }
    }

    @Test("what triggers of the user's change is part of the set, and no external write")
    func behindSetsOwnTriggers() async throws {
        let script =
            StoreTests.script + """
                CREATE TABLE totals (id bigserial PRIMARY KEY, wins bigint NOT NULL);
                INSERT INTO totals VALUES (1, 0);
                CREATE FUNCTION sum() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN UPDATE totals SET wins = wins + NEW.wins; RETURN NULL; END $$;
                CREATE TRIGGER sum AFTER UPDATE ON teams FOR EACH ROW EXECUTE FUNCTION sum();
                """
        try await Self.on(script, tables: StoreTests.tables + ["totals"]) {
            (store: TestStore) throws in
            #expect(try store.send(Self.win(1, 5)).fate == "accepted 2")
            let entry = try SyncCoder.decodeChangeSet(store.log.entries(at: [2])[0].body)
            #expect(entry.types.map(\.name) == ["teams", "totals"])
            #expect(entry.types[1].entries[0].attributes["wins"] == 5)
            // Another program's are read with all that its triggers did.
            try store.other.execute("UPDATE teams SET wins = 7 WHERE id = 2")
            #expect(try LogicalMoment(store.other)?.awaitAll() != nil)
            #expect(try store.store.begin(now: 2, maxBytes: 1 << 20).count == 1)
            try store.store.commit()
            let other = try SyncCoder.decodeChangeSet(store.log.entries(at: [3])[0].body)
            #expect(other.types.map(\.name) == ["teams", "totals"])
            #expect(try store.rows("SELECT entered FROM _martlet.capture") == "1")
        }
    }

    @Test(
        "what a set's trigger writes under settings of its own is part of the set, too",
        arguments: [
            ("", "SET session_replication_role = replica"),
            ("", "SET session_replication_role = replica SET martlet.applying = ''"),
            ("SET LOCAL session_replication_role = replica", "RESET session_replication_role"),
            ("SET LOCAL session_replication_role = local", "RESET session_replication_role"),
            ("RESET martlet.applying", ""), ("SET LOCAL martlet.applying = 'mine'", ""),
            ("SET martlet.applying = 'mine'", "RESET martlet.applying"),
        ],
        [ExternalCapture.logical, .triggers])
    func behindSettings(words: (before: String, after: String), capture: ExternalCapture)
        async throws
    {
        let isClause = words.before.isEmpty
        let script =
            StoreTests.script + """
                CREATE TABLE totals (id bigserial PRIMARY KEY, wins bigint NOT NULL);
                INSERT INTO totals VALUES (1, 0), (2, 0);
                CREATE FUNCTION sum() RETURNS trigger LANGUAGE plpgsql \(isClause ? words.after : "") AS
                $$ BEGIN
                    \(isClause ? "" : words.before + ";")
                    UPDATE totals SET wins = wins + NEW.wins WHERE id = 1;
                    DELETE FROM totals WHERE id = 2;
                    INSERT INTO totals VALUES (3, NEW.wins);
                    \(isClause || words.after.isEmpty ? "" : words.after + ";")
                    RETURN NULL;
                END $$;
                CREATE TRIGGER sum AFTER UPDATE ON teams FOR EACH ROW EXECUTE FUNCTION sum();
                """
        let tables = StoreTests.tables + ["totals"]
        try await Self.on(script, tables: tables, capture: capture) { (store: TestStore) throws in
            for row in 1...2 {
                _ = try store.other.query(
                    "UPDATE totals SET wins = 0 WHERE id = $1", [.integer(Int64(row))])
            }
            if capture == .logical { _ = try LogicalMoment(store.other)?.awaitAll() }
            try store.exchange([])
            let revision = store.node.head.revision + 1
            let fate = try Self.decided(store, Self.win(1, 5), at: 1)
            #expect(fate.fate == "accepted \(revision)")
            let entry = try SyncCoder.decodeChangeSet(store.log.entries(at: [revision])[0].body)
            #expect(entry.types.map(\.name) == ["teams", "totals"])
            let totals = try #require(entry.types.last)
            #expect(
                totals.create == [.integer(3)] && totals.update == [.integer(1)]
                    && totals.delete == [.integer(2)])
            try store.exchange([])
            #expect(store.node.head.revision == revision)
            #expect(try PostgresComparison.run(on: store.other, repairs: false).isEmpty)
            #expect(try store.rows("SELECT count(*) FROM _martlet.foreign_changes") == "0")
            #expect(try store.rows("SELECT count(*) FROM _martlet.foreign_transactions") == "0")
        }
    }

    @Test(
        "a set whose trigger calls its rows Martlet's own is put off",
        arguments: [ExternalCapture.logical, .triggers])
    func hidden(capture: ExternalCapture) async throws {
        let script =
            StoreTests.script + """
                CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN SET LOCAL martlet.applying = 'on'; RETURN NULL; END $$;
                CREATE TRIGGER hide AFTER UPDATE ON teams FOR EACH ROW EXECUTE FUNCTION hide();
                """
        try await Self.on(script, capture: capture) { (store: TestStore) throws in
            let fate = try store.send(Self.win(1, 5), at: 1)
            #expect(fate.reason == .busy)
            #expect(fate.fate.hasSuffix("the session's setting “martlet.applying” changed"))
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "0\n0")
        }
    }

    @Test("a TRUNCATE by a set's trigger deletes the rows on devices, too")
    func truncatedTable() async throws {
        let script =
            StoreTests.script + """
                CREATE FUNCTION empty() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN TRUNCATE players; RETURN NULL; END $$;
                CREATE TRIGGER empty AFTER UPDATE ON teams FOR EACH ROW EXECUTE FUNCTION empty();
                """
        try await Self.on(script) { (store: TestStore) throws in
            for table in try PostgresSchema.read(store.other).tables {
                try ExternalTriggers.install(
                    on: store.other, table: table, truncation: .deletes, capture: .logical)
            }
            let players = TestStore.set(
                "players", create: ["-1"], #""-1":{"name":"Ann"}"#)
            #expect(try store.send(players).fate == "accepted 2")
            #expect(try Self.decided(store, Self.win(1, 5), at: 2).fate == "accepted 3")
            let entry = try SyncCoder.decodeChangeSet(store.log.entries(at: [3])[0].body)
            #expect(entry.types.map(\.name) == ["teams", "players"])
            #expect(entry.types.last?.delete.count == 1)
            #expect(try PostgresComparison.run(on: store.other, repairs: false).isEmpty)
        }
    }

    @Test("a snapshot and a backup hold what was committed before them, in the log too")
    func moments() async throws {
        try await Self.on { (store: TestStore) throws in
            for round in 1...5 {
                try store.other.execute("UPDATE teams SET wins = \(round) WHERE id = 1")
                let moment = StagingMoment(
                    address: store.address, unsendable: UnsendableRows(), now: { 1 })
                let (reader, _) = try moment.open(nil)
                let marks = try reader.query(
                    """
                    SELECT r.author, t.wins FROM _martlet.records AS r \
                    JOIN teams AS t ON t.id::text = r.id WHERE r.type = 1 AND r.id = '1'
                    """)
                #expect(try marks.integer(0, 0) == 0)
                #expect(try marks.integer(0, 1) == Int64(round))
                reader.close()
                try store.other.execute("UPDATE teams SET name = 'R\(round)' WHERE id = 1")
                let part = try store.log.difference(after: 0, maxBytes: .max) { .max }
                let row = part.rows.last { $0.id == .integer(1) && $0.type == "teams" }
                #expect(row?.attributes?["name"] == .text("R\(round)"))
                #expect(row?.revision == part.head.revision)
                try store.other.execute("UPDATE teams SET wins = \(10 * round) WHERE id = 2")
                let backup = try PostgresMoment(store.address)
                #expect(
                    try store.rows("SELECT entered >= \(3 * round) FROM _martlet.capture") == "t")
                backup.end()
            }
            // Of what devices and programs wrote, nothing is taken for written past the log.
            _ = try store.store.begin(now: 2, maxBytes: 1 << 20)
            try store.store.commit()
            for team in [1, 2, 1] {
                let head = store.store.head.revision
                let known = try store.other.query(
                    "SELECT revision FROM _martlet.records WHERE type = 1 AND id = '\(team)'")
                let set = Self.win(team, 60, at: try known.integer(0, 0))
                let fate = try Self.decided(store, set, at: head)
                #expect(fate.reason == nil, "\(fate.fate)")
            }
            try store.other.execute("UPDATE teams SET wins = 70 WHERE id = 2")
            #expect(try PostgresComparison.run(on: store.other, repairs: false).isEmpty)
            _ = try store.store.begin(now: 2, maxBytes: 1 << 20)
            try store.store.commit()
            #expect(try PostgresComparison.run(on: store.other, repairs: true).isEmpty)
            #expect(try store.rows("SELECT count(*) FROM _martlet.foreign_changes") == "0")
        }
    }

    @Test("a slot that the server gave up for its size is found to be lost, and made anew")
    func limitsOfSlot() async throws {
        let servers = try await DatabaseServers.start(
            [
                "wal_level=logical", "max_slot_wal_keep_size=1MB", "max_wal_size=32MB",
                "min_wal_size=32MB",
            ].flatMap { ["--set", $0] } + ["--postgres"])
        let address = try PostgresAddress(servers.postgresURL)
        try await TestDatabase.blocking {
            let store = try TestStore(
                address, StoreTests.script, tables: StoreTests.tables, adopts: true,
                capture: .logical)
            let team = TestStore.set("teams", create: ["-1"], #""-1":{"name":"Red"}"#)
            #expect(try store.send(team).fate == "accepted 1")
            try store.other.execute("UPDATE teams SET wins = 9 WHERE id = 1")
            for _ in 1...4 { try store.other.execute("SELECT pg_switch_wal(); CHECKPOINT") }
            let slot = try PostgresWatch.slot(store.other)
            #expect(slot?.isLost == true)
            #expect(
                try SlotFindings(store.other).all().first?.fix.hasPrefix("Start a server") == true)
            let pump = Pump(address)
            defer { pump.stop() }
            let fate = try Self.decided(store, Self.win(1, 5), at: 1)
            #expect(fate.reason == .stale)
            #expect(fate.types[0].entries[0].attributes["wins"] == 9)
            #expect(try PostgresWatch.slot(store.other)?.isLost == false)
            store.store.close()
        }
        _ = servers
    }
}
