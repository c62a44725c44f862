import MartletModel
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Schema reader")
struct SchemaReaderTests {
    private func read(_ sql: String) throws -> Schema {
        let connection = try Connection(path: ":memory:")
        try connection.execute(sql)
        return try SchemaReader.read(connection)
    }

    @Test("gives each column the kind of its declared type")
    func kinds() throws {
        let schema = try read(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b BIGINT NOT NULL, c REAL, d DOUBLE,
              e TEXT DEFAULT 'x', f VARCHAR(20), g BLOB, h BOOLEAN, i BOOL, j NUMERIC, k DECIMAL(8,2),
              l DATE, m TIMESTAMP, n, o JSON, p AS (a + 1), q INTEGER AS (a + 2) STORED, r FLOAT,
              s UUID, t JSON TEXT);
            """)
        let type = try #require(schema["t"])
        #expect(type.key == "id")
        #expect(type.keyKind == .integer)
        #expect(
            type.attributes.map { "\($0.name) \($0.kind.rawValue)" } == [
                "a integer", "b integer", "c real", "d real", "e text", "f text", "g blob",
                "h boolean", "i boolean", "j numeric", "k numeric", "l any", "m any", "n any",
                "o any", "p any", "q integer", "r real", "s any", "t text",
            ])
        #expect(type.attributes.filter(\.isRequired).map(\.name) == ["b"])
        #expect(type.attributes.filter(\.hasDefault).map(\.name) == ["e"])
        #expect(type.attributes.filter(\.isGenerated).map(\.name) == ["p", "q"])
    }

    @Test(
        "a default that is a literal of the column's kind is known",
        arguments: [
            ("TEXT DEFAULT 'it''s'", Value.text("it's")), ("TEXT DEFAULT ''", .text("")),
            ("INT DEFAULT -3", .integer(-3)), ("REAL DEFAULT 1.5", .real(1.5)),
            ("BOOLEAN DEFAULT TRUE", .boolean(true)), ("BOOLEAN DEFAULT 0", .boolean(false)),
            ("NUMERIC DEFAULT 7", .text("7")), ("NUMERIC TEXT DEFAULT '1.50'", .text("1.50")),
            ("DATE DEFAULT '2026-05-31'", .text("2026-05-31")), ("TEXT DEFAULT CURRENT_DATE", nil),
            ("TEXT DEFAULT ('a' || 'b')", nil), ("NUMERIC DEFAULT 1.50", nil),
            ("BLOB DEFAULT 'x'", nil), ("INT DEFAULT 'x'", nil), ("INT", nil),
        ])
    func defaults(column: String, value: Value?) throws {
        let schema = try read("CREATE TABLE t (id INTEGER PRIMARY KEY, c \(column))")
        let attribute = try #require(schema["t"]?[attribute: "c"])
        #expect(attribute.defaultValue == value)
        #expect(attribute.isDefault(.null) == !attribute.hasDefault)
    }

    @Test(
        "a JSON column holds documents as SQLite keeps them: numbers as numbers, unless it says TEXT",
        arguments: [("1.50", Value.real(1.5)), ("7", .integer(7)), (#"{"a":1.50}"#, nil)])
    func jsonColumns(document: String, number: Value?) throws {
        let connection = try Connection(path: ":memory:")
        try connection.execute(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, bare JSON, exact JSON TEXT)")
        let type = try #require(try SchemaReader.read(connection)["t"])
        let table = RecordTable(type: type, connection: connection)
        let given = Attributes(
            names: ["bare", "exact"], values: [.text(document), .text(document)])
        try table.insert(.integer(1), given, absentMeansNull: true)
        let stored = try #require(try table.read(.integer(1)))
        #expect(stored["bare"] == number ?? .text(document))
        #expect(stored["exact"] == .text(document))
        // Storing the value that was read gives the same value.
        #expect(try table.update(.integer(1), stored))
        #expect(try table.read(.integer(1)) == stored)
    }

    @Test(
        "names that differ only in how their letters are composed are refused",
        arguments: [
            "CREATE TABLE t(id INTEGER PRIMARY KEY, \"\u{e9}\" TEXT, \"e\u{301}\" TEXT)",
            "CREATE TABLE \"\u{e9}\"(id TEXT PRIMARY KEY); CREATE TABLE \"e\u{301}\"(id TEXT PRIMARY KEY)",
        ])
    func composition(sql: String) throws {
        let error = #expect(throws: SchemaError.self) { try read(sql) }
        #expect(error?.message.contains("composed in two ways") == true)
        // Indexes of such names do no harm.
        let connection = try Connection(path: ":memory:")
        let script =
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE INDEX \"\u{e9}\" ON t(a);"
            + "CREATE INDEX \"e\u{301}\" ON t(a, id);"
        for _ in 0..<2 { _ = try SchemaMigration.apply(script: script, to: connection) }
    }

    @Test(
        "a conflict clause of a constraint is noticed, in the declaration alone",
        arguments: [
            ("a UNIQUE ON CONFLICT ROLLBACK", true),
            ("a NOT NULL ON CONFLICT replace DEFAULT 1", true),
            ("a, UNIQUE (a) /* x */ on CONFLICT Ignore", true),
            ("a UNIQUE ON CONFLICT ABORT", false),
            ("a DEFAULT 'ON CONFLICT IGNORE'", false), ("\"ON\" , CONFLICT, IGNORE", false),
        ])
    func conflictClauses(columns: String, expected: Bool) throws {
        let schema = try read("CREATE TABLE t(id INTEGER PRIMARY KEY, \(columns))")
        #expect(schema["t"]?.hasConflictClause == expected)
    }

    @Test("takes the tables in their order, and only the user's tables")
    func tables() throws {
        let schema = try read(
            """
            CREATE TABLE zebra (id INTEGER PRIMARY KEY AUTOINCREMENT);
            CREATE TABLE ant (id TEXT PRIMARY KEY) WITHOUT ROWID;
            CREATE TABLE martlet_records (x);
            CREATE VIEW v AS SELECT * FROM ant;
            CREATE VIRTUAL TABLE search USING fts5(words);
            CREATE TABLE "martletx" (id uuid PRIMARY KEY);
            """)
        #expect(schema.types.map(\.name) == ["zebra", "ant", "martletx"])
        #expect(schema.types.map(\.keyKind) == [.integer, .text, .text])
    }

    @Test(
        "lists references by the tables’ own names in any case of letters, and no others")
    func referencesInAnyCase() throws {
        let schema = try read(
            """
            CREATE TABLE Team (ID INTEGER PRIMARY KEY, code TEXT UNIQUE, a, b, UNIQUE (a, b));
            CREATE TABLE player (id INTEGER PRIMARY KEY,
              team INTEGER REFERENCES team ON DELETE CASCADE,
              second INTEGER REFERENCES TEAM(Id) ON DELETE SET NULL,
              third INTEGER REFERENCES team(id) ON DELETE SET DEFAULT,
              fourth INTEGER REFERENCES team(id) ON DELETE RESTRICT,
              captain INTEGER REFERENCES player(id),
              code TEXT REFERENCES team(code),
              x, y, FOREIGN KEY (x, y) REFERENCES team(a, b));
            """)
        let type = try #require(schema["player"])
        #expect(
            type.references == [
                Reference(attribute: "team", target: "Team", onDelete: .cascade),
                Reference(attribute: "second", target: "Team", onDelete: .setNull),
                Reference(attribute: "third", target: "Team", onDelete: .setDefault),
                Reference(attribute: "fourth", target: "Team", onDelete: .restrict),
                Reference(attribute: "captain", target: "player", onDelete: .noAction),
            ])
        #expect(schema["Team"]?.uniques.sorted { $0.count < $1.count } == [["code"], ["a", "b"]])
    }

    @Test("lists unique indexes, partial ones too, but none over expressions or with the key")
    func uniques() throws {
        let schema = try read(
            """
            CREATE TABLE t (id TEXT PRIMARY KEY, a, b, c, UNIQUE (id, c));
            CREATE UNIQUE INDEX one ON t (a, b);
            CREATE UNIQUE INDEX two ON t (c) WHERE c IS NOT NULL;
            CREATE UNIQUE INDEX three ON t (lower(a));
            CREATE INDEX four ON t (b);
            """)
        #expect(Set(schema["t"]?.uniques ?? []) == [["a", "b"], ["c"]])
    }

    @Test("takes odd names as they are")
    func oddNames() throws {
        let odd = #"a "b'; DROP TABLE x; -- ü 名"#
        let schema = try read(
            """
            CREATE TABLE \(SQLName.quoted(odd)) (\(SQLName.quoted("k " + odd)) INTEGER PRIMARY KEY,
              \(SQLName.quoted("c " + odd)) TEXT UNIQUE,
              \(SQLName.quoted("r")) INTEGER REFERENCES \(SQLName.quoted(odd)));
            """)
        let type = try #require(schema[odd])
        #expect(type.key == "k " + odd)
        #expect(type.attributes.map(\.name) == ["c " + odd, "r"])
        #expect(type.references.map(\.target) == [odd])
        #expect(type.uniques == [["c " + odd]])
    }

    @Test(
        "refuses in a sentence what cannot be synchronised",
        arguments: [
            ("CREATE TABLE t (a)", "has no primary key"),
            ("CREATE TABLE t (a, b, PRIMARY KEY (a, b))", "primary key of 2 columns"),
            ("CREATE TABLE t (id INT PRIMARY KEY)", "declared “INT”"),
            ("CREATE TABLE t (id PRIMARY KEY)", "declared “(nothing)”"),
            ("CREATE TABLE t (id BLOB PRIMARY KEY)", "declared “BLOB”"),
            ("CREATE TABLE t (id INTEGER PRIMARY KEY) WITHOUT ROWID", "declare it INTEGER PRIMARY"),
            ("CREATE TABLE t (id INTEGER PRIMARY KEY DESC)", "declare it INTEGER PRIMARY KEY"),
            ("CREATE TABLE conflict (id INTEGER PRIMARY KEY)", "word of the wire"),
            (
                "CREATE TABLE Old (id INTEGER PRIMARY KEY, a INTEGER REFERENCES old ON DELETE SET NULL)",
                "name of a trigger's row"
            ),
            (
                "CREATE TABLE new (id INTEGER PRIMARY KEY, a INTEGER REFERENCES new ON UPDATE CASCADE)",
                "name of a trigger's row"
            ),
            (
                "CREATE TABLE old (id INTEGER PRIMARY KEY, a INTEGER REFERENCES old ON DELETE RESTRICT)",
                "name of a trigger's row"
            ),
            ("CREATE TABLE t (id INTEGER PRIMARY KEY, revision)", "word of the wire"),
            ("CREATE TABLE t (id INTEGER PRIMARY KEY, __proto__)", "word of the wire"),
            ("CREATE TABLE t (id INTEGER PRIMARY KEY, Martlet_x)", "starts with “martlet_”"),
            ("CREATE TABLE \"a\nb\" (id INTEGER PRIMARY KEY)", "control character"),
            ("CREATE TABLE \"\" (id INTEGER PRIMARY KEY)", "without a name"),
            ("CREATE TABLE t (id INTEGER PRIMARY KEY, r REFERENCES gone)", "“gone”, which is not"),
            (
                "CREATE TABLE t (id INTEGER PRIMARY KEY, r TEXT REFERENCES t)",
                "declare both alike"
            ),
            (
                """
                CREATE TABLE t (id INTEGER PRIMARY KEY, a, UNIQUE (id, a));
                CREATE TABLE u (id INTEGER PRIMARY KEY, x, y, FOREIGN KEY (x, y) REFERENCES t(id, a))
                """, "together with other columns"
            ),
            (
                """
                CREATE TABLE t (id INTEGER PRIMARY KEY);
                CREATE TABLE u (id INTEGER PRIMARY KEY REFERENCES t)
                """, "itself a reference"
            ),
        ])
    func refusalsOfSchemas(sql: String, sentence: String) {
        let error = #expect(throws: SchemaError.self) { try read(sql) }
        #expect(error?.message.contains(sentence) == true, "\(error?.message ?? "")")
    }

    @Test("refuses names over 128 bytes and takes those of 128")
    func longNames() throws {
        let name = String(repeating: "é", count: 64)
        #expect(try read("CREATE TABLE \"\(name)\" (id INTEGER PRIMARY KEY)").types.count == 1)
        let error = #expect(throws: SchemaError.self) {
            try read("CREATE TABLE t (id INTEGER PRIMARY KEY, \"\(name)x\" TEXT)")
        }
        #expect(error?.message.contains("129 bytes") == true)
    }
}
