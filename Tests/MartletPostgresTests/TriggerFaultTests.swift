import MartletModel
internal import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Sets whose triggers do what no trigger should")
struct TriggerFaultTests {
    private static func player(_ name: String, _ identifier: String) -> String {
        let id = "-\(identifier.dropFirst())"
        return TestStore.set(
            "players", create: [id], #""\#(id)":{"name":"\#(name)"}"#, identifier: identifier)
    }

    /// Makes a data set with the team 1 and a trigger of `players`.
    private static func on(
        _ command: String, _ body: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        let script =
            StoreTests.script + """
                CREATE SEQUENCE tries;
                CREATE FUNCTION run() RETURNS trigger LANGUAGE plpgsql AS $run$ BEGIN
                    PERFORM nextval('tries');
                    IF NEW.name LIKE 'Bad%' THEN \(command); END IF;
                    RETURN NULL;
                END $run$;
                CREATE TRIGGER run AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION run();
                """
        try await StoreTests.on(script) { (store: TestStore) throws in
            try store.send(TestStore.team("Red"))
            try body(store)
        }
    }

    @Test("a set that is cancelled at once is put off alone, and limits no other")
    func cancelledAtOnce() async throws {
        try await Self.on("RAISE EXCEPTION 'not now' USING ERRCODE = '57014'") {
            (store: TestStore) throws in
            for index in 1...4 {
                let fate = try store.send(Self.player("Bad \(index)", "s\(index)"))
                #expect(fate.reason == .busy && fate.retryAfter == 60)
                #expect(fate.message?.hasSuffix("not now") == true, "\(fate.fate)")
                let fault = store.node.takeFault()
                #expect(fault?.kind == .refused)
                #expect(fault?.description.contains("Correct the triggers") == true)
            }
            // Sent again it is tried again, as is every other set of its device.
            let head = store.node.head.revision
            #expect(try store.send(Self.player("Bad 1", "s1")).fate.hasSuffix("not now"))
            #expect(try store.send(Self.player("Ann", "s9")).fate == "accepted \(head + 1)")
            #expect(try store.rows("SELECT last_value FROM tries") == "6")
        }
    }

    @Test("a set whose trigger ends its own connection is found, and put off alone")
    func endsConnection() async throws {
        try await Self.on("PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(10)") {
            (store: TestStore) throws in
            let results = try store.process([
                TestStore.request("d2", TestStore.team("Blue"), at: 1),
                TestStore.request("d1", Self.player("Bad", "s1"), at: 1),
                TestStore.request("d3", Self.player("Ann", "s2"), at: 1),
            ])
            #expect(try TestStore.fate(results[0]) == "accepted 2")
            let words = "a trigger ends the server's connection"
            #expect(try TestStore.fate(results[1]).hasPrefix("busy: the database cannot carry out"))
            #expect(try TestStore.fate(results[1]).hasSuffix(words))
            #expect(try results[1].get().changeSets.last?.retryAfter == 60)
            let accepted = try results[2].get().changeSets.last { $0.identifier == "s2" }
            #expect(accepted?.fate == "accepted 3")
            let fault = store.node.takeFault()
            #expect(fault?.kind == .refused)
            #expect(fault?.description.contains(words) == true)
            // A request with this set alone is told the same.
            let alone = try store.send(Self.player("Bad 2", "s3"), from: "d5")
            #expect(alone.fate.hasSuffix(words), "\(alone.fate)")
            _ = store.node.takeFault()
            // It is not tried before the minute is over, and then once.
            let tries = try store.rows("SELECT last_value FROM tries")
            #expect(try store.send(Self.player("Bad", "s1"), at: 3).fate.hasSuffix(words))
            #expect(try store.rows("SELECT last_value FROM tries") == tries)
            store.now += 60_000
            let later = try store.process([
                TestStore.request("d1", Self.player("Bad", "s1"), at: 3),
                TestStore.request("d4", TestStore.team("Green"), at: 3),
            ])
            #expect(try TestStore.fate(later[0]).hasSuffix(words))
            #expect(try TestStore.fate(later[1]) == "accepted 4")
            store.now += 60_000
            try store.other.execute("ALTER TABLE players DISABLE TRIGGER run")
            #expect(try store.send(Self.player("Bad", "s1"), at: 4).fate == "accepted 5")
        }
    }

    @Test("a connection that somebody else ends once costs a set nothing")
    func endedOnce() async throws {
        try await Self.on(
            """
            IF (SELECT last_value FROM tries) = 1 THEN
                PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(10);
            END IF
            """
        ) { (store: TestStore) throws in
            #expect(try store.send(Self.player("Bad", "s1")).fate == "accepted 2")
            #expect(store.node.takeFault() == nil)
        }
    }

    private static let forbidden: [(command: String, words: String)] = [
        ("SET default_tablespace = 'nope'", "invalid value for parameter \"default_tablespace\""),
        (
            "PERFORM set_config('work_mem', 'much', true)",
            "invalid value for parameter \"work_mem\""
        ),
        ("DISCARD ALL", "DISCARD ALL cannot run inside a transaction block"),
        ("COMMIT", "invalid transaction termination"),
    ]

    @Test(
        "a command that no trigger may run puts its set off, and says what it is",
        arguments: forbidden)
    func commands(command: (command: String, words: String)) async throws {
        try await Self.on(command.command) { (store: TestStore) throws in
            let fate = try store.send(Self.player("Bad", "s1"))
            #expect(fate.reason == .busy && fate.retryAfter == 60)
            #expect(fate.message?.hasSuffix(command.words) == true, "\(fate.fate)")
            let fault = store.node.takeFault()
            #expect(fault?.kind == .refused)
            #expect(fault?.description.contains(command.words) == true)
            #expect(fault?.description.contains("Correct the triggers") == true)
        }
    }

    @Test("a set that names a column which the server has yet to take up is put off, not refused")
    func newColumn() async throws {
        try await Self.on("NULL") { (store: TestStore) throws in
            let set = TestStore.set(
                "teams", update: ["1"], #""1":{"revision":1,"city":"Rome"}"#, identifier: "new")
            #expect(try store.send(set, from: "d2").reason == .unknownAttribute)
            try store.other.execute("ALTER TABLE teams ADD COLUMN city text")
            let known = TestStore.set(
                "teams", update: ["1"], #""1":{"revision":1,"city":"Oslo"}"#)
            let results = try store.process([
                TestStore.request("d1", known, at: 1),
                TestStore.request("d3", TestStore.team("Blue"), at: 1),
            ])
            #expect(
                try TestStore.fate(results[0]).hasPrefix("busy: the data set's tables have changed")
            )
            #expect(try TestStore.fate(results[1]) == "accepted 2")
            let reopened = try TestStore(store.address)
            #expect(try reopened.send(known, from: "d1", at: 2).fate == "accepted 3")
            #expect(try reopened.send(set, from: "d2", at: 2).reason == .stale)
            reopened.store.close()
        }
    }
}
