import MartletModel
import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Accepting beside other programs")
struct OthersTests {
    private static func on(
        _ script: String = StoreTests.script, tables: [String] = StoreTests.tables,
        options: PostgresOptions = PostgresOptions(),
        _ body: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking {
            let store = try TestStore(
                database.address, script, tables: tables, adopts: true, options: options)
            try store.send(
                TestStore.set(
                    "teams", create: ["-1", "-2"], #""-1":{"name":"Red"},"-2":{"name":"Blue"}"#))
            try body(store)
        }
    }

    private static func win(_ team: Int, _ wins: Int) -> String {
        TestStore.set("teams", update: ["\(team)"], #""\#(team)":{"revision":1,"wins":\#(wins)}"#)
    }

    @Test("a device's stale edit against another program's is refused with the truth")
    func staleAgainstProgram() async throws {
        try await Self.on { (store: TestStore) throws in
            try store.other.execute("UPDATE teams SET wins = 9 WHERE id = 1")
            let fate = try store.send(Self.win(1, 5), at: 1)
            #expect(fate.fate.hasPrefix("stale: someone else changed"))
            #expect(fate.types[0].entries[0].attributes["wins"] == 9)
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "9\n0")
        }
    }

    @Test("a record that another program holds is busy, and its set can be sent again")
    func held() async throws {
        try await Self.on { (store: TestStore) throws in
            let holder = try PostgresConnection(store.address)
            try holder.execute("BEGIN; UPDATE teams SET wins = 9 WHERE id = 1")
            let fates = try store.process([
                #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(Self.win(1, 5))]}"#,
                #"{"clientId":"d2","maxRevision":1,"changeSets":[\#(Self.win(2, 6))]}"#,
                #"{"clientId":"d3","maxRevision":1,"changeSets":[\#(TestStore.set("teams", delete: ["1"], #""1":{"revision":1}"#))]}"#,
            ]).map { result in
                if case .failure = result { Issue.record("\(store.fault)") }
                return try result.get().changeSets.last
            }
            #expect(fates[0]?.reason == .busy)
            #expect(fates[0]?.retryAfter == 1)
            #expect(fates[1]?.fate == "accepted 2")
            #expect(fates[2]?.reason == .busy)
            try holder.execute("COMMIT")
            #expect(try store.send(Self.win(1, 5), at: 1).reason == .stale)
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "9\n6")
        }
    }

    /// The set of a request of one, as the node asks the storage about it.
    static func factsRequest(_ set: String, _ store: TestStore) throws -> FactsRequest {
        let request = try store.admitted(
            #"{"clientId":"d9","maxRevision":1,"changeSets":[\#(set)]}"#)
        let device = try #require(
            try store.store.register(
                clientID: "d9", principal: TestStore.user, most: 9, now: 1))
        return FactsRequest(
            device: device.number, principal: TestStore.user, identifier: "q", sequence: 1,
            dependency: nil, content: [1],
            reading: .success(
                try SetPlan(
                    request.request.changeSets[0], schema: store.store.schema,
                    checks: store.store.checks)))
    }

    @Test("what another program commits after a batch has begun is never written over")
    func lateWriteByProgram() async throws {
        try await Self.on { (store: TestStore) throws in
            _ = try store.store.begin(now: 1, maxBytes: 1 << 20)
            let request = try Self.factsRequest(Self.win(1, 5), store)
            try store.other.execute("UPDATE teams SET wins = 9 WHERE id = 1")
            let facts = try store.store.facts(for: [request])[0]
            let plan = try #require(request.plan)
            let work = SetWork(
                request: request, plan: plan, facts: facts, timestamp: nil, now: 1)
            guard case .refused(let refusal)? = try store.store.apply([work]).first else {
                Issue.record("the change was overwritten")
                return
            }
            #expect(refusal.reason == .busy)
            try store.store.commit()
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "9\n0")
            #expect(try store.store.begin(now: 2, maxBytes: 1 << 20).count == 1)
            #expect(store.store.head.revision == 2)
            try store.store.commit()
        }
    }

