import MartletModel
internal import MartletProtocol
import MartletServerCore
import SetTexts
import Testing

/// Somebody who may not write learns nothing by guesses of unique values and ids.
@Suite("Policies are judged before unique values and references")
struct GuessTests {
    private static let schema = """
        CREATE TABLE people (
            id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, owner TEXT, kind TEXT DEFAULT 'plain');
        CREATE TABLE clubs (id TEXT PRIMARY KEY NOT NULL, owner TEXT);
        CREATE TABLE notes (
            id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES people (id), owner TEXT, code TEXT UNIQUE);
        CREATE TABLE locked (id INTEGER PRIMARY KEY, code TEXT UNIQUE, owner TEXT);
        """

    private static let rules = """
        CREATE POLICY own ON people USING (owner = martlet_user());
        CREATE POLICY plain ON people AS RESTRICTIVE FOR INSERT WITH CHECK (kind = 'plain');
        CREATE POLICY own ON clubs USING (owner = martlet_user());
        CREATE POLICY own ON notes USING (owner = martlet_user());
        CREATE POLICY mine ON notes AS RESTRICTIVE FOR INSERT
            WITH CHECK (code IS NULL OR person_id IN (SELECT id FROM people));
        CREATE POLICY own ON locked USING (owner = martlet_user());
        GRANT SELECT ON locked TO PUBLIC;
        """

    private static let bob = Principal(name: "b", user: "bob")

    /// Ann has person 1, the club “owls”, note 1 and a locked record. Bob has person 2.
    private static func server(
        _ kind: StorageKind, _ script: String = schema, postgres: String? = nil
    ) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, script, postgres: postgres)
        // A sequence of PostgreSQL takes no number back from a refused set.
        server.isCompared = false
        try server.send(
            SetText().create("people", "-1", #""email":"ann@x","owner":"ann""#)
                .create("people", "-2", #""email":"bob@x","owner":"bob""#)
                .create("clubs", "owls", #""owner":"ann""#)
                .create("notes", "-1", #""person_id":-1,"owner":"ann","code":"A""#)
                .create("locked", "-1", #""code":"A","owner":"ann""#))
        try server.secure(by: rules)
        return server
    }

    private static func refusal(
        _ set: SetText, of server: TestDataSet
    ) throws -> (reason: RefusalReason?, message: String?) {
        let refused = try server.send(set, from: "d2", as: bob)
        #expect(refused.conflict == true)
        return (refused.reason, refused.message)
    }

    @Test(
        "a set that is not allowed is refused alike, whatever hidden records have",
        arguments: StorageKind.all)
    func alike(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func person(_ email: String) -> SetText {
            SetText().create("people", "-9", "\"email\":\"\(email)\",\"owner\":\"ann\"")
        }
        func change(_ email: String) -> SetText {
            SetText().update(
                "people", "2", "\"revision\":1,\"email\":\"\(email)\",\"owner\":\"ann\"")
        }
        func note(_ person: Int, _ code: String = "Z") -> SetText {
            SetText().create(
                "notes", "-9", "\"person_id\":\(person),\"owner\":\"ann\",\"code\":\"\(code)\"")
        }
        func club(_ id: String) -> SetText {
            SetText().create("clubs", id, #""owner":"ann""#)
        }
        func locked(_ code: String) -> SetText {
            SetText().create("locked", "-9", "\"code\":\"\(code)\",\"owner\":\"bob\"")
        }
        for (guess, other, words) in [
            (person("ann@x"), person("z@x"), "no policy lets you create"),
            (change("ann@x"), change("z@x"), "no policy lets you leave"),
            (note(1), note(77), "no policy lets you create"),
            (note(1, "A"), note(77), "no policy lets you create"),
            (club("owls"), club("jays"), "no policy lets you create"),
            (locked("A"), locked("Z"), "you may not create records of “locked”"),
            // A fault that the set has in any case does not come first.
            (
                person("ann@x").create("people", "-8", #""owner":"bob""#),
                person("z@x").create("people", "-8", #""owner":"bob""#),
                "no policy lets you create"
            ),
        ] {
            let (first, second) = (
                try Self.refusal(guess, of: server), try Self.refusal(other, of: server)
            )
            #expect(first.reason == .permission)
            #expect(first.message?.hasPrefix(words) == true, "\(first)")
            #expect(first.reason == second.reason && first.message == second.message)
        }
        #expect(server.node.head.revision == 1)
        #expect(try server.rows("SELECT count(*) FROM people") == "2")
    }

    @Test(
        "a set that is allowed meets unique values and references", arguments: StorageKind.all)
    func allowed(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        for (set, reason) in [
            // The default value of “kind” passes the policy.
            (
                SetText().create("people", "-9", #""email":"ann@x","owner":"bob""#),
                RefusalReason.constraint
            ),
            (SetText().update("people", "2", #""revision":1,"email":"ann@x""#), .constraint),
            (SetText().create("notes", "-9", #""person_id":77,"owner":"bob""#), .constraint),
            (SetText().create("clubs", "owls", #""owner":"bob""#), .stale),
            // The condition finds the person that the set makes.
            (
                SetText().create("people", "-9", #""email":"new@x","owner":"bob""#)
                    .create("notes", "-9", #""person_id":-9,"owner":"bob","code":"A""#),
                .constraint
            ),
        ] {
            let refused = try Self.refusal(set, of: server)
            #expect(refused.reason == reason, "\(refused)")
        }
        // An id that is hidden may be referred to, as in PostgreSQL.
        let note = SetText().create("notes", "-9", #""person_id":1,"owner":"bob""#)
        #expect(try server.send(note, from: "d2", as: Self.bob).revision == 2)
    }

    @Test("a BEFORE trigger of PostgreSQL fills the row that is judged")
    func trigger() async throws {
        let script = Self.schema.replacing(
            "INTEGER PRIMARY KEY", with: "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        let server = try await Self.server(
            .postgres, Self.schema,
            postgres: script + """
                CREATE FUNCTION owned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    NEW.owner := split_part(NEW.email, '@', 1);
                    IF NEW.email LIKE 'ann@%' AND NEW.kind = 'b' THEN NEW.owner := 'bob'; END IF;
                    NEW.kind := 'plain';
                    RETURN NEW;
                END $$;
                CREATE TRIGGER owned BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION owned();
                """)
        let own = SetText().create("people", "-9", #""email":"ann@x","kind":"b""#)
        #expect(try Self.refusal(own, of: server).reason == .constraint)
        let other = SetText().create("people", "-9", #""email":"ann@x","owner":"bob""#)
        #expect(try Self.refusal(other, of: server).reason == .permission)
    }

    @Test("a refusal does not have the value of a hidden record that PostgreSQL could not read")
    func unreadable() async throws {
        let script = Self.schema.replacing(
            "INTEGER PRIMARY KEY", with: "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        let server = try await Self.server(
            .postgres, Self.schema,
            postgres: script + """
                CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    PERFORM owner::bigint FROM locked;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER counted BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION counted();
                """)
        let note = SetText().create("notes", "-9", #""owner":"bob""#)
        let refused = try Self.refusal(note, of: server)
        #expect(refused.reason == .constraint)
        #expect(refused.message?.contains("“…”") == true, "\(refused)")
        #expect(refused.message?.contains("ann") == false)
    }
}
