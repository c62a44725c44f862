import MartletModel
import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Sets whose triggers take longer than they may")
struct SlowSetTests {
    /// The trigger of `players` counts its runs, notes how long a statement may take, and waits far too
    /// long for players called “Slow”.
    private static let script =
        StoreTests.script + """
            CREATE SEQUENCE tries;
            CREATE SEQUENCE seen;
            CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                PERFORM nextval('tries');
                PERFORM setval('seen', setting::bigint) FROM pg_settings
                    WHERE name = 'statement_timeout';
                IF NEW.name LIKE 'Slow%' THEN PERFORM pg_sleep(3600); END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER wait AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION wait();
            """

    private static func on(_ body: @escaping @Sendable (TestStore) throws -> Void) async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking {
            let options = PostgresOptions(statement: .milliseconds(3_000))
            let store = try TestStore(
                database.address, script, tables: StoreTests.tables, options: options)
            try body(store)
        }
    }

    private static func player(_ name: String, _ identifier: String) -> String {
        let id = "-\(identifier.dropFirst())"
        return TestStore.set(
            "players", create: [id], #""\#(id)":{"name":"\#(name)"}"#, identifier: identifier)
    }

    private static func tries(_ store: TestStore) throws -> String {
        try store.rows(
            "SELECT CASE WHEN t.is_called THEN t.last_value ELSE 0 END, s.last_value FROM tries t, seen s"
        )
    }

    private static func isPutOff(_ set: ChangeSet, within seconds: ClosedRange<Int64>) -> Bool {
        set.reason == .busy && set.retryAfter.map { seconds.contains($0) } == true
            && set.message?.contains("long") == true
    }

    @Test("are put off for a minute, are not tried before, and others go on")
    func minute() async throws {
        try await Self.on { (store: TestStore) throws in
            #expect(Self.isPutOff(try store.send(Self.player("Slow", "s1")), within: 60...60))
            #expect(try Self.tries(store) == "1|3000")
            let fault = store.node.takeFault()
            #expect(fault?.kind == .refused)
            #expect(fault?.description.contains("took too long") == true)
            // Sent again at once, it costs nothing. Its device's other sets are carried out.
            let again = try store.send(Self.player("Slow", "s1"))
            #expect(Self.isPutOff(again, within: 2...100))
            #expect(store.node.takeFault() == nil)
            #expect(try Self.tries(store) == "1|3000")
            #expect(try store.send(Self.player("Ann", "s2")).fate == "accepted 1")
            #expect(try Self.tries(store) == "2|1000")
            // Sets of other tables have the usual time, also behind one that had less.
            let team = TestStore.set("teams", create: ["-1"], #""-1":{"name":"Red"}"#)
            #expect(try store.send(team, from: "d2").fate == "accepted 2")
            // After the minute it is tried with less time.
            store.now += 120_000
            #expect(Self.isPutOff(try store.send(Self.player("Slow", "s1")), within: 60...60))
            #expect(try Self.tries(store) == "3|1000")
            let other = try store.send(Self.player("Slow", "o1"), from: "d3")
            #expect(Self.isPutOff(other, within: 60...60))
            #expect(try Self.tries(store) == "4|500")
            // In the end it has all the time again.
            store.now += 600_000
            #expect(try store.send(Self.player("Eve", "o2"), from: "d3").fate == "accepted 3")
            #expect(try Self.tries(store) == "5|3000")
        }
    }

    @Test("a device with several of them is not tried any more, all others are")
    func several() async throws {
        try await Self.on { (store: TestStore) throws in
            for (number, limit) in [3_000, 1_000, 500].enumerated() {
                let set = Self.player("Slow\(number)", "s\(number + 1)")
                #expect(Self.isPutOff(try store.send(set), within: 60...60))
                #expect(try Self.tries(store) == "\(number + 1)|\(limit)")
            }
            #expect(Self.isPutOff(try store.send(Self.player("Slow", "s4")), within: 2...100))
            #expect(try Self.tries(store) == "3|500")
            let other = try store.send(Self.player("Slow", "o1"), from: "d2")
            #expect(Self.isPutOff(other, within: 60...60))
            #expect(try Self.tries(store) == "4|250")
        }
    }
}
