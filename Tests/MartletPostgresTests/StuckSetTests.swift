import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Sets that cannot be carried out keep nobody else out")
struct StuckSetTests {
    /// Makes a data set with the teams 1 and 2.
    private static func on(
        _ more: String = "", _ body: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        try await StoreTests.on(StoreTests.script + more) { (store: TestStore) throws in
            let names = #""-1":{"name":"Red"},"-2":{"name":"Blue"}"#
            try store.send(TestStore.set("teams", create: ["-1", "-2"], names))
            try body(store)
        }
    }

    private static let win = TestStore.set(
        "teams", update: ["1"], #""1":{"revision":1,"wins":5}"#)

    @Test("a sequence at its end: new records are put off, with words")
    func noKeys() async throws {
        try await Self.on { (store: TestStore) throws in
            try store.other.execute("ALTER SEQUENCE teams_id_seq MAXVALUE 2")
            let team = TestStore.set("teams", create: ["-3"], #""-3":{"name":"Green"}"#)
            let player = TestStore.set("players", create: ["-1"], #""-1":{"team":2}"#)
            let results = try store.process([
                TestStore.request("d1", team, at: 1), TestStore.request("d2", Self.win, at: 1),
                TestStore.request("d3", player, at: 1),
            ])
            #expect(try TestStore.fate(results[0]).hasPrefix("busy: the database has no keys left"))
            #expect(try TestStore.fate(results[1]) == "accepted 2")
            #expect(try TestStore.fate(results[2]) == "accepted 3")
            #expect(store.node.takeFault() == nil)
            try store.other.execute("ALTER SEQUENCE teams_id_seq NO MAXVALUE")
            #expect(try store.send(team).fate == "accepted 4")
        }
    }

    @Test("a constraint that is judged at COMMIT, on a table that the user's trigger fills")
    func lateConstraint() async throws {
        try await Self.on(
            """
            CREATE TABLE allowed (name text PRIMARY KEY);
            INSERT INTO allowed VALUES ('Ann');
            CREATE TABLE audit (name text REFERENCES allowed DEFERRABLE INITIALLY DEFERRED);
            CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN INSERT INTO audit VALUES (NEW.name); RETURN NULL; END';
            CREATE TRIGGER audit AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION audit();
            """
        ) { (store: TestStore) throws in
            let bad = TestStore.set("players", create: ["-1"], #""-1":{"name":"Bob"}"#)
            let good = TestStore.set("players", create: ["-1"], #""-1":{"name":"Ann"}"#)
            let results = try store.process([
                TestStore.request("d1", bad, at: 1), TestStore.request("d2", good, at: 1),
            ])
            #expect(try TestStore.fate(results[0]).hasPrefix("constraint: the database refused"))
            #expect(try TestStore.fate(results[1]) == "accepted 2")
            #expect(try store.rows("SELECT name FROM audit") == "Ann")
        }
    }

    @Test(
        "what a trigger meets on another server or in a damaged file: its set is put off alone",
        arguments: [
            "08006", "08001", "28P01", "3D000", "53300", "57P01", "25006", "58030", "XX001",
            "HV000", "53100", "53400", "53200", "XX000", "42501", "42P01", "3F000",
            "0A000", "0B000", "40000", "40002", "54001", "72000", "F0000",
        ])
    func elsewhereInTrigger(code: String) async throws {
        try await Self.on(
            """
            CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'no answer' USING ERRCODE = '\(code)'; END $$;
            CREATE TRIGGER ask AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION ask();
            """
        ) { (store: TestStore) throws in
            let bad = TestStore.set("players", create: ["-1"], #""-1":{"name":"Bob"}"#)
            let request = TestStore.request("d1", bad, at: 1)
            let other = TestStore.set(
                "teams", update: ["2"], #""2":{"revision":1,"wins":5}"#)
            for (good, revision) in [(Self.win, 2), (other, 3)] {
                let results = try store.process([request, TestStore.request("d2", good, at: 1)])
                // It does not count as a database that is not reached, for which everybody waits.
                let fault = store.node.takeFault()
                #expect(fault?.kind == .refused)
                let isOfRoom = ["53100", "53400"].contains(code)
                #expect(fault?.description.contains("temp_file_limit") == isOfRoom)
                #expect(fault?.description.contains("Make room") == false)
                #expect(fault?.description.contains("has no data set") == false)
                let put = try results[0].get().changeSets.last { $0.reason != nil }
                #expect(put?.reason == .busy && put?.retryAfter == 60)
                #expect(try TestStore.fate(results[1]) == "accepted \(revision)")
            }
            // Its device does not need another's set to be written in the same batch.
            let alone = try store.process([request])[0].get()
            #expect(alone.changeSets.contains { $0.reason == .busy })
            #expect(try store.rows("SELECT count(*) FROM players") == "0")
        }
    }

    @Test("several sets that fail for the server's reasons are each found, and put off together")
    func several() async throws {
        try await Self.on(
            """
            CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM 1 FROM secrets; RETURN NULL; END $$;
            CREATE TRIGGER ask AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION ask();
            """
        ) { (store: TestStore) throws in
            let names = ["Ann", "Bob", "Eve"]
            let bad = names.enumerated().map { number, name in
                TestStore.set(
                    "players", create: ["-\(number + 1)"], #""-\#(number + 1)":{"name":"\#(name)"}"#
                )
            }
            let requests = [
                TestStore.request("d1", bad.joined(separator: ","), at: 1),
                TestStore.request("d2", Self.win, at: 1),
            ]
            let results = try store.process(requests)
            let reasons = try results[0].get().changeSets.compactMap(\.reason)
            #expect(reasons == [.busy, .busy, .busy])
            #expect(try TestStore.fate(results[1]) == "accepted 2")
            try store.other.execute("CREATE TABLE secrets ()")
            let mended = try store.process([requests[0]])[0].get().changeSets
            #expect(mended.filter { $0.conflict == false }.count == 3)
        }
    }

    @Test("a set that names a column which is gone is not put off: the tables are read again")
    func goneColumnInTrigger() async throws {
        try await Self.on { (store: TestStore) throws in
            let ann = TestStore.set("players", create: ["-1"], #""-1":{"name":"Ann"}"#)
            #expect(try store.send(ann).fate == "accepted 2")
            try store.other.execute("ALTER TABLE players DROP COLUMN name")
            // The connection has its statement prepared, so the set fails and not the preparation.
            let bob = TestStore.set("players", create: ["-2"], #""-2":{"name":"Bob"}"#)
            let result = try store.process([TestStore.request("d1", bob, at: 2)])[0]
            let problem = #expect(throws: Problem.self) { try result.get() }
            #expect(problem?.status == 503)
            #expect(store.node.takeFault()?.kind == .changed)
        }
    }

    @Test("a batch tries once whether the disk has room, however many of its sets find none")
    func roomIsTriedOnce() async throws {
        try await Self.on(
            """
            CREATE FUNCTION ask() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
            CREATE TRIGGER ask AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION ask();
            CREATE SEQUENCE tries;
            CREATE FUNCTION count_tries() RETURNS event_trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM nextval('tries'); END $$;
            CREATE EVENT TRIGGER tried ON ddl_command_start
                WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION count_tries();
            """
        ) { (store: TestStore) throws in
            let bad = (1...3).map { number in
                TestStore.set("players", create: ["-\(number)"], #""-\#(number)":{"name":"Bob"}"#)
            }
            let request = TestStore.request("d1", bad.joined(separator: ","), at: 1)
            for tries in ["1|t", "2|t"] {
                let reasons = try store.process([request])[0].get().changeSets.compactMap(\.reason)
                #expect(reasons == [.busy, .busy, .busy])
                #expect(try store.rows("SELECT last_value, is_called FROM tries") == tries)
            }
        }
    }

    @Test("sets with characters that the database's encoding lacks are refused alone")
    func encoding() async throws {
        let shared = try PostgresAddress(try await DatabaseServers.shared().postgresURL)
        let name = "latin_" + UUID().uuidString.replacing("-", with: "").lowercased()
        try await TestDatabase.blocking {
            try PostgresConnection(shared).execute(
                "CREATE DATABASE \(name) ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
            let address = shared.setting("dbname", name)
            let script =
                StoreTests.script + "CREATE TABLE words (id text PRIMARY KEY, note text);"
            let store = try TestStore(address, script, tables: StoreTests.tables + ["words"])
            func set(_ number: Int, _ name: String, identifier: String? = nil) -> String {
                TestStore.set(
                    "teams", create: ["-\(number)"], #""-\#(number)":{"name":"\#(name)"}"#,
                    identifier: identifier ?? "s\(number)", sequence: number)
            }
            let sets = [
                set(1, "Rød"), set(2, "Ж"), set(3, "Red", identifier: "Ж"),
                TestStore.set("players", create: ["-4"], #""-4":{"team":7}"#, identifier: "s4"),
                TestStore.set("Ж", create: ["-5"], #""-5":{}"#, identifier: "s5"),
                TestStore.set(
                    "words", update: [#""Ж""#], delete: [#""é""#],
                    #""Ж":{"revision":1,"note":"x"},"é":{"revision":1}"#, identifier: "s6"),
                set(7, "Blue"),
            ]
            for round in 1...2 {
                let told = try store.exchange(sets, from: "d1", at: 0)
                let fates = told.reduce(into: [:]) {
                    $0[$1.identifier ?? "", default: ""] += $1.fate
                }
                #expect(fates["s1"] == "accepted 1")
                for name in ["s2", "Ж", "s6"] {
                    #expect(fates[name]?.hasSuffix("its encoding is LATIN1") == true, "\(round)")
                }
                #expect(
                    fates["s4"]?.hasPrefix("constraint: “players.team” refers to") == (round == 1))
                #expect(fates["s4"]?.hasPrefix("constraint: \"players.team\"") == (round == 2))
                #expect(fates["s5"]?.hasPrefix("unknownType") == true)
                #expect(fates["s7"] == "accepted 2")
                #expect(told.first { $0.identifier == "s6" }?.types.first?.delete.count == 2)
                #expect(store.node.takeFault() == nil)
            }
            #expect(try store.rows("SELECT name FROM teams ORDER BY id") == "Rød\nBlue")
            // Conditions of policies may look for any text.
            let teams = try #require(store.store.schema.index(of: "teams"))
            let column = try #require(
                store.store.schema.types[teams].index(ofAttribute: "name"))
            _ = try store.store.begin(now: 1, maxBytes: 0)
            let found = try store.store.rows(
                of: teams, where: column + 1, isAmong: [.text("Ж"), .text("Rød"), .text("\0")])
            #expect(found.map { $0[column + 1] } == [.text("Rød")])
            try store.store.recover()
            // A new data set does not get there.
            try store.other.execute("DROP SCHEMA _martlet CASCADE")
            do {
                _ = try PostgresAdoption(on: store.other, now: 1).plan(
                    .init(name: "club", tables: StoreTests.tables))
                Issue.record("nothing stands in the way")
            } catch let refusal as AdoptionError {
                #expect(refusal.problems.contains { $0.what.contains("encoding is LATIN1") })
            }
        }
    }

    @Test("what the database refuses without saying of which set is found, and put off alone")
    func apart() async throws {
        try await Self.on { (store: TestStore) throws in
            // As something of the operator's own that is judged outside all sets.
            try store.other.execute(
                "ALTER TABLE _martlet.log ADD CHECK (identifier NOT LIKE 'bad%')")
            func sets(_ names: [String]) -> [String] {
                names.enumerated().map { index, name in
                    TestStore.set(
                        "teams", create: ["-\(index + 10)"],
                        #""-\#(index + 10)":{"name":"\#(name)"}"#,
                        identifier: name, sequence: index + 10)
                }
            }
            func fates(_ names: [String]) throws -> [String: String] {
                try store.exchange(sets(names), from: "d7").reduce(into: [:]) {
                    $0[$1.identifier ?? ""] = $1.fate
                }
            }
            let told = try fates(["a", "b", "bad1", "c", "d", "e", "bad2"])
            for name in ["a", "b", "c", "d", "e"] {
                #expect(told[name]?.hasPrefix("accepted") == true)
            }
            for name in ["bad1", "bad2"] {
                #expect(told[name]?.hasPrefix("busy: the database refuses something") == true)
            }
            #expect(store.node.takeFault()?.kind == .refused)
            #expect(try store.rows("SELECT count(*) FROM teams") == "7")
            // They are judged like any other once the cause is gone.
            try store.other.execute("ALTER TABLE _martlet.log DROP CONSTRAINT log_identifier_check")
            #expect(try fates(["a", "b", "bad1", "c"])["bad1"] == "accepted 7")
            #expect(store.node.takeFault() == nil)
        }
    }

    @Test("eight sets at fault are looked for; those behind them wait, at fault or not")
    func manySetsAtFault() async throws {
        try await Self.on { (store: TestStore) throws in
            try store.other.execute(
                "ALTER TABLE _martlet.log ADD CHECK (identifier NOT LIKE 'bad%')")
            let names = ["a"] + (1...8).map { "bad\($0)" } + ["b", "c"]
            let sets = names.enumerated().map { index, name in
                TestStore.set(
                    "teams", create: ["-\(index + 10)"],
                    #""-\#(index + 10)":{"name":"\#(name)"}"#,
                    identifier: name, sequence: index + 10)
            }
            let told = try store.exchange(sets, from: "d7").reduce(into: [:]) {
                $0[$1.identifier ?? ""] = $1.fate
            }
            #expect(told["a"]?.hasPrefix("accepted") == true)
            for name in names.dropFirst() {
                #expect(told[name]?.hasPrefix("busy") == true, "\(name)")
            }
            try store.other.execute("ALTER TABLE _martlet.log DROP CONSTRAINT log_identifier_check")
        }
    }

    @Test(
        "a table that another program has locked whole: sets that do not need it are accepted",
        arguments: ["ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE"])
    func lockedTableInBatch(mode: String) async throws {
        try await Self.on { (store: TestStore) throws in
            let tables = try PostgresSchema.read(store.other).tables
            for table in tables { try ExternalTriggers.install(on: store.other, table: table) }
            try store.other.execute("INSERT INTO players (name) VALUES ('Ann')")
            try store.send(TestStore.set("players", create: ["-1"], #""-1":{"team":2}"#))
            try store.other.execute("UPDATE teams SET wins = 3 WHERE id = 2")
            let other = try PostgresConnection(store.address)
            try other.execute("BEGIN; LOCK TABLE players IN \(mode) MODE")
            let player = TestStore.set("players", update: ["2"], #""2":{"revision":3,"name":"x"}"#)
            let gone = TestStore.set("teams", delete: ["2"], #""2":{"revision":1}"#)
            let noted = TestStore.set("teams", update: ["2"], #""2":{"revision":1,"wins":9}"#)
            let results = try store.process([
                TestStore.request("d1", player, at: 3), TestStore.request("d2", Self.win, at: 3),
                TestStore.request("d3", gone, at: 3), TestStore.request("d4", noted, at: 3),
            ])
            #expect(
                try TestStore.fate(results[0]).hasPrefix("busy: another program has locked a table")
            )
            #expect(try TestStore.fate(results[1]) == "accepted 4")
            #expect(try TestStore.fate(results[2]).hasPrefix("busy"))
            #expect(try TestStore.fate(results[3]).hasPrefix("busy"))
            #expect(store.node.takeFault() == nil)
            // A watch sees it with one of the next looks.
            let watch = PostgresWatch(store.address)
            func sees(_ types: [String]) throws -> Bool {
                try (1...40).contains { _ in try watch.look().locked == types }
            }
            #expect(try sees(["players"]))
            // It is asked for at once from the second time on.
            #expect(try store.send(player, at: 4).reason == .busy)
            try other.execute("ROLLBACK")
            #expect(try sees([]))
            #expect(try store.send(player, at: 4).reason == nil)
            #expect(try store.send(noted, at: 4).reason == .stale)
            #expect(try PostgresComparison.run(on: store.other, repairs: false).isEmpty)
        }
    }

    @Test("a long chain of records that go with each other is read in few round trips")
    func chain() async throws {
        let script = """
            CREATE TABLE nodes (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
                parent bigint REFERENCES nodes ON DELETE CASCADE);
            CREATE INDEX ON nodes (parent);
            """
        try await StoreTests.on(script, ["nodes"]) { (store: TestStore) throws in
            let schema = try PostgresSchema.read(store.other)
            try ExternalTriggers.install(on: store.other, table: schema.tables[0])
            try store.other.execute(
                "INSERT INTO nodes (id, parent) SELECT n, nullif(n - 1, 0) FROM generate_series(1, 400) AS n"
            )
            _ = try store.store.begin(now: 1, maxBytes: 1 << 20)
            try store.store.commit()
            let before = store.store.trips
            let moved = TestStore.set(
                "nodes", update: ["300"], delete: ["1"],
                #""300":{"revision":1,"parent":null},"1":{"revision":1}"#)
            let fate = try store.send(moved, at: 1)
            #expect(fate.fate == "accepted 2")
            #expect(store.store.trips - before < 20)
            #expect(try store.rows("SELECT count(*), min(id) FROM nodes") == "101|300")
            #expect(try PostgresComparison.run(on: store.other, repairs: false).isEmpty)
        }
    }

    @Test("steps come behind those they need, whatever their number; a circle is cut at its first")
    func orderOfSteps() {
        let count = 20_000
        var parents = (0..<count).map { $0 == count - 1 ? Set<Int>() : [$0 + 1] }
        #expect(SetSteps.ordered(parents) == Array((0..<count).reversed()))
        parents[count - 1] = [0]
        let order = SetSteps.ordered(parents)
        #expect(order.first == 0)
        #expect(Set(order).count == count)
        let few: [[Set<Int>]] = [[[], [], []], [[2], [], [1]]]
        #expect(few.map { SetSteps.ordered($0) } == [[0, 1, 2], [1, 2, 0]])
    }

    /// The steps that each step waits for, with a count of how often they are read.
    private struct CountedParents: RandomAccessCollection {
        final class Reads {
            var count = 0
        }

        let parents: [Set<Int>]
        let reads = Reads()

        var startIndex: Int { 0 }
        var endIndex: Int { parents.count }
        subscript(index: Int) -> Set<Int> {
            reads.count += 1
            return parents[index]
        }
    }

    @Test("what a step waits for is read as often among many as among few")
    func orderReads() {
        for count in [10, 1_000] {
            let chain = CountedParents(
                parents: (0..<count).map { $0 == count - 1 ? [] : [$0 + 1] })
            #expect(SetSteps.ordered(chain) == Array((0..<count).reversed()))
            #expect(chain.reads.count == 2 * count)
        }
    }
}
