import MartletModel
import MartletProtocol
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("What the first trigger of a table writes")
struct FirstTriggerTests {
    private static let script =
        StoreTests.script + """
            CREATE TABLE totals (id bigserial PRIMARY KEY, wins bigint NOT NULL);
            CREATE TABLE visits (team bigint REFERENCES teams ON DELETE CASCADE, player bigint);
            """
    private static let tables = StoreTests.tables + ["totals"]

    private static func on(
        _ capture: ExternalCapture, _ body: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        let database = try await TestDatabase.make(
            on: capture == .logical ? .logical() : .shared())
        try await TestDatabase.blocking {
            let store = try TestStore(
                database.address, script, tables: tables, adopts: true, capture: capture)
            let pump = capture == .logical ? LogicalStoreTests.Pump(database.address) : nil
            defer {
                pump?.stop()
                store.store.close()
                if let state = try? LogicalState.read(store.other) {
                    try? LogicalSlot(on: store.other).drop(state.slot)
                }
            }
            try store.send(TestStore.team("Red"))
            try body(store)
        }
    }

    private static func counting(_ event: String) -> String {
        """
        CREATE FUNCTION tally() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO totals (wins) VALUES (1); RETURN NULL; END $$;
        CREATE TRIGGER tally \(event) FOR EACH ROW EXECUTE FUNCTION tally();
        """
    }

    /// Checks that the set of the newest revision tells of the row that the trigger wrote.
    private static func expectTold(_ store: TestStore, rows: String) throws {
        let head = store.node.head.revision
        let entry = try SyncCoder.decodeChangeSet(store.log.entries(at: [head])[0].body)
        #expect(entry.types.map(\.name) == ["teams", "totals"])
        #expect(try store.rows("SELECT count(*) FROM totals") == rows)
        #expect(
            try store.rows(
                """
                SELECT count(*) FROM totals AS t WHERE NOT EXISTS (SELECT FROM _martlet.records AS r \
                JOIN _martlet.types AS k ON k.number = r.type WHERE k.name = 'totals' \
                AND r.id = t.id::text)
                """) == "0")
    }

    @Test(
        "is part of its set, if the server has not noticed the trigger before",
        arguments: [ExternalCapture.triggers, .logical])
    func unnoticed(capture: ExternalCapture) async throws {
        try await Self.on(capture) { (store: TestStore) throws in
            try store.other.execute(Self.counting("AFTER INSERT ON teams"))
            #expect(try store.send(TestStore.team("Blue"), from: "d2").fate == "accepted 2")
            try Self.expectTold(store, rows: "1")
            #expect(try store.send(TestStore.team("Green"), from: "d3").fate == "accepted 3")
            try Self.expectTold(store, rows: "2")
            #expect(store.node.takeFault() == nil)
        }
    }

    @Test(
        "is part of its set, if the trigger was made or enabled after the batch began",
        arguments: ["create", "enable"])
    func within(moment: String) async throws {
        try await Self.on(.triggers) { (store: TestStore) throws in
            if moment == "enable" {
                try store.other.execute(
                    Self.counting("AFTER INSERT ON teams")
                        + "ALTER TABLE teams DISABLE TRIGGER tally")
                try store.store.recover()
            }
            let request = try OthersTests.factsRequest(TestStore.team("Blue"), store)
            let plan = try #require(request.plan)
            func carryOut() throws {
                let facts = try store.store.facts(for: [request])[0]
                let work = SetWork(
                    request: request, plan: plan, facts: facts, timestamp: nil, now: 1)
                guard case .accepted? = try store.store.apply([work]).first else {
                    Issue.record("the set is refused")
                    return
                }
            }
            _ = try store.store.begin(now: 1, maxBytes: 1 << 20)
            try store.other.execute(
                moment == "enable"
                    ? "ALTER TABLE teams ENABLE TRIGGER tally"
                    : Self.counting("AFTER INSERT ON teams"))
            try carryOut()
            #expect(throws: StorageFault.self) { try store.store.commit() }
            try store.store.recover()
            _ = try store.store.begin(now: 1, maxBytes: 1 << 20)
            try carryOut()
            try store.store.commit()
            #expect(try store.rows("SELECT count(*) FROM totals") == "1")
            #expect(
                try store.rows(
                    """
                    SELECT count(*) FROM _martlet.records WHERE type = \
                    (SELECT number FROM _martlet.types WHERE name = 'totals')
                    """) == "1")
        }
    }

    @Test(
        "is part of its set, if the table is not synchronised and a foreign key's action leads there",
        arguments: [ExternalCapture.triggers, .logical], [true, false])
    func unsynchronisedTableInSet(capture: ExternalCapture, isNoticed: Bool) async throws {
        try await Self.on(capture) { (store: TestStore) throws in
            try store.other.execute(
                "INSERT INTO visits VALUES (1, 1);" + Self.counting("AFTER DELETE ON visits"))
            if isNoticed {
                store.store.close()
                try store.store.recover()
            }
            let set = TestStore.set("teams", delete: ["1"], #""1":{"revision":1}"#)
            let fate = try LogicalStoreTests.decided(store, set, at: 1).fate
            #expect(fate == "accepted 2")
            try Self.expectTold(store, rows: "1")
        }
    }
}
