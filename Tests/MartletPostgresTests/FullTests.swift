import MartletModel
internal import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

/// The server's own words for a full disk, raised where a test says: what a disk that is really full
/// was seen to do is in the decision 0124.
@Suite("A database without room")
struct FullTests {
    /// - Parameter table: The table whose rows find no room while the sequence “full” says so.
    private static func script(_ table: String, isAtCommit: Bool) -> String {
        let trigger =
            isAtCommit
            ? "CONSTRAINT TRIGGER no_room AFTER INSERT ON \(table) DEFERRABLE INITIALLY DEFERRED"
            : "TRIGGER no_room BEFORE INSERT ON \(table)"
        return """
            CREATE TABLE is_full (now boolean);
            CREATE FUNCTION raise_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM is_full) THEN
            RAISE EXCEPTION 'could not extend file "base/5/1": No space left on device'
            USING ERRCODE = 'disk_full', HINT = 'Check free disk space.'; END IF;
            RETURN NEW; END $$;
            CREATE FUNCTION raise_full_for_files() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM is_full) THEN
            RAISE EXCEPTION 'could not create file' USING ERRCODE = 'disk_full'; END IF; END $$;
            CREATE EVENT TRIGGER no_room_for_files ON ddl_command_start
            WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION raise_full_for_files();
            CREATE \(trigger) FOR EACH ROW EXECUTE FUNCTION raise_full();
            """
    }

    private static func request(_ client: String, _ name: String) -> String {
        let set = TestStore.set(
            "teams", create: ["-1"], #""-1":{"name":"\#(name)"}"#, identifier: name)
        return #"{"clientId":"\#(client)","maxRevision":0,"changeSets":[\#(set)]}"#
    }

    @Test(
        "puts a batch off with a time to wait, applies nothing, and goes on when there is room",
        arguments: [
            ("teams", false), ("_martlet.log", false), ("_martlet.records", false),
            ("_martlet.log", true),
        ])
    func fullServerPutsOff(table: String, isAtCommit: Bool) async throws {
        try await StoreTests.on { (store: TestStore) throws in
            try store.other.execute(Self.script(table, isAtCommit: isAtCommit))
            let requests = [Self.request("d1", "Red"), Self.request("d2", "Blue")]
            #expect(
                try store.process([Self.request("d3", "Green")])[0].get().changeSets.last?.fate
                    == "accepted 1")
            try store.other.execute("INSERT INTO is_full VALUES (true)")
            for _ in 1...2 {
                for result in try store.process(requests) {
                    guard case .failure(let problem) = result else {
                        Issue.record("a set was accepted without room for it")
                        continue
                    }
                    #expect(problem.status == 503 && problem.kind == "storage")
                    #expect(problem.retryAfter == 30)
                    #expect(problem.detail.contains("no room left on its disk"))
                }
                #expect(store.fault.contains("Make room on the server's disk"))
                // A device of before and a new one read on, though a set beside them finds no room.
                for client in ["d3", "d9"] {
                    let pull = #"{"clientId":"\#(client)","maxRevision":0,"changeSets":[]}"#
                    let answer = try store.process([pull, requests[0]])[0].get()
                    #expect(answer.changeSets.map(\.revision) == [1])
                }
            }
            #expect(
                try store.rows(
                    """
                    SELECT (SELECT count(*) FROM teams), (SELECT count(*) FROM _martlet.log), \
                    (SELECT count(*) FROM _martlet.records), (SELECT count(*) FROM _martlet.refusals), \
                    (SELECT revision FROM _martlet.dataset)
                    """) == "1|1|1|0|1")
            try store.other.execute("DELETE FROM is_full")
            // Sent again, as devices do that heard nothing: the same verdicts.
            for _ in 1...2 {
                let fates = try store.process(requests).map { result in
                    try result.get().changeSets.filter { $0.conflict == false }.map(\.fate)
                }
                #expect(fates == [["accepted 2"], ["accepted 3"]])
            }
        }
    }

    @Test("what other programs wrote waits until there is room to log it")
    func externalWritesWithoutRoom() async throws {
        let database = try await TestDatabase.make()
        try await TestDatabase.blocking {
            let store = try TestStore(
                database.address, StoreTests.script, tables: StoreTests.tables, adopts: true)
            try store.other.execute(Self.script("_martlet.log", isAtCommit: false))
            try store.other.execute(
                "INSERT INTO is_full VALUES (true); INSERT INTO teams (name) VALUES ('Red')")
            #expect(store.node.takeExternalWrites(now: 1) == false)
            #expect(store.fault.contains("Make room on the server's disk"))
            #expect(store.node.head.revision == 0)
            try store.other.execute("DELETE FROM is_full")
            #expect(store.node.takeExternalWrites(now: 2) == false)
            #expect(store.node.head.revision == 1)
            #expect(try store.rows("SELECT count(*) FROM _martlet.foreign_changes") == "0")
        }
    }
}
