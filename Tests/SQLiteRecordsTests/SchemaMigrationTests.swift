import MartletModel
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Schema migration")
struct SchemaMigrationTests {
    private let connection: Connection
    private let first = """
        -- teams and players
        CREATE TABLE IF NOT EXISTS team (id INTEGER PRIMARY KEY, name TEXT NOT NULL /* shown */);
        CREATE TABLE player (
          id INTEGER PRIMARY KEY,
          team INTEGER REFERENCES team ON DELETE CASCADE,
          "odd, name)" TEXT DEFAULT 'a, (b''', -- a comment, with a comma
          CHECK (length("odd, name)") < 100)
        );
        CREATE INDEX player_team ON player (team);
        """

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.execute("PRAGMA foreign_keys = ON")
    }

    private func objects() throws -> String {
        try connection.text(
            "SELECT group_concat(type || ' ' || name || ' ' || coalesce(sql, ''), x'0a') "
                + "FROM sqlite_schema") ?? ""
    }

    @Test("makes a new database, and does nothing the second time")
    func new() throws {
        let schema = try SchemaMigration.apply(script: first, to: connection)
        #expect(schema.types.map(\.name) == ["team", "player"])
        let before = try objects()
        let version = try connection.integer("PRAGMA schema_version")
        #expect(try SchemaMigration.apply(script: first, to: connection) == schema)
        #expect(try objects() == before)
        #expect(try connection.integer("PRAGMA schema_version") == version)
        #expect(!connection.isInTransaction)
    }

    @Test("the layout of the script makes no difference")
    func layout() throws {
        let schema = try SchemaMigration.apply(script: first, to: connection)
        let other = """
            create table team(id integer primary key,name text not null);
            ; /* ; */;create table player(id integer primary key, team integer references team on delete
              cascade, "odd, name)" text default 'a, (b''', check(length("odd, name)")<100));
            create index player_team on player(team)
            """
        #expect(try SchemaMigration.apply(script: other, to: connection) == schema)
    }

    @Test("adds tables, columns, indexes, views, triggers and full-text tables, keeping the rows")
    func additions() throws {
        _ = try SchemaMigration.apply(script: first, to: connection)
        try connection.execute(
            "INSERT INTO team VALUES (1, 'a'); INSERT INTO player VALUES (5, 1, 'x')")
        let second = """
            CREATE TABLE coach (id TEXT PRIMARY KEY, team INTEGER REFERENCES team);
            CREATE TABLE team (id INTEGER PRIMARY KEY, colour TEXT, name TEXT NOT NULL,
              coach TEXT REFERENCES coach ON DELETE SET NULL, size INTEGER NOT NULL DEFAULT 11,
              label TEXT AS (name || colour));
            CREATE TABLE player (id INTEGER PRIMARY KEY,
              team INTEGER REFERENCES team ON DELETE CASCADE, "odd, name)" TEXT DEFAULT 'a, (b''',
              "née" DECIMAL(10, 2), CHECK (length("odd, name)") < 100));
            CREATE INDEX player_team ON player (team);
            CREATE UNIQUE INDEX by_colour ON team (colour, coach);
            CREATE VIEW teams AS SELECT name, colour FROM team;
            CREATE TRIGGER shout AFTER UPDATE OF colour ON team BEGIN
              UPDATE player SET "née" = 1; UPDATE player SET "née" = 2; END;
            CREATE VIRTUAL TABLE words USING fts5(body);
            """
        let schema = try SchemaMigration.apply(script: second, to: connection)
        #expect(schema.types.map(\.name) == ["team", "player", "coach"])
        #expect(
            schema["team"]?.attributes.map(\.name) == ["name", "colour", "coach", "size", "label"])
        #expect(schema["team"]?.references.map(\.onDelete) == [.setNull])
        #expect(schema["team"]?.uniques == [["colour", "coach"]])
        #expect(schema["player"]?[attribute: "née"]?.kind == .numeric)
        #expect(try connection.integer("SELECT size FROM team WHERE id = 1") == 11)
        try connection.execute("UPDATE team SET colour = 'red'; INSERT INTO words VALUES ('a')")
        #expect(try connection.integer("SELECT \"née\" FROM player") == 2)
        #expect(try connection.text("SELECT name || colour FROM teams") == "ared")
        #expect(try SchemaMigration.apply(script: second, to: connection) == schema)
    }

    @Test("a full-text index that the script does not name stays")
    func unnamedIndex() throws {
        let schema = try SchemaMigration.apply(script: first, to: connection)
        try connection.execute(
            "CREATE VIRTUAL TABLE words USING fts5(body); INSERT INTO words VALUES ('kept')")
        #expect(try SchemaMigration.apply(script: first, to: connection) == schema)
        #expect(try connection.text("SELECT body FROM words WHERE words MATCH 'kept'") == "kept")
    }

    @Test("the statements of a database make another one like it")
    func ddl() throws {
        let script =
            first + """
                CREATE TRIGGER t AFTER INSERT ON team BEGIN SELECT 1; END;
                CREATE VIRTUAL TABLE words USING fts5(body);
                """
        let schema = try SchemaMigration.apply(script: script, to: connection)
        try connection.execute(
            """
            CREATE TABLE martlet_records (id); CREATE INDEX martlet_by ON player (id);
            CREATE TRIGGER martlet_capture AFTER INSERT ON player BEGIN SELECT 1; END;
            """)
        let text = try SchemaMigration.ddl(of: connection)
        #expect(!text.contains("martlet_") && !text.contains("words_data"))
        let other = try Connection(path: ":memory:")
        #expect(try SchemaMigration.apply(script: text, to: other) == schema)
        #expect(try SchemaMigration.ddl(of: other) == text)
        #expect(
            try SchemaMigration.ddl(of: connection, triggers: false).contains("TRIGGER") == false)
        // Martlet's own tables do not stand in the way of a migration.
        #expect(try SchemaMigration.apply(script: script, to: connection) == schema)
    }

    @Test("a table that was renamed and got its name back is as it was declared")
    func renamedBack() throws {
        let script = """
            CREATE TABLE Team (id INTEGER PRIMARY KEY);
            CREATE TABLE player (
                id INTEGER PRIMARY KEY, a INTEGER REFERENCES Team, b INTEGER,
                FOREIGN KEY (b) REFERENCES Team);
            CREATE INDEX i ON Team (id);
            CREATE VIEW v AS SELECT Team.id FROM Team JOIN player ON Team.id = a;
            CREATE TRIGGER t AFTER INSERT ON Team BEGIN UPDATE Team SET id = 1; DELETE FROM Team; END;
            """
        let schema = try SchemaMigration.apply(script: script, to: connection)
        try connection.execute(
            "ALTER TABLE Team RENAME TO other; ALTER TABLE other RENAME TO Team")
        let quoted = "SELECT 1 FROM sqlite_schema WHERE sql GLOB '*\"Team\"*'"
        #expect(try connection.integer(quoted) != nil)
        #expect(try SchemaMigration.apply(script: script, to: connection) == schema)
    }

    @Test("a column that was renamed and got its name back, in quotes, is as it was declared")
    func columnRenamedBack() throws {
        let script = """
            CREATE TABLE team (
                id INTEGER PRIMARY KEY, Name TEXT NOT NULL CHECK (length(Name) > 1), made TEXT AS (Name || '.'),
                "null" TEXT DEFAULT NULL, UNIQUE (id, name), CHECK (Name IS NOT NULL));
            CREATE TABLE player (id INTEGER PRIMARY KEY, team TEXT REFERENCES team (Name));
            CREATE UNIQUE INDEX i ON team (lower(Name)) WHERE NAME IS NOT NULL;
            CREATE VIEW v AS SELECT Name FROM team;
            CREATE TRIGGER t AFTER UPDATE OF Name ON team WHEN NEW.Name IS NULL BEGIN UPDATE team SET Name = 1; END;
            """
        let schema = try SchemaMigration.apply(script: script, to: connection)
        try connection.execute(
            """
            ALTER TABLE team RENAME COLUMN name TO other;
            ALTER TABLE team RENAME COLUMN other TO "Name"
            """)
        let quoted = "SELECT count(*) FROM sqlite_schema WHERE sql GLOB '*\"Name\"*'"
        #expect(try connection.integer(quoted) == 5)
        #expect(try SchemaMigration.apply(script: script, to: connection) == schema)
        // NULL is no column, whatever the columns are called.
        let other = script.replacing("IS NOT NULL)", with: "IS NOT \"null\")")
        #expect(throws: SchemaError.self) {
            try SchemaMigration.apply(script: other, to: connection)
        }
    }

    @Test("names in which a letter joins a quotation mark are read as they are written")
    func joined() {
        let text = "\"q\"\"\u{301}\" `a``\u{301}` 'b''''\u{301}' \"\u{301}c\" \"\"\"\""
        let tokens = SQLToken.tokens(of: Array(text.utf8))
        let names = tokens.map { Array(($0.identifier ?? $0.nameOfLiteral ?? "").utf8) }
        let expected = ["q\"\u{301}", "a`\u{301}", "b''\u{301}", "\u{301}c", "\""]
        #expect(names == expected.map { Array($0.utf8) })
    }

    @Test("works inside a transaction and leaves it open")
    func inTransaction() throws {
        try connection.begin()
        _ = try SchemaMigration.apply(script: first, to: connection)
        #expect(throws: SchemaError.self) {
            try SchemaMigration.apply(
                script: first
                    + "CREATE TABLE new (id INTEGER PRIMARY KEY); CREATE VIEW w AS SELECT;",
                to: connection)
        }
        #expect(connection.isInTransaction)
        try connection.commit()
        #expect(try SchemaReader.read(connection).types.count == 2)
    }

    @Test(
        "refuses in a sentence everything that is not an addition",
        arguments: [
            ("CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT NOT NULL);", "“player” is in"),
            (".player(team INTEGER REFERENCES team ON DELETE CASCADE)", "“odd, name)”, which"),
            (".team(name TEXT)", "“name” is declared differently"),
            (".team(name VARCHAR(9) NOT NULL)", "“name” is declared differently"),
            (".team(Name TEXT NOT NULL)", "“name” is declared differently"),
            (".team(name TEXT NOT NULL DEFAULT 'x')", "“name” is declared differently"),
            (".team(name TEXT NOT NULL, UNIQUE (name))", "other constraints or options"),
            (".team(name TEXT NOT NULL) STRICT", "other constraints or options"),
            (".team(name TEXT NOT NULL, size INTEGER NOT NULL)", "NOT NULL without a DEFAULT"),
            (".team(name TEXT NOT NULL, code TEXT UNIQUE)", "cannot be added"),
            (".team(name TEXT NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP)", "cannot be added"),
            (
                ".team(name TEXT NOT NULL, up INTEGER, FOREIGN KEY (up) REFERENCES team)",
                "other con"
            ),
            (".index(player_team ON player (id))", "index “player_team” is declared differently"),
            ("+PRAGMA user_version = 1;", "other than CREATE"),
            ("+/* x */ INSERT INTO team VALUES (1, 'secret');", "other than CREATE"),
            ("+DROP TABLE player;", "other than CREATE"),
            ("+CREATE TEMP TABLE z (id INTEGER PRIMARY KEY);", "temporary"),
            ("+CREATE TABLE martlet_z (id INTEGER PRIMARY KEY);", "“martlet_”"),
            ("+CREATE INDEX martlet_z ON team (name);", "“martlet_”"),
            ("+CREATE TABLE z (id INTEGER PRIMARY KEY", "not valid SQL"),
            ("+CREATE TABLE z (a);", "has no primary key"),
            ("+CREATE TABLE z (id INTEGER PRIMARY KEY); \u{0}", "NUL"),
        ])
    func refusalsOfSchemaChanges(change: String, sentence: String) throws {
        _ = try SchemaMigration.apply(script: first, to: connection)
        try connection.execute("INSERT INTO team VALUES (1, 'a')")
        let before = try objects()
        var script = change
        let parts = change.dropFirst().split(separator: "(", maxSplits: 1)
        if change.hasPrefix("+") { script = first + change.dropFirst() }
        if change.hasPrefix(".index") {
            script = first.replacing("player_team ON player (team)", with: parts[1].dropLast())
        } else if change.hasPrefix(".team") {
            script = first.replacing("name TEXT NOT NULL /* shown */);", with: parts[1] + ";")
        } else if change.hasPrefix(".player") {
            script =
                "CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
                + "CREATE TABLE player (id INTEGER PRIMARY KEY, \(parts[1]);"
        }
        let error = #expect(throws: SchemaError.self) {
            try SchemaMigration.apply(script: script, to: connection)
        }
        #expect(error?.message.contains(sentence) == true, "\(error?.message ?? "")")
        #expect(try objects() == before)
        #expect(!connection.isInTransaction)
    }
}
