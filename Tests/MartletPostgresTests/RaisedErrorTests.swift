import MartletModel
internal import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("What a trigger does to its own set is told, and stays with it")
struct RaisedErrorTests {
    /// Makes a data set with a team, and a trigger on new and changed players.
    private static func on(
        _ body: String, _ test: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        let script = """
            CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \(body) RETURN NEW; END $$;
            CREATE TRIGGER act BEFORE INSERT OR UPDATE ON players FOR EACH ROW EXECUTE FUNCTION act();
            """
        try await StoreTests.on(StoreTests.script + script) { (store: TestStore) throws in
            try store.send(TestStore.team("Red"))
            try test(store)
        }
    }

    private static let player = TestStore.set(
        "players", create: ["-1"], #""-1":{"name":"Ann"}"#, identifier: "p")

    @Test(
        "what is in a set's way again and again has a line in the log",
        arguments: ["40001", "40P01", "55P03", "55006"])
    func obstruction(code: String) async throws {
        try await Self.on("RAISE EXCEPTION 'not now' USING ERRCODE = '\(code)';") {
            (store: TestStore) throws in
            for round in 1...20 {
                let fate = try store.send(Self.player)
                #expect(fate.reason == .busy && fate.retryAfter == 1)
                let fault = store.node.takeFault()
                #expect((fault?.kind == .refused) == round.isMultiple(of: 10))
                #expect(
                    (fault?.description.contains("10 times in a row") == true) == (fault != nil))
            }
            try store.other.execute("DROP TRIGGER act ON players")
            #expect(try store.send(Self.player).reason == nil)
        }
    }

    @Test("a trigger that raises the words about cached plans puts its set off alone")
    func cachedPlan() async throws {
        try await Self.on(
            "RAISE EXCEPTION 'cached plan must not change result type' USING ERRCODE = '0A000';"
        ) { (store: TestStore) throws in
            for round in 2...3 {
                let results = try store.process([
                    TestStore.request("d1", Self.player, at: 1),
                    TestStore.request(
                        "d\(round)", TestStore.team("Blue \(round)"), at: Int64(round - 1)),
                ])
                let put = try results[0].get().changeSets.last { $0.reason != nil }
                #expect(put?.reason == .busy && put?.retryAfter == 60)
                let other = try results[1].get()
                #expect(other.maxRevision == Int64(round))
                #expect(other.changeSets.compactMap(\.message) == [])
                #expect(store.node.takeFault()?.kind == .refused)
            }
        }
    }

    @Test(
        "a trigger that gives a record another key is told as that, and one that keeps a change out, too"
    )
    func words() async throws {
        try await Self.on("IF NEW.name = 'Ann' THEN NEW.id := NEW.id + 100; END IF;") {
            (store: TestStore) throws in
            #expect(try store.send(Self.player).fate.hasSuffix("gave a record another key"))
            let bob = TestStore.set("players", create: ["-2"], #""-2":{"name":"Bob"}"#)
            let accepted = try store.send(bob)
            let revision = try #require(accepted.revision)
            let id = try #require(accepted.types.first?.create.first)
            let change = TestStore.set(
                "players", update: ["\(id)"], #""\#(id)":{"revision":\#(revision),"name":"Ann"}"#)
            let fate = try store.send(change)
            #expect(fate.fate == "constraint: a trigger of “players” gave a record another key")
            try store.other.execute(
                """
                CREATE OR REPLACE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RETURN NULL; END'
                """)
            let kept = try store.send(change)
            #expect(kept.fate == "constraint: a trigger of “players” kept the change out")
        }
    }
}
