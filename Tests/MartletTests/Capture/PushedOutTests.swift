import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Rows that REPLACE pushes out")
struct PushedOutTests {
    @Test(
        "are deleted for others, even if an insertion of the same id was passed over after it",
        arguments: [
            "INSERT OR REPLACE INTO t SELECT id, 1 FROM martlet_new_id; INSERT OR IGNORE INTO t VALUES (1, 1)",
            "UPDATE OR REPLACE t SET v = 1 WHERE id = 2; INSERT OR IGNORE INTO t VALUES (1, 1)",
            "UPDATE OR REPLACE t SET v = 1 WHERE id = 2; INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING",
        ])
    func passedOverAfterPushedOut(statements: String) throws {
        let device = try DeviceFixture(
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, v INTEGER UNIQUE)")
        try device.apply(
            [
                .entry(1, .created("t", 1, at: 1, ["v": 1])),
                .entry(2, .created("t", 2, at: 2, ["v": 2])),
            ],
            reaching: 2)
        try device.shell("BEGIN; \(statements); COMMIT")
        #expect(try device.rows("SELECT id FROM t WHERE id = 1").isEmpty)
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    // MARK: - By a default

    private static let declarations = [
        "v INTEGER NOT NULL DEFAULT 5 UNIQUE", "v INTEGER NOT NULL DEFAULT '5' UNIQUE",
        "v INTEGER NOT NULL DEFAULT (2 + 3), UNIQUE(l, v)",
        "v INTEGER NOT NULL ON CONFLICT REPLACE DEFAULT 5 UNIQUE ON CONFLICT REPLACE",
        "v INTEGER NOT NULL DEFAULT 5); CREATE UNIQUE INDEX u ON t(l, v + 1",
        "v INTEGER NOT NULL DEFAULT '5'); CREATE UNIQUE INDEX u ON t((v > '4') || typeof(v) || v",
        "v INTEGER NOT NULL DEFAULT 5 CHECK (v > 0), w TEXT NOT NULL DEFAULT 7);"
            + " CREATE UNIQUE INDEX u ON t(l, w) WHERE (v < '6' AND w = 7",
        "v INTEGER NOT NULL DEFAULT 5, n TEXT NOT NULL DEFAULT 'a' COLLATE NOCASE);"
            + " CREATE UNIQUE INDEX u ON t((n = 'A') || v",
        "v INTEGER NOT NULL DEFAULT 5, g TEXT AS (v || '.') STORED UNIQUE",
        "v INTEGER NOT NULL DEFAULT 5, g TEXT AS (v + 1), UNIQUE(l, g)",
        "v INTEGER NOT NULL DEFAULT 5); CREATE UNIQUE INDEX u ON t(l) WHERE (v = 5",
    ]

    private func device(_ declaration: String) throws -> DeviceFixture {
        let device = try DeviceFixture(
            script:
                "CREATE TABLE t(id INTEGER PRIMARY KEY, m TEXT COLLATE NOCASE, l INTEGER, \(declaration))"
        )
        try device.apply(
            [
                .entry(1, .created("t", 1, at: 1, ["m": "first", "l": 1, "v": 5])),
                .entry(2, .created("t", 2, at: 2, ["m": "other", "l": 1, "v": 6])),
            ], reaching: 2)
        return device
    }

    private static let statements = [
        "INSERT OR REPLACE INTO t(id, m, l, v) SELECT id, 'second', 1, NULL FROM martlet_new_id",
        "UPDATE OR REPLACE t SET v = NULL, m = 'second' WHERE id = 2",
    ]

    @Test(
        "by the default of a column that must have a value are deleted for others",
        arguments: declarations, statements)
    func byDefault(declaration: String, statement: String) throws {
        let device = try device(declaration)
        try device.shell(statement)
        #expect(try device.rows("SELECT v FROM t WHERE m = 'second'") == [[5]])
        #expect(try device.rows("SELECT id FROM t WHERE id = 1").isEmpty)
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    @Test(
        "by a default are deleted for others, if a letter of the column's name joins a quotation mark"
    )
    func joined() throws {
        let column = #""v""\#u{301}""#
        let device = try DeviceFixture(
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, \(column) INTEGER NOT NULL DEFAULT 1);
                CREATE UNIQUE INDEX u ON t(\(column)) WHERE \(column) IS 1
                """)
        try device.apply([.entry(1, .created("t", 1, at: 1, ["v\"\u{301}": 1]))], reaching: 1)
        try device.shell("INSERT OR REPLACE INTO t SELECT id, NULL FROM martlet_new_id")
        #expect(try device.rows("SELECT id FROM t WHERE id = 1").isEmpty)
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    @Test("by the default are deleted for others, if the declaration alone says REPLACE")
    func byDeclaration() throws {
        let device = try device(
            "v INTEGER NOT NULL ON CONFLICT REPLACE DEFAULT 5 UNIQUE ON CONFLICT REPLACE")
        try device.shell(Self.statements[0].replacing(" OR REPLACE", with: ""))
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    @Test(
        "are not known if the default is not the same twice, or read in a roundabout way: NULL is refused",
        arguments: [
            "v INTEGER NOT NULL DEFAULT (abs(random()) % 1) UNIQUE",
            "v INTEGER NOT NULL DEFAULT (unixepoch('now')), g AS (v % 2) UNIQUE",
            "v INTEGER NOT NULL DEFAULT 5, g AS (v + 1), h AS (g + 1) UNIQUE",
            "v INTEGER NOT NULL DEFAULT 5, g AS (v + 1)); CREATE UNIQUE INDEX u ON t(g + 1",
        ], statements)
    func unforeseen(declaration: String, statement: String) throws {
        let device = try device(declaration)
        let error = #expect(throws: SQLiteError.self) { try device.shell(statement) }
        #expect(error?.message.contains("give a value to the column \"v\"") == true)
        #expect(try device.rows("SELECT id, v FROM t") == [[1, 5], [2, 6]])
        // With a value, and where no index reads the column, all is as always.
        try device.shell(statement.replacing("NULL", with: "5"))
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    @Test(
        "by an expression that compares as the column's type and collation have it are deleted for others"
    )
    func affinity() throws {
        for over in ["(v > '4'), l) WHERE (v = '5'", "(v = '5'), l"] {
            let device = try device("v INTEGER); CREATE UNIQUE INDEX u ON t(\(over)")
            try device.shell(
                "INSERT OR REPLACE INTO t(id, m, l, v) SELECT id, 'new', 1, 5 FROM martlet_new_id")
            #expect(try device.rows("SELECT id FROM t WHERE id = 1").isEmpty)
            #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
        }
    }

    @Test(
        "by an expression are deleted for others, also after another program has renamed the column",
        arguments: [
            "v INTEGER); CREATE UNIQUE INDEX u ON t(ifnull(v, 0) || '.'",
            "v INTEGER); CREATE UNIQUE INDEX u ON t(l) WHERE (v IS NOT 6",
            "v INTEGER NOT NULL DEFAULT 5); CREATE UNIQUE INDEX u ON t(v + 1",
            "v INTEGER, g TEXT AS (v || '.') UNIQUE",
            "v INTEGER NOT NULL DEFAULT 5, g TEXT AS (v || '.') UNIQUE",
        ])
    func renamedColumnOfExpression(declaration: String) throws {
        let device = try device(declaration)
        try device.shell("ALTER TABLE t RENAME COLUMN v TO away")
        try device.shell(
            "INSERT OR REPLACE INTO t(id, m, l, away) SELECT id, 'new', 1, 5 FROM martlet_new_id")
        try device.shell("ALTER TABLE t RENAME COLUMN away TO v")
        #expect(try device.rows("SELECT id FROM t WHERE id = 1").isEmpty)
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    @Test("may be in a table with a default that no index reads and that is not the same twice")
    func unread() throws {
        let device = try device("v INTEGER, w INTEGER NOT NULL DEFAULT (random()), UNIQUE(l, v)")
        try device.shell(
            "INSERT OR REPLACE INTO t(id, m, l, v, w) SELECT id, 'new', 1, 5, NULL FROM martlet_new_id"
        )
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(1)])
    }

    @Test("by the date, which is the same all through a statement, are deleted for others")
    func date() throws {
        let device = try DeviceFixture(
            script: """
                CREATE TABLE t(id TEXT PRIMARY KEY, day TEXT NOT NULL DEFAULT CURRENT_DATE UNIQUE)
                """)
        // It may be midnight between the two.
        while true {
            try device.shell(
                "DELETE FROM t; INSERT INTO t(id) VALUES ('a'); INSERT OR REPLACE INTO t VALUES ('b', NULL)"
            )
            if try device.rows("SELECT count(*) FROM t") == [[1]] { break }
        }
        #expect(try device.gather().changeSets.flatMap(\.types).flatMap(\.create) == [.text("b")])
    }

    // MARK: - In a circle

    /// Tables in which the deletion of the record 1 of `p` comes back to the record 2 of it.
    static let circles = [
        """
        CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT UNIQUE, b INTEGER REFERENCES q ON DELETE SET NULL);
        CREATE TABLE q(id INTEGER PRIMARY KEY, p INTEGER REFERENCES p ON DELETE CASCADE);
        CREATE INDEX i ON p(b);
        """,
        """
        CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT UNIQUE, b INTEGER REFERENCES q ON DELETE SET DEFAULT);
        CREATE TABLE q(id INTEGER PRIMARY KEY, p TEXT REFERENCES p(u) ON DELETE CASCADE);
        CREATE INDEX i ON p(b);
        """,
        """
        CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT UNIQUE, b INTEGER REFERENCES q(p) ON UPDATE SET NULL);
        CREATE TABLE q(id INTEGER PRIMARY KEY, p INTEGER UNIQUE REFERENCES p ON DELETE SET NULL);
        CREATE INDEX i ON p(b);
        """,
    ]

    @Test(
        "with a deletion that comes back to the updated row are kept, and the update is refused",
        arguments: circles, [true, false])
    func circle(script: String, refersAlready: Bool) throws {
        let device = try DeviceFixture(script: script)
        try device.shell("INSERT INTO p(id, u) SELECT id, 'x' FROM martlet_new_id")
        let up = script.contains("REFERENCES p(u)") ? "u" : "id"
        try device.shell("INSERT INTO q SELECT martlet_new_id.id, p.\(up) FROM martlet_new_id, p")
        let back = script.contains("REFERENCES q(p)") ? "p" : "id"
        try device.shell(
            """
            INSERT INTO p SELECT martlet_new_id.id, 'z', \(refersAlready ? "q.\(back)" : "NULL") FROM martlet_new_id, q;
            INSERT INTO p SELECT id, 'y', NULL FROM martlet_new_id
            """)
        let rows = try device.rows("SELECT * FROM p ORDER BY u")
        #expect(rows.count == 3)
        let change = refersAlready ? "" : ", b = (SELECT \(back) FROM q)"
        let error = #expect(throws: SQLiteError.self) {
            try device.shell(
                "PRAGMA foreign_keys = ON; UPDATE OR REPLACE p SET u = 'x'\(change) WHERE u = 'z'")
        }
        #expect(error?.message.contains("would remove a row") == true)
        #expect(try device.rows("SELECT * FROM p ORDER BY u") == rows)
        #expect(try device.rows("PRAGMA integrity_check") == [["ok"]])
        // A row whose deletion does not come back goes.
        try device.shell("PRAGMA foreign_keys = ON; UPDATE OR REPLACE p SET u = 'y' WHERE u = 'z'")
        #expect(try device.rows("PRAGMA integrity_check") == [["ok"]])
        #expect(try device.rows("PRAGMA foreign_key_check").isEmpty)
        #expect(try device.rows("SELECT u FROM p ORDER BY u") == [["x"], ["y"]])
    }

    @Test("with deletions that go down a tree are found, however deep it is")
    func tree() throws {
        let device = try DeviceFixture(
            script: """
                CREATE TABLE p(id TEXT PRIMARY KEY, u TEXT UNIQUE, up TEXT REFERENCES p ON DELETE CASCADE,
                    friend TEXT REFERENCES p ON DELETE SET NULL) WITHOUT ROWID;
                CREATE INDEX i ON p(friend);
                """)
        try device.shell(
            """
            INSERT INTO p VALUES ('a', 'a', NULL, NULL), ('b', 'b', 'a', NULL), ('c', 'c', 'b', NULL),
                ('d', 'd', 'c', 'a'), ('x', 'x', NULL, 'c'), ('y', 'y', NULL, 'y')
            """)
        for out in ["a", "b", "c"] {
            #expect(throws: SQLiteError.self, "\(out)") {
                try device.shell(
                    "PRAGMA foreign_keys = ON; UPDATE OR REPLACE p SET u = '\(out)' WHERE id = 'x'")
            }
        }
        try device.shell("PRAGMA foreign_keys = ON; UPDATE OR REPLACE p SET u = 'd' WHERE id = 'x'")
        try device.shell("PRAGMA foreign_keys = ON; UPDATE OR REPLACE p SET u = 'b' WHERE id = 'y'")
        #expect(try device.rows("SELECT id FROM p ORDER BY id") == [["a"], ["x"], ["y"]])
        #expect(try device.rows("PRAGMA integrity_check") == [["ok"]])
        let sets = try device.gather().changeSets
        #expect(sets.flatMap(\.types).flatMap(\.create).count == 3, "\(sets)")
    }

    @Test("with deletions that take the updated row along are noted with it")
    func takenAlong() throws {
        let device = try DeviceFixture(
            script: """
                CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT UNIQUE, up INTEGER REFERENCES p ON DELETE CASCADE)
                """)
        try device.apply(
            [
                .entry(1, .created("p", 1, at: 1, ["u": "x"])),
                .entry(2, .created("p", 2, at: 2, ["u": "z", "up": 1])),
            ], reaching: 2)
        try device.shell("PRAGMA foreign_keys = ON; UPDATE OR REPLACE p SET u = 'x' WHERE id = 2")
        #expect(try device.rows("SELECT id FROM p").isEmpty)
        let deleted = try device.gather().changeSets.first?.types[0].delete
        #expect(Set(deleted ?? []) == [.integer(1), .integer(2)])
    }
}
