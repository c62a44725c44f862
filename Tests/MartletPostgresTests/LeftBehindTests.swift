import Foundation
import MartletModel
import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("Settings and constraints that a set's triggers leave behind concern nobody else")
struct LeftBehindTests {
    /// When the operator makes the triggers.
    enum Moment: CaseIterable {
        case beforeOpening, afterOpening
    }

    /// Two records that take a statement each: the trigger of the first runs before the second.
    private static let players = TestStore.set(
        "players", create: ["-1", "-2"], #""-1":{"name":"Bøb"},"-2":{"team":1,"name":"Åse"}"#)

    /// Makes a data set with the team 1 and the operator's triggers.
    private static func on(
        _ triggers: String, _ moment: Moment,
        _ body: @escaping @Sendable (TestStore) throws -> Void
    ) async throws {
        let script = StoreTests.script + "CREATE TABLE notes (team bigint, words text);"
        try await StoreTests.on(script + (moment == .beforeOpening ? triggers : "")) {
            (store: TestStore) throws in
            try store.send(TestStore.team("Red"))
            if moment == .afterOpening { try store.other.execute(triggers) }
            try body(store)
        }
    }

    private static func trigger(_ command: String, _ event: String) -> String {
        """
        CREATE FUNCTION run() RETURNS trigger LANGUAGE plpgsql AS
            $run$ BEGIN \(command); RETURN NULL; END $run$;
        CREATE \(event) FOR EACH ROW EXECUTE FUNCTION run();
        """
    }

    // MARK: - Settings

    private static let vitalChanges: [(name: String, command: String)] = [
        ("client_encoding", "SET client_encoding = 'LATIN1'"),
        ("client_encoding", "SET LOCAL client_encoding = 'LATIN1'"),
        ("session_replication_role", "SET session_replication_role = replica"),
        ("array_nulls", "SET array_nulls = off"),
        ("transaction_read_only", "SET transaction_read_only = on"),
    ]

    @Test(
        "a set whose trigger changes how texts travel, or which triggers run, is put off alone",
        arguments: vitalChanges, Moment.allCases)
    func vital(setting: (name: String, command: String), moment: Moment) async throws {
        let trigger = Self.trigger(setting.command, "TRIGGER run AFTER INSERT ON players")
        // In a transaction that cannot write, a second statement fails anyway.
        let bad =
            setting.name == "transaction_read_only"
            ? TestStore.set("players", create: ["-1"], #""-1":{"name":"Bøb"}"#) : Self.players
        try await Self.on(trigger, moment) { (store: TestStore) throws in
            for (revision, name) in [(2, "Größe"), (3, "Übung")] {
                let results = try store.process([
                    TestStore.request("d1", bad, at: 1),
                    TestStore.request("d\(revision)", TestStore.team(name), at: 1),
                ])
                let words = "the session's setting “\(setting.name)” changed"
                #expect(try TestStore.fate(results[0]).hasPrefix("busy: "))
                #expect(try TestStore.fate(results[0]).hasSuffix(words))
                #expect(try TestStore.fate(results[1]) == "accepted \(revision)")
                let fault = store.node.takeFault()
                #expect(fault?.kind == .refused)
                #expect(fault?.description.contains(words) == true)
            }
            #expect(try store.rows("SELECT name FROM teams ORDER BY id") == "Red\nGröße\nÜbung")
            #expect(try store.rows("SELECT count(*) FROM players") == "0")
            let entry = try SyncCoder.decodeChangeSet(store.log.entries(at: [2])[0].body)
            #expect(entry.types[0].entries[0].attributes["name"] == "Größe")
            // It is carried out once the function keeps the setting to itself.
            try store.other.execute(
                "CREATE OR REPLACE FUNCTION run() RETURNS trigger LANGUAGE plpgsql AS "
                    + "'BEGIN RETURN NULL; END'")
            let mended = try store.process([TestStore.request("d1", bad, at: 1)])
            #expect(try TestStore.fate(mended[0]) == "accepted 4")
            #expect(try store.rows("SELECT name FROM players WHERE team IS NULL") == "Bøb")
        }
    }

    @Test("a set that fails under the encoding that its own trigger chose is put off, too")
    func encoding() async throws {
        let trigger = Self.trigger(
            "SET client_encoding = 'EUC_JP'", "TRIGGER run AFTER INSERT ON players")
        try await Self.on(trigger, .beforeOpening) { (store: TestStore) throws in
            // The bytes of “Å” are none of a character there.
            let fate = try store.send(Self.players)
            #expect(fate.fate.hasSuffix("the session's setting “client_encoding” changed"))
            #expect(fate.reason == .busy)
        }
    }

    @Test(
        "a set whose answers lack a character in the encoding that its trigger chose is put off, too",
        arguments: Moment.allCases)
    func lackingCharacter(moment: Moment) async throws {
        let trigger = Self.trigger(
            "SET client_encoding = 'LATIN1'", "TRIGGER run AFTER INSERT OR UPDATE ON players")
        try await Self.on(trigger, moment) { (store: TestStore) throws in
            let create = TestStore.set("players", create: ["-1"], #""-1":{"name":"Žižek"}"#)
            let results = try store.process([
                TestStore.request("d1", create, at: 1),
                TestStore.request("d2", TestStore.team("Größe"), at: 1),
            ])
            let words = "the session's setting “client_encoding” changed"
            #expect(try TestStore.fate(results[0]).hasPrefix("busy: "))
            #expect(try TestStore.fate(results[0]).hasSuffix(words))
            #expect(try TestStore.fate(results[1]) == "accepted 2")
            #expect(store.node.takeFault()?.description.contains(words) == true)
            #expect(try store.rows("SELECT count(*) FROM players") == "0")
            try store.other.execute("ALTER TABLE players DISABLE TRIGGER run")
            let mended = try store.process([TestStore.request("d1", create, at: 2)])
            #expect(try TestStore.fate(mended[0]) == "accepted 3")
            try store.other.execute("ALTER TABLE players ENABLE TRIGGER run")
            let change = TestStore.set(
                "players", update: ["1"], #""1":{"revision":3,"name":"Žofie"}"#)
            #expect(try store.send(change, from: "d3").fate.hasSuffix(words))
        }
    }

    @Test("a value that a rule of the tables finds to lack in an encoding is refused")
    func ruleOfEncoding() async throws {
        let rule = "ALTER TABLE players ADD CHECK (length(convert_to(name, 'LATIN1')) < 100)"
        try await Self.on(rule, .beforeOpening) { (store: TestStore) throws in
            let fate = try store.send(
                TestStore.set("players", create: ["-1"], #""-1":{"name":"Žižek"}"#), from: "d2")
            #expect(fate.reason == .constraint)
        }
    }

    /// Settings that are put back, and a value that no session has.
    private static let otherChanges = [
        ("search_path", "pg_temp"), ("DateStyle", "German"), ("IntervalStyle", "sql_standard"),
        ("TimeZone", "Asia/Kathmandu"), ("extra_float_digits", "0"), ("bytea_output", "escape"),
        ("standard_conforming_strings", "off"), ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"), ("synchronous_commit", "off"),
        ("statement_timeout", "7777"), ("lock_timeout", "7777"),
        ("idle_in_transaction_session_timeout", "7777"), ("plan_cache_mode", "auto"),
        ("enable_seqscan", "on"), ("jit", "on"),
    ]

    @Test(
        "other settings that a trigger changes are put back behind its set",
        arguments: ["SET", "SET LOCAL"], Moment.allCases)
    func othersSettings(command: String, moment: Moment) async throws {
        let read = Self.otherChanges.map { "current_setting('\($0.0)')" } + ["current_user"]
        let role = "other_" + UUID().uuidString.replacing("-", with: "").lowercased()
        let commands =
            Self.otherChanges.map { "\(command) \($0.0) = '\($0.1)'" } + ["\(command) ROLE \(role)"]
        let triggers =
            "CREATE ROLE \(role); GRANT ALL ON ALL TABLES IN SCHEMA public TO \(role);"
            + Self.trigger(
                commands.joined(separator: "; "), "TRIGGER run AFTER INSERT ON players")
        let notes = """
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $note$ BEGIN
                INSERT INTO public.notes VALUES (NEW.id, concat_ws(',', \(read.joined(separator: ", "))));
                RETURN NULL; END $note$;
            CREATE TRIGGER note AFTER INSERT ON teams FOR EACH ROW EXECUTE FUNCTION note();
            """
        try await Self.on(triggers + notes, moment) { (store: TestStore) throws in
            try store.send(TestStore.team("Blue"), from: "d2")
            for (revision, name) in [(Revision(3), "Größe"), (5, "Übung")] {
                let results = try store.process([
                    TestStore.request("d\(revision)", Self.players, at: 1),
                    TestStore.request("d\(revision + 1)", TestStore.team(name), at: 1),
                ])
                #expect(try TestStore.fate(results[0]) == "accepted \(revision)")
                #expect(try TestStore.fate(results[1]) == "accepted \(revision + 1)")
                #expect(store.node.takeFault() == nil)
            }
            #expect(try store.rows("SELECT count(*) FROM players") == "4")
            let notes = try store.rows("SELECT words FROM notes").split(separator: "\n")
            #expect(notes.count >= 3 && Set(notes).count == 1, "\(notes)")
            #expect(notes.allSatisfy { $0.contains("ISO, YMD") && $0.contains(",500ms,") })
            try store.other.execute("DROP TRIGGER run ON players")
        }
    }

    // MARK: - Constraint triggers

    private static let events: [(moment: Moment, event: String)] = [
        (.beforeOpening, "AFTER INSERT ON players"), (.afterOpening, "AFTER INSERT ON players"),
        (.beforeOpening, "AFTER DELETE ON visits"),
    ]

    @Test(
        "what a deferred trigger raises is its set's, as if it had not been deferred",
        arguments: [
            "53100", "53400", "XX000", "42501", "25006", "P0001", "23514", "22023", "40001",
        ],
        events)
    func deferred(code: String, raised: (moment: Moment, event: String)) async throws {
        // It is no synchronised table.
        let visits =
            "CREATE TABLE visits (player bigint REFERENCES players ON DELETE CASCADE);"
        let trigger = Self.trigger(
            "RAISE EXCEPTION 'no answer' USING ERRCODE = '\(code)'",
            "CONSTRAINT TRIGGER run \(raised.event) DEFERRABLE INITIALLY DEFERRED")
        try await Self.on(visits + trigger, raised.moment) { (store: TestStore) throws in
            var bad = Self.players
            if raised.event.hasSuffix("visits") {
                try store.send(bad, from: "d2")
                try store.other.execute("INSERT INTO visits VALUES (1)")
                bad = TestStore.set("players", delete: ["1"], #""1":{"revision":2}"#)
            }
            let players = try store.rows("SELECT count(*) FROM players")
            for name in ["Blue", "Green"] {
                let head = store.node.head.revision
                let results = try store.process([
                    TestStore.request("d\(head + 2)", TestStore.team(name), at: head),
                    TestStore.request("d1", bad, at: head),
                    TestStore.request("d\(head + 3)", TestStore.team("a \(name)"), at: head),
                ])
                #expect(try TestStore.fate(results[0]) == "accepted \(head + 1)")
                #expect(try TestStore.fate(results[2]) == "accepted \(head + 2)")
                let put = try results[1].get().changeSets.last { $0.reason != nil }
                let fault = store.node.takeFault()
                switch code.prefix(2) {
                case "P0", "22", "23":
                    #expect(put?.reason == .constraint && fault == nil)
                    #expect(put?.message?.hasPrefix("the database refused") == true)
                case "40":
                    #expect(put?.reason == .busy && put?.retryAfter == 1 && fault == nil)
                default:
                    #expect(put?.reason == .busy && put?.retryAfter == 60)
                    #expect(fault?.kind == .refused)
                }
            }
            #expect(try store.rows("SELECT count(*) FROM teams") == "5")
            #expect(try store.rows("SELECT count(*) FROM players") == players)
        }
    }

    // MARK: - Triggers that come

    @Test("the state of the tables tells whether they have triggers of the user's")
    func state() async throws {
        try await Self.on("", .beforeOpening) { (store: TestStore) throws in
            let state = try TableState.read(store.other)
            for table in try PostgresSchema.read(store.other).tables {
                try ExternalTriggers.install(on: store.other, table: table)
            }
            #expect(try TableState.read(store.other) == state)
            try store.other.execute(Self.trigger("NULL", "TRIGGER run AFTER INSERT ON players"))
            #expect(try TableState.read(store.other) != state)
            try store.other.execute("DROP FUNCTION run CASCADE")
            #expect(try TableState.read(store.other) == state)
        }
    }
}
