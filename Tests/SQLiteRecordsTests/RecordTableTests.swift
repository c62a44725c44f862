import MartletModel
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Record table")
struct RecordTableTests {
    private let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.execute("PRAGMA foreign_keys = ON")
    }

    private func table(_ sql: String, _ name: String = "t") throws -> RecordTable {
        try connection.execute(sql)
        let type = try #require(try SchemaReader.read(connection)[name])
        return RecordTable(type: type, connection: connection)
    }

    private static let allKinds = """
        CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, r REAL, x TEXT, b BLOB, f BOOLEAN,
          n NUMERIC, a DATE, u, g AS (i + 1))
        """

    @Test("stores and reads back every kind of value")
    func everyKind() throws {
        let table = try table(Self.allKinds)
        let values: Attributes = [
            "i": .integer(.min), "r": .real(-0.1), "x": .text("é\u{1F600}'\"; --"),
            "b": .text("AP8Q"), "f": .boolean(true), "n": .text("-12.5"),
            "a": .text("2026-11-21"), "u": .real(1.5),
        ]
        try table.insert(.integer(7), values, absentMeansNull: true)
        let stored = try #require(try table.read(.integer(7)))
        #expect(stored.names == ["i", "r", "x", "b", "f", "n", "a", "u", "g"])
        #expect(Array(stored.values.dropLast()) == values.values)
        #expect(
            try connection.text(
                """
                SELECT group_concat(kind, ' ') FROM (SELECT typeof(i) AS kind FROM t UNION ALL \
                SELECT typeof(r) FROM t UNION ALL SELECT typeof(x) FROM t UNION ALL \
                SELECT typeof(b) || hex(b) FROM t UNION ALL SELECT typeof(f) FROM t UNION ALL \
                SELECT typeof(n) FROM t UNION ALL SELECT typeof(a) FROM t)
                """) == "integer real text blob00FF10 integer real text")
    }

    @Test("the name of a column that is gone is no text")
    func renamedColumn() throws {
        let table = try table("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT, y TEXT)")
        try table.insert(.integer(1), ["x": .text("a"), "y": .text("b")], absentMeansNull: true)
        try connection.execute("ALTER TABLE t RENAME COLUMN x TO z")
        let reads: [() throws -> Void] = [
            { _ = try table.read(.integer(1)) }, { _ = try table.read(.integer(1), ["x"]) },
            { try table.visit(where: nil) { _, _ in } },
            { try table.visit(where: ("x", .text("x"))) { _, _ in } },
            { try table.forEach { _, _ in } },
            {
                var hasher = RowHasher(type: table.type)
                _ = try connection.execute(
                    "CREATE TABLE IF NOT EXISTS martlet_records (type, id, revision)")
                _ = try hasher.whole(on: connection, number: 1)
            },
        ]
        for read in reads { #expect(throws: SQLiteError.self) { try read() } }
        try connection.execute("ALTER TABLE t RENAME COLUMN z TO x; ALTER TABLE t RENAME id TO key")
        for read in [
            reads + [{ _ = try table.exists(.integer(1)) }, { _ = try table.delete(.integer(1)) }]
        ].joined() {
            #expect(throws: SQLiteError.self) { try read() }
        }
        #expect(try connection.integer("SELECT count(*) FROM t") == 1)
    }

    @Test("an integer column keeps 64 bits and empty text and bytes stay what they are")
    func edges() throws {
        let table = try table(Self.allKinds)
        let values: Attributes = [
            "i": .integer(.max), "r": .real(.greatestFiniteMagnitude), "x": .text(""),
            "b": .text(""), "f": .boolean(false), "n": .text("9223372036854775807"),
            "a": .integer(3), "u": .text(""), "g": .null,
        ]
        try table.insert(.integer(.min), values, absentMeansNull: false)
        let stored = try #require(try table.read(.integer(.min)))
        #expect(Array(stored.values.dropLast()) == Array(values.values.dropLast()))
        try table.insert(.integer(1), Attributes(), absentMeansNull: true)
        #expect(try table.read(.integer(1))?.values.allSatisfy { $0 == .null } == true)
    }

    @Test("an absent attribute becomes NULL or the default, as asked")
    func absentAttribute() throws {
        let table = try table(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT DEFAULT 'd', b INTEGER DEFAULT 5)")
        let given: Attributes = ["b": .integer(1)]
        let byDefault = try table.insertReturning(.integer(1), given, absentMeansNull: false)
        #expect(byDefault == ["a": .text("d"), "b": .integer(1)])
        let byNull = try table.insertReturning(.integer(2), given, absentMeansNull: true)
        #expect(byNull == ["a": .null, "b": .integer(1)])
        let nothing = try table.insertReturning(
            .integer(3), Attributes(), absentMeansNull: false)
        #expect(nothing == ["a": .text("d"), "b": .integer(5)])
        #expect(try table.read(.integer(2)) == byNull)
    }

    @Test("returns what the database stored: affinity, generated columns, a REAL that looks whole")
    func returning() throws {
        let table = try table(Self.allKinds)
        let stored = try table.insertReturning(
            .integer(1),
            ["r": .integer(3), "n": .text("7.50"), "i": .integer(4), "f": .null],
            absentMeansNull: false)
        #expect(stored["r"] == .real(3))
        #expect(stored["n"] == .text("7.5"))
        #expect(stored["g"] == .integer(5))
        #expect(try table.read(.integer(1)) == stored)
        let changed = try table.updateReturning(
            .integer(1), ["n": .text("100"), "r": .integer(2), "i": .integer(9)])
        #expect(
            changed == ["n": .text("100"), "r": .real(2), "i": .integer(9)])
        #expect(try table.read(.integer(1))?["g"] == .integer(10))
    }

    @Test("returns what the table's own triggers made of a record, and refuses one they keep out")
    func triggersOfRecordTable() throws {
        let table = try table(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
            CREATE TRIGGER made AFTER INSERT ON t BEGIN UPDATE t SET b = 'made'; END;
            CREATE TRIGGER changed AFTER UPDATE OF a ON t BEGIN
              UPDATE t SET b = 'changed', a = upper(a); END;
            CREATE TRIGGER kept BEFORE INSERT ON t WHEN NEW.a = 'no' BEGIN
              SELECT RAISE(IGNORE); END;
            """)
        #expect(
            try table.insertReturning(
                .integer(1), ["a": .text("x")], absentMeansNull: true)
                == ["a": .text("x"), "b": .text("made")])
        #expect(
            try table.updateReturning(.integer(1), ["a": .text("y")])
                == ["a": .text("Y")])
        #expect(try table.read(.integer(1), ["b"]) == ["b": .text("changed")])
        #expect(throws: SQLiteError.self) {
            try table.insertReturning(
                .integer(2), ["a": .text("no")], absentMeansNull: true)
        }
    }

    @Test("updates only what is given and tells whether the record exists")
    func updates() throws {
        let table = try table("CREATE TABLE t (id TEXT PRIMARY KEY, a, b, g AS (a || b))")
        try table.insert(
            .text("k"), ["a": .text("1"), "b": .text("2")], absentMeansNull: false)
        #expect(try table.update(.text("k"), ["b": .text("3")]))
        #expect(try !table.update(.text("gone"), ["b": .text("3")]))
        #expect(try table.update(.text("k"), Attributes()))
        #expect(try !table.update(.text("gone"), Attributes()))
        #expect(try table.updateReturning(.text("gone"), ["b": .null]) == nil)
        #expect(try table.updateReturning(.text("gone"), Attributes()) == nil)
        #expect(try table.updateReturning(.text("k"), Attributes()) == Attributes())
        // A generated attribute is passed over.
        #expect(try table.update(.text("k"), ["g": .text("x")]))
        #expect(
            try table.updateReturning(.text("k"), ["g": .null, "a": .text("9")])
                == ["g": .text("93"), "a": .text("9")])
        #expect(
            try table.read(.text("k"))
                == ["a": .text("9"), "b": .text("3"), "g": .text("93")])
        #expect(try table.exists(.text("k")) && !table.exists(.text("K")))
        #expect(try table.delete(.text("k")) && !table.delete(.text("k")))
        #expect(try table.read(.text("k")) == nil)
    }

    @Test("changes a record's key, and finds the records that refer to one")
    func keysAndReferences() throws {
        let table = try table(
            """
            CREATE TABLE t (id INTEGER PRIMARY KEY,
              parent INTEGER REFERENCES t DEFERRABLE INITIALLY DEFERRED)
            """)
        let reference = try #require(table.type.references.first)
        try connection.begin()
        try table.insert(.integer(-10), Attributes(), absentMeansNull: false)
        for id in [3, 1, 2] as [Int64] {
            try table.insert(
                .integer(id), ["parent": .integer(-10)], absentMeansNull: false)
        }
        #expect(
            try table.ids(where: reference, holds: .integer(-10))
                == [1, 2, 3].map(RecordID.integer)
        )
        #expect(try table.changeKey(from: .integer(-10), to: .integer(10)))
        #expect(try !table.changeKey(from: .integer(-10), to: .integer(11)))
        #expect(connection.hasDeferredForeignKeyViolation)
        for id in try table.ids(where: reference, holds: .integer(-10)) {
            #expect(try table.update(id, ["parent": .integer(10)]))
        }
        #expect(!connection.hasDeferredForeignKeyViolation)
        try connection.commit()
        var seen: [RecordID] = []
        try table.forEach { id, attributes in
            seen.append(id)
            #expect(attributes["parent"] == (id == .integer(10) ? .null : .integer(10)))
        }
        #expect(seen == [1, 2, 3, 10].map(RecordID.integer))
    }

    @Test("works with names that need quoting")
    func oddNames() throws {
        let odd = #"a "b'; DROP TABLE x; -- ü"#
        let table = try table(
            """
            CREATE TABLE \(SQLName.quoted(odd)) (\(SQLName.quoted("k" + odd)) INTEGER PRIMARY KEY,
              \(SQLName.quoted(odd)) TEXT, "select" INTEGER REFERENCES \(SQLName.quoted(odd)))
            """, odd)
        let values: Attributes = [odd: .text("v"), "select": .integer(1)]
        #expect(
            try table.insertReturning(.integer(1), values, absentMeansNull: true) == values)
        #expect(try table.updateReturning(.integer(1), values) == values)
        #expect(
            try table.ids(where: table.type.references[0], holds: .integer(1)) == [.integer(1)])
        try table.forEach { _, attributes in #expect(attributes == values) }
        #expect(try table.changeKey(from: .integer(5), to: .integer(2)) == false)
    }

    @Test("reads a table of nothing but a key")
    func onlyKey() throws {
        let table = try table("CREATE TABLE t (id TEXT PRIMARY KEY)")
        #expect(
            try table.insertReturning(.text("a"), Attributes(), absentMeansNull: true)
                == Attributes())
        #expect(try table.read(.text("a")) == Attributes())
        #expect(try table.read(.text("b")) == nil)
        try connection.execute("INSERT INTO t VALUES (NULL)")
        var count = 0
        try table.forEach { _, _ in count += 1 }
        #expect(count == 1)
    }

    @Test("refuses an attribute the type does not have")
    func unknownAttribute() throws {
        let table = try table("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        for absentMeansNull in [true, false] {
            let error = #expect(throws: SQLiteError.self) {
                try table.insert(
                    .integer(1), ["a\" = 1; --": .null],
                    absentMeansNull: absentMeansNull)
            }
            #expect(error?.isMismatch == true)
        }
        #expect(throws: SQLiteError.self) {
            try table.update(.integer(1), ["z": .null])
        }
    }

    @Test("reads on rightly after a constraint refused a row")
    func afterRefusal() throws {
        let table = try table("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL UNIQUE)")
        let one: Attributes = ["a": .text("1")]
        try table.insert(.integer(1), one, absentMeansNull: true)
        let unique = #expect(throws: SQLiteError.self) {
            try table.insert(.integer(2), one, absentMeansNull: true)
        }
        #expect(unique?.isUniqueViolation == true)
        let null = #expect(throws: SQLiteError.self) {
            try table.insertReturning(.integer(2), ["a": .null], absentMeansNull: true)
        }
        #expect(null?.isConstraint == true)
        try table.insert(.integer(2), ["a": .text("2")], absentMeansNull: true)
        #expect(try table.read(.integer(2)) == ["a": .text("2")])
    }

    @Test("keeps working when writers send more shapes than are kept")
    func manyShapes() throws {
        let columns = (0..<9).map { "c\($0)" }
        let table = try table(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, \(columns.joined(separator: ", ")))")
        for mask in 0..<512 {
            let names = columns.enumerated().filter { mask >> $0.offset & 1 == 1 }.map(\.element)
            let given = Attributes(
                names: names, values: names.indices.map { .integer(Int64($0 + mask)) })
            try table.insert(.integer(Int64(mask)), given, absentMeansNull: mask.isMultiple(of: 2))
            let stored = try #require(try table.read(.integer(Int64(mask))))
            for name in columns { #expect(stored[name] == given[name] ?? .null) }
        }
    }
}
