import MartletModel
import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("What the database has to say")
struct ConstraintTests {
    static let schema = """
        CREATE TABLE seats (id INTEGER PRIMARY KEY, name TEXT UNIQUE, number INTEGER NOT NULL UNIQUE);
        CREATE TABLE links (
            id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES seats (id),
            b INTEGER NOT NULL REFERENCES seats (id), UNIQUE (a, b));
        """

    static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.send(
            SetText().create("seats", "-1", #""name":"A","number":1"#)
                .create("seats", "-2", #""name":"B","number":2"#))
        return server
    }

    @Test(
        "two records may swap their unique values in one set, required ones too",
        arguments: StorageKind.all)
    func swapInOneSet(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().update("seats", "1", #""revision":1,"name":"B","number":2"#)
                .update("seats", "2", #""revision":1,"name":"A","number":1"#))
        #expect(set.content == "seats update [1, 2] 1@2(name=B number=2) 2@2(name=A number=1)")
        expectText(
            try server.text(),
            """
            seats 1 @2 by d1: name B, number 2
            seats 2 @2 by d1: name A, number 1
            log 1, by d1: seats create [1, 2] 1@1(name=A number=1) 2@1(name=B number=2)
            log 2, by d1: seats update [1, 2] 1@2(name=B number=2) 2@2(name=A number=1)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            device d1
            """)
    }

    @Test(
        "they may swap them whatever a conflict clause of the declaration says",
        arguments: StorageKind.embedded, ["ROLLBACK", "IGNORE", "REPLACE", "FAIL"])
    func swapUnderClause(kind: StorageKind, clause: String) async throws {
        let server = try await TestDataSet(
            kind,
            "CREATE TABLE seats (id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT \(clause))")
        try server.send(
            SetText().create("seats", "-1", #""name":"A""#).create("seats", "-2", #""name":"B""#))
        let set = try server.send(
            SetText().update("seats", "1", #""revision":1,"name":"B""#)
                .update("seats", "2", #""revision":1,"name":"A""#))
        #expect(set.fate == "accepted 2")
        expectText(
            try server.text(),
            """
            seats 1 @2 by d1: name B
            seats 2 @2 by d1: name A
            log 1, by d1: seats create [1, 2] 1@1(name=A) 2@1(name=B)
            log 2, by d1: seats update [1, 2] 1@2(name=B) 2@2(name=A)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            device d1
            """)
        let taken = try server.send(SetText().create("seats", "-3", #""name":"A""#))
        #expect(taken.fate == "constraint")
        expectText(
            try server.text(),
            """
            seats 1 @2 by d1: name B
            seats 2 @2 by d1: name A
            log 1, by d1: seats create [1, 2] 1@1(name=A) 2@1(name=B)
            log 2, by d1: seats update [1, 2] 1@2(name=B) 2@2(name=A)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            device d1
            """)
    }

    @Test(
        "they may swap what a partial or a computed index is of, through columns that stay as well",
        arguments: StorageKind.embedded,
        [
            "(name) WHERE number > 1", "(lower(name) || number)", "(folded)",
            "(substr(number, 1, 1))", "(abs(number)) WHERE note IS NOT NULL",
        ])
    func swapComputed(kind: StorageKind, index: String) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE seats(id INTEGER PRIMARY KEY, name TEXT NOT NULL, number INTEGER, note TEXT,
                folded TEXT AS (lower(name) || number));
            CREATE UNIQUE INDEX u ON seats\(index)
            """)
        try server.send(
            SetText().create("seats", "-1", #""name":"A","number":1,"note":"n""#)
                .create("seats", "-2", #""name":"A","number":2,"note":"m""#))
        let set = try server.send(
            SetText().update("seats", "1", #""revision":1,"number":2"#)
                .update("seats", "2", #""revision":1,"number":1"#))
        #expect(set.fate.hasPrefix("accepted"))
        expectText(
            try server.text(),
            """
            seats 1 @2 by d1: name A, number 2, note n, folded a2
            seats 2 @2 by d1: name A, number 1, note m, folded a1
            log 1, by d1: seats create [1, 2] 1@1(name=A number=1 note=n folded=a1) 2@1(name=A number=2 note=m folded=a2)
            log 2, by d1: seats update [1, 2] 1@2(number=2 folded=a2) 2@2(number=1 folded=a1)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            device d1
            """)
    }

    @Test(
        "a set deletes a chain that is deeper than SQLite's triggers go, its head first",
        arguments: StorageKind.embedded)
    func deepChain(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            "CREATE TABLE nodes(id INTEGER PRIMARY KEY, above INTEGER REFERENCES nodes ON DELETE CASCADE)"
        )
        var made = SetText()
        var gone = SetText()
        for number in 1...1_500 {
            made = made.create("nodes", "-\(number)", number > 1 ? #""above":-\#(number - 1)"# : "")
            gone = gone.delete("nodes", "\(number)")
        }
        #expect(try server.send(made).fate.hasPrefix("accepted"))
        #expect(try server.send(gone).fate.hasPrefix("accepted"))
        #expect(try server.rows("SELECT count(*) FROM nodes") == "0")
    }

    @Test(
        "a record may be deleted and another created with its unique value in one set",
        arguments: StorageKind.all)
    func replaceInOneSet(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().create("seats", "-3", #""name":"A","number":1"#)
                .delete("seats", "1", #""revision":1"#))
        #expect(set.content == "seats create [3] delete [1] 3@2(name=A number=1)")
        expectText(
            try server.text(),
            """
            seats 2 @1 by d1: name B, number 2
            seats 3 @2 by d1: name A, number 1
            seats 1 @2 by d1, deleted
            log 1, by d1: seats create [1, 2] 1@1(name=A number=1) 2@1(name=B number=2)
            log 2, by d1: seats create [3] delete [1] 3@2(name=A number=1)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            seats -3 of d1 is 3
            device d1
            """)
    }

    @Test("unique lists of required references can be swapped", arguments: StorageKind.all)
    func swapReferences(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(
            SetText().create("links", "-1", #""a":1,"b":2"#).create("links", "-2", #""a":2,"b":1"#))
        let set = try server.send(
            SetText().update("links", "1", #""revision":2,"a":2,"b":1"#)
                .update("links", "2", #""revision":2,"a":1,"b":2"#))
        #expect(set.fate == "accepted 3")
        expectText(
            try server.text(),
            """
            seats 1 @1 by d1: name A, number 1
            seats 2 @1 by d1: name B, number 2
            links 1 @3 by d1: a 2, b 1
            links 2 @3 by d1: a 1, b 2
            log 1, by d1: seats create [1, 2] 1@1(name=A number=1) 2@1(name=B number=2)
            log 2, by d1: links create [1, 2] 1@2(a=1 b=2) 2@2(a=2 b=1)
            log 3, by d1: links update [1, 2] 1@3(a=2 b=1) 2@3(a=1 b=2)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            links -1 of d1 is 1
            links -2 of d1 is 2
            device d1
            """)
    }

    @Test(
        "a value another record holds is refused, and nothing of the set remains",
        arguments: StorageKind.all)
    func takenByAnotherRecord(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().create("seats", "-3", #""name":"C","number":3"#)
                .update("seats", "1", #""revision":1,"name":"B""#))
        #expect(set.fate == "constraint")
        #expect(set.message?.contains("seats") == true)
        expectText(
            try server.text(),
            """
            seats 1 @1 by d1: name A, number 1
            seats 2 @1 by d1: name B, number 2
            log 1, by d1: seats create [1, 2] 1@1(name=A number=1) 2@1(name=B number=2)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            device d1
            """)
        // The id was seen by nobody, so the next record gets it.
        let next = try server.send(SetText().create("seats", "-4", #""name":"D","number":4"#))
        #expect(next["seats"]?.create == [.integer(3)])
    }

    @Test("a failing set between two others fails alone, in one commit", arguments: StorageKind.all)
    func middle(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let good = SetText("a").create("seats", "-3", #""name":"C","number":3"#)
        let bad = SetText("b").create("seats", "-3", #""name":"A","number":9"#)
        let last = SetText("c").create("seats", "-3", #""name":"D","number":4"#)
        let requests = ["x", "y", "z"].enumerated().map { index, client in
            #"{"clientId":"\#(client)","maxRevision":1,"changeSets":[\#([good, bad, last][index])]}"#
        }
        let answers = try server.process(requests).map {
            try SyncCoder.decodeAnswer($0.get().body)
        }
        #expect(answers.map(\.maxRevision) == [3, 3, 3])
        #expect(answers[0].changeSets.map(\.fate) == ["accepted 2", "accepted 3"])
        #expect(answers[1].changeSets.map(\.fate) == ["accepted 2", "accepted 3", "constraint"])
        #expect(answers[2].changeSets.map(\.conflict) == [nil, false])
        expectText(
            try server.text(),
            """
            seats 1 @1 by d1: name A, number 1
            seats 2 @1 by d1: name B, number 2
            seats 3 @2 by x: name C, number 3
            seats 4 @3 by z: name D, number 4
            log 1, by d1: seats create [1, 2] 1@1(name=A number=1) 2@1(name=B number=2)
            log 2, a by x: seats create [3] 3@2(name=C number=3)
            log 3, c by z: seats create [4] 4@3(name=D number=4)
            seats -1 of d1 is 1
            seats -2 of d1 is 2
            seats -3 of x is 3
            seats -3 of z is 4
            refused, b by y: constraint
            device d1
            device x
            device y
            device z
            """)
    }

    @Test(
        "a record a program wrote past Martlet does not stand in the way of a new id",
        arguments: StorageKind.embedded)
    func externalRow(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.execute("INSERT INTO seats VALUES (3, 'F', 30)")
        let set = try server.send(SetText().create("seats", "-3", #""name":"C","number":3"#))
        #expect(set["seats"]?.create == [.integer(4)])
    }

    @Test(
        "the truth is read after all sets of the batch, not when a set was refused",
        arguments: StorageKind.all)
    func lateTruth(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().update("seats", "1", #""revision":1,"name":"X""#), from: "d2")
        let answer = try server.exchange(
            [
                SetText("a").update("seats", "1", #""revision":1,"name":"Y""#),
                SetText("b", seen: 2).delete("seats", "1"),
            ], from: "d3")
        #expect(answer.changeSets.map(\.fate) == ["accepted 3", "stale"])
        #expect(answer.changeSets.last?.content == "seats delete [1]")
    }
}

@Suite("Schemas with triggers")
struct TriggerTests {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, size INTEGER DEFAULT 0, stamp TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE journal (id INTEGER PRIMARY KEY, what TEXT);
        CREATE TRIGGER joined AFTER INSERT ON players BEGIN
            UPDATE teams SET size = size + 1 WHERE id = NEW.team_id;
            INSERT INTO journal (what) VALUES ('joined ' || NEW.name);
        END;
        CREATE TRIGGER stamped AFTER UPDATE OF name ON teams BEGIN
            UPDATE teams SET stamp = 'changed' WHERE id = NEW.id;
        END;
        CREATE TRIGGER guarded BEFORE DELETE ON journal BEGIN
            SELECT RAISE(ABORT, 'the journal is kept');
        END;
        CREATE TRIGGER poisoned BEFORE INSERT ON players WHEN NEW.name = 'poison' BEGIN
            SELECT RAISE(ROLLBACK, 'no poison');
        END;
        """

    static let postgres = """
        CREATE TABLE teams (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name text,
            size bigint DEFAULT 0, stamp text);
        CREATE TABLE players (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name text,
            team_id bigint REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE journal (
            id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, what text);
        CREATE FUNCTION joined() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE teams SET size = size + 1 WHERE id = NEW.team_id;
            INSERT INTO journal (what) VALUES ('joined ' || NEW.name);
            RETURN NULL;
        END $$;
        CREATE TRIGGER joined AFTER INSERT ON players FOR EACH ROW EXECUTE FUNCTION joined();
        CREATE FUNCTION stamped() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.stamp = 'changed';
            RETURN NEW;
        END $$;
        CREATE TRIGGER stamped BEFORE UPDATE OF name ON teams
            FOR EACH ROW EXECUTE FUNCTION stamped();
        CREATE FUNCTION guarded() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'the journal is kept';
        END $$;
        CREATE TRIGGER guarded BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION guarded();
        CREATE FUNCTION poisoned() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.name = 'poison' THEN RAISE EXCEPTION 'no poison'; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER poisoned BEFORE INSERT ON players FOR EACH ROW EXECUTE FUNCTION poisoned();
        """

    @Test(
        "rows the triggers changed or made are listed as they are stored",
        arguments: StorageKind.all)
    func listed(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema, postgres: Self.postgres)
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        let joined = try server.send(
            SetText().create("players", "-1", #""name":"P","team_id":1"#), from: "d2")
        #expect(
            joined.content == """
                players create [1] 1@2(name=P team_id=1); teams update [1] \
                1@2(name=A size=1 stamp=null); journal create [1] 1@2(what=joined P)
                """)
        expectText(
            try server.text(),
            """
            teams 1 @2 by d2, by others @1: name A, size 1
            players 1 @2 by d2: name P, team_id 1
            journal 1 @2 by d2: what joined P
            log 1, by d1: teams create [1] 1@1(name=A size=0)
            log 2, by d2: players create [1] 1@2(name=P team_id=1)
            log 2, by d2: teams update [1] 1@2(name=A size=1 stamp=null)
            log 2, by d2: journal create [1] 1@2(what=joined P)
            teams -1 of d1 is 1
            players -1 of d2 is 1
            device d1
            device d2
            """)
        let renamed = try server.send(
            SetText().update("teams", "1", #""revision":2,"name":"B""#), from: "d2")
        #expect(renamed.content == "teams update [1] 1@3(name=B size=1 stamp=changed)")
        let gone = try server.send(SetText(seen: 3).delete("teams", "1"), from: "d3")
        #expect(gone.content == "teams delete [1]; players delete [1]")
        let own = try server.send(SetText().create("journal", "-1", #""what":"x""#))
        #expect(own.content == "journal create [2] 2@5(what=x)")
    }

    @Test("a sentence raised by a trigger is the refusal's", arguments: StorageKind.all)
    func raised(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema, postgres: Self.postgres)
        try server.send(SetText().create("journal", "-1", #""what":"x""#))
        let set = try server.send(SetText().delete("journal", "1"))
        #expect(set.fate == "constraint")
        #expect(set.message?.contains("the journal is kept") == true)
    }

    @Test(
        "a set that makes the database roll back everything fails alone", arguments: StorageKind.all
    )
    func rolledBack(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema, postgres: Self.postgres)
        let answer = try server.exchange(
            [
                SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#),
                SetText("b", sequence: 2).create("players", "-1", #""name":"poison""#),
                SetText("c", sequence: 3).create("players", "-2", #""name":"Q","team_id":-1"#),
            ])
        #expect(
            answer.changeSets.map(\.fate) == ["accepted 1", "accepted 2", "constraint"])
        expectText(
            try server.text(),
            """
            teams 1 @2 by d1: name A, size 1
            players 1 @2 by d1: name Q, team_id 1
            journal 1 @2 by d1: what joined Q
            log 1, a/1 by d1: teams create [1] 1@1(name=A size=0)
            log 2, c/3 by d1: players create [1] 1@2(name=Q team_id=1)
            log 2, c/3 by d1: teams update [1] 1@2(name=A size=1 stamp=null)
            log 2, c/3 by d1: journal create [1] 1@2(what=joined Q)
            teams -1 of d1 is 1
            players -2 of d1 is 1
            refused, b/2 by d1: constraint
            device d1
            """)
    }

    @Test(
        "cascades through references Martlet does not carry are listed too",
        arguments: StorageKind.all)
    func hiddenReferences(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE codes (id INTEGER PRIMARY KEY, code TEXT UNIQUE);
            CREATE TABLE uses (
                id INTEGER PRIMARY KEY,
                code TEXT REFERENCES codes (code) ON DELETE CASCADE ON UPDATE CASCADE);
            """)
        try server.send(
            SetText().create("codes", "-1", #""code":"x""#).create("uses", "-1", #""code":"x""#))
        let changed = try server.send(SetText().update("codes", "1", #""revision":1,"code":"y""#))
        #expect(changed.content == "codes update [1] 1@2(code=y); uses update [1] 1@2(code=y)")
        let gone = try server.send(SetText().delete("codes", "1"))
        #expect(gone.content == "codes delete [1]; uses delete [1]")
    }
}
