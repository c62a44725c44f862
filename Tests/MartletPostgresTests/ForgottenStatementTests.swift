import MartletModel
internal import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Triggers that make the session forget prepared statements")
struct ForgottenStatementTests {
    private static let commands = [
        "EXECUTE 'EXECUTE nothing'", "EXECUTE 'DEALLOCATE ALL'",
        "RAISE EXCEPTION 'no statement' USING ERRCODE = '26000'",
    ]

    private static func trigger(_ command: String, _ event: String) -> String {
        """
        CREATE FUNCTION run() RETURNS trigger LANGUAGE plpgsql AS
            $run$ BEGIN \(command); RETURN NULL; END $run$;
        CREATE \(event) AFTER INSERT ON players \
        \(event.hasPrefix("CONSTRAINT") ? "DEFERRABLE INITIALLY DEFERRED" : "")
            FOR EACH ROW EXECUTE FUNCTION run();
        """
    }

    @Test(
        "their sets are put off alone, and all others are carried out",
        arguments: commands, ["TRIGGER run", "CONSTRAINT TRIGGER run"])
    func alone(command: String, event: String) async throws {
        for isLate in [false, true] {
            let trigger = Self.trigger(command, event)
            try await StoreTests.on(StoreTests.script + (isLate ? "" : trigger)) {
                (store: TestStore) throws in
                try store.send(TestStore.team("Red"))
                // The server does not know a trigger that comes now.
                if isLate { try store.other.execute(trigger) }
                let bad = TestStore.set("players", create: ["-1"], #""-1":{"name":"Bob"}"#)
                for name in ["Blue", "Green"] {
                    let head = store.node.head.revision
                    let results = try store.process([
                        TestStore.request("d\(head + 2)", TestStore.team(name), at: head),
                        TestStore.request("d1", bad, at: head),
                        TestStore.request("d\(head + 3)", TestStore.team("a \(name)"), at: head),
                    ])
                    let put = try results[1].get().changeSets.last { $0.reason != nil }
                    #expect(put?.reason == .busy && put?.retryAfter == 60)
                    let fault = store.node.takeFault()
                    #expect(fault?.kind == .refused)
                    #expect(fault?.description.contains("DEALLOCATE") == true)
                }
                #expect(try store.rows("SELECT count(*) FROM teams") == "5")
                #expect(try store.rows("SELECT count(*) FROM players") == "0")
            }
        }
    }
}