    @Test("what another program would commit between judgement and change comes after the change")
    func between() async throws {
        try await Self.on { (store: TestStore) throws in
            _ = try store.store.begin(now: 1, maxBytes: 1 << 20)
            let request = try Self.factsRequest(Self.win(1, 5), store)
            let facts = try store.store.facts(for: [request])[0]
            let update = "UPDATE teams SET wins = wins + 4 WHERE id = 1"
            try store.other.execute("SET lock_timeout = '50ms'")
            do throws(PostgresError) {
                try store.other.execute(update)
                Issue.record("a row that was judged is not held")
            } catch {
                #expect(error.sqlState == "55P03")
            }
            let plan = try #require(request.plan)
            let work = SetWork(
                request: request, plan: plan, facts: facts, timestamp: nil, now: 1)
            guard case .accepted? = try store.store.apply([work]).first else {
                Issue.record("the change was refused")
                return
            }
            try store.store.commit()
            try store.other.execute(update)
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "9\n0")
            // Who knows the device's edit only is told of the other.
            #expect(try store.send(Self.win(1, 7), at: 1).reason == .stale)
            #expect(store.node.head.revision == 3)
        }
    }

    @Test("what a set refers to and another program holds makes the set busy alone")
    func heldParent() async throws {
        try await Self.on { (store: TestStore) throws in
            let holder = try PostgresConnection(store.address)
            try holder.execute("BEGIN; DELETE FROM teams WHERE id = 1")
            let player = TestStore.set("players", create: ["-1"], #""-1":{"team":1}"#)
            let fates = try store.process([
                #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(player)]}"#,
                #"{"clientId":"d2","maxRevision":1,"changeSets":[\#(Self.win(2, 6))]}"#,
            ]).map { try $0.get().changeSets.last }
            #expect(fates[0]?.reason == .busy)
            #expect(fates[1]?.fate == "accepted 2")
            try holder.execute("COMMIT")
            #expect(
                try store.send(player).fate
                    == "constraint: “players.team” refers to a record of “teams” that does not exist"
            )
        }
    }

    @Test("a set for a table that another program has locked is busy; nothing is lost")
    func lockedTable() async throws {
        try await Self.on { (store: TestStore) throws in
            let holder = try PostgresConnection(store.address)
            try holder.execute("BEGIN; LOCK TABLE teams IN ACCESS EXCLUSIVE MODE")
            let request = #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(Self.win(1, 5))]}"#
            let late = try store.process([request])[0].get().changeSets.last
            #expect(late?.reason == .busy)
            try holder.execute("COMMIT")
            #expect(try store.process([request])[0].get().changeSets.last?.fate == "accepted 2")
        }
    }

    @Test("a set whose statements take too long is busy alone")
    func slowSet() async throws {
        let script =
            StoreTests.script + """
                CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(20); RETURN NEW; END $$;
                CREATE TRIGGER slow BEFORE INSERT ON badges FOR EACH ROW EXECUTE FUNCTION slow();
                """
        var options = PostgresOptions()
        options.statement = .milliseconds(400)
        try await Self.on(script, options: options) { (store: TestStore) throws in
            let badge = #""00000000-0000-0000-0000-000000000007""#
            let set = TestStore.set("badges", create: [badge], "\(badge):{\"team\":2}")
            let fates = try store.exchange([Self.win(1, 5), set, Self.win(2, 6)], at: 1)
            // Refused sets come last in an answer.
            #expect(fates.suffix(3).map(\.reason) == [nil, nil, .busy])
            #expect(try store.rows("SELECT wins FROM teams ORDER BY id") == "5\n6")
        }
    }

    @Test("what triggers of the user's change is part of the set, whatever table it is in")
    func behindTriggersOfAnyTable() async throws {
        let script =
            StoreTests.script + """
                CREATE TABLE totals (id bigserial PRIMARY KEY, wins bigint NOT NULL);
                INSERT INTO totals VALUES (1, 0);
                CREATE FUNCTION sum() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN UPDATE totals SET wins = wins + NEW.wins; RETURN NULL; END $$;
                CREATE TRIGGER sum AFTER UPDATE ON teams FOR EACH ROW EXECUTE FUNCTION sum();
                CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN IF NEW.wins = 13 THEN RAISE EXCEPTION 'thirteen'; END IF;
                NEW.name := upper(NEW.name); RETURN NEW; END $$;
                CREATE TRIGGER shout BEFORE UPDATE ON teams FOR EACH ROW EXECUTE FUNCTION shout();
                """
        try await Self.on(script, tables: StoreTests.tables + ["totals"]) {
            (store: TestStore) throws in
            let fate = try store.send(Self.win(1, 5))
            #expect(fate.fate == "accepted 2")
            let entry = try SyncCoder.decodeChangeSet(store.log.entries(at: [2])[0].body)
            #expect(entry.types.map(\.name) == ["teams", "totals"])
            #expect(entry.types[0].entries[0].attributes["name"] == "RED")
            #expect(entry.types[0].entries[0].attributes["wins"] == 5)
            #expect(entry.types[1].create == [.integer(1)])
            #expect(entry.types[1].entries[0].attributes["wins"] == 5)
            #expect(
                try store.send(Self.win(2, 13)).fate == "constraint: the database refused: thirteen"
            )
            #expect(try store.rows("SELECT count(*) FROM _martlet.foreign_changes") == "0")
            #expect(try store.send(Self.win(2, 7)).fate == "accepted 3")
            #expect(try store.rows("SELECT wins FROM totals") == "12")
        }
    }

    @Test("a set whose trigger names a missing table is put off alone until the table is there")
    func missingTableInTrigger() async throws {
        let script =
            StoreTests.script + """
                CREATE FUNCTION poke() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM 1 FROM secrets; RETURN NEW; END $$;
                CREATE TRIGGER poke BEFORE INSERT ON badges FOR EACH ROW EXECUTE FUNCTION poke();
                """
        try await Self.on(script) { (store: TestStore) throws in
            let badge = #""00000000-0000-0000-0000-000000000007""#
            let set = TestStore.set("badges", create: [badge], "\(badge):{\"team\":2}")
            let request = #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(set)]}"#
            let fates = try store.process([
                request, #"{"clientId":"d2","maxRevision":1,"changeSets":[\#(Self.win(1, 3))]}"#,
            ]).map { try $0.get().changeSets.last }
            #expect(fates[0]?.reason == .busy)
            #expect(fates[1]?.fate == "accepted 2")
            #expect(store.node.takeFault()?.description.contains("restart the server") == true)
            try store.other.execute("CREATE TABLE secrets ()")
            #expect(try store.process([request])[0].get().changeSets.last?.fate == "accepted 3")
        }
    }

    @Test("a role without rights is told which it lacks")
    func role() async throws {
        try await Self.on { (store: TestStore) throws in
            let name = "weak_\(store.address["dbname"] ?? "")"
            try store.other.execute(
                """
                CREATE ROLE \(name) LOGIN PASSWORD 'weak';
                GRANT USAGE ON SCHEMA _martlet TO \(name);
                GRANT ALL ON ALL TABLES IN SCHEMA _martlet TO \(name);
                """)
            let weak = store.address.setting("user", name).setting("password", "weak")
            let other = try TestStore(weak)
            let request = #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(Self.win(1, 5))]}"#
            guard case .failure(let problem) = try other.process([request])[0] else {
                Issue.record("the role may not write")
                return
            }
            #expect(problem.status == 503)
            let fault = other.node.takeFault()
            #expect(fault?.description.contains("permission denied for table teams") == true)
            #expect(fault?.description.contains("Grant the role the right") == true)
        }
    }
}
