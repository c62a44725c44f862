import Foundation
import MartletModel
import MartletStore
import Synchronization
import Testing

/// Counts what hooks are told.
private final class CountedHooks: Sendable {
    private let counted = Mutex(0)

    var count: Int { counted.withLock { $0 } }

    func note() { counted.withLock { $0 += 1 } }
}

@Suite("Writing through tables", .timeLimit(.minutes(5)))
struct TableWritingTests {
    @Test("a misspelt property of a table's own element is refused, in every kind of write")
    func misspelt() async throws {
        struct Bridge: Codable, ReadableRecord, Sendable {
            var id: Int64?
            var bulit: Int?
        }
        struct Form: Codable, Record {
            var id: Int64
            var built: Int?
            var comment = "of the screen"
        }
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE bridges(id INTEGER PRIMARY KEY, built INTEGER)")
        let bridges = PlainTable("bridges", of: Bridge.self)
        let bridge = Bridge(id: 1, bulit: 1_931)
        let writes: [@Sendable (WriteContext) throws -> Void] = [
            { try bridges.insert(bridge, in: $0) }, { try bridges.update(bridge, in: $0) },
            { try bridges.upsert(bridge, in: $0) },
            { try bridges.insert(contentsOf: [bridge], in: $0) },
            { try PlainTable("bridges").insert(["bulit": 1_931] as RecordValues, in: $0) },
        ]
        for write in writes {
            let error = await refusal { try await pool.write(write) }
            #expect(error?.kind == .unknown)
            #expect(error?.message.contains("“bulit”") == true)
        }
        #expect(try await pool.integer("SELECT count(*) FROM bridges") == 0)
        // A record of another type is asked only for the table's names; so is one that lists the
        // others.
        let lenient = PlainTable("bridges", of: Bridge.self, storedElsewhere: ["bulit"])
        try await pool.write { context in
            try lenient.insert(bridge, in: context)
            try bridges.update(Form(id: 1, built: 1_931), in: context)
        }
        #expect(try await pool.integer("SELECT built FROM bridges") == 1_931)
    }

    @Test(
        "a record that SQLite passes over has nobody else's key, an update says so, and no hook hears of it"
    )
    func passedOverInsert() async throws {
        struct Code: Codable, ReadableRecord, Sendable {
            var id: Int64?
            var code: String
        }
        let told = CountedHooks()
        let folder = try StoreFolder()
        let script = """
            CREATE TABLE codes(id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT IGNORE)
            """
        let plain = try await folder.pool(script: script)
        let hooked = try await folder.pool("hooked.sqlite", script: script) {
            $0.hooks.after([.insert, .update]) { _, _ in told.note() }
        }
        let codes = PlainTable("codes", of: Code.self)
        for pool in [plain, hooked] {
            try await pool.write { context throws in
                #expect(try codes.insert(Code(code: "a"), in: context) == .integer(1))
                #expect(try codes.insert(Code(code: "b"), in: context) == .integer(2))
                #expect(try codes.insert(Code(code: "a"), in: context) == .integer(0))
                let values: RecordValues = ["code": "b"]
                #expect(try codes.insert(values, in: context) == .integer(0))
                #expect(try codes.insert(Code(id: 7, code: "a"), in: context) == .integer(0))
                #expect(try !codes.update(Code(id: 1, code: "b"), in: context))
                #expect(try codes.upsert(Code(id: 1, code: "b"), in: context) == .integer(0))
                #expect(try codes.upsert(Code(id: 1, code: "a"), in: context) == .integer(1))
                #expect(try !codes.update(Code(id: 9, code: "b"), in: context))
                #expect(try codes.count(in: context) == 2)
                #expect(try codes.find(1, in: context)?.code == "a")
            }
        }
        // The two that were inserted, and the one that was written as it was.
        #expect(told.count == 3)
    }

    @Test("one and many records are inserted, found, changed and deleted by key")
    func operations() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT, size INTEGER DEFAULT 5)")
        let notes = PlainTable("notes")
        try await pool.write { context throws in
            #expect(try notes.insert(["body": "a"] as RecordValues, in: context) == .integer(1))
            let more: [RecordValues] = [["body": "b"], ["id": 10, "body": "c"], [:]]
            #expect(
                try notes.insert(contentsOf: more, in: context)
                    == [.integer(2), .integer(10), .integer(11)])
            #expect(try notes.exists(10, in: context))
            #expect(try !notes.exists(3, in: context))
            #expect(try notes.find(10, in: context) == ["id": 10, "body": "c", "size": 5])
            #expect(try notes.find(keys: [11, 3, 1], in: context).map { $0["id"] } == [11, 1])
            #expect(try notes.count(in: context) == 4)
            #expect(try notes.latest(in: context)?["id"] == 11)

            #expect(try notes.update(["id": 1, "size": 6] as RecordValues, in: context))
            #expect(try notes.find(1, in: context) == ["id": 1, "body": "a", "size": 6])
            #expect(try !notes.update(["id": 99, "size": 6] as RecordValues, in: context))
            #expect(try notes.update(["id": 1] as RecordValues, in: context))
            let changed: [RecordValues] = [["id": 2, "size": 7], ["id": 98, "size": 7]]
            #expect(try notes.update(contentsOf: changed, in: context) == 1)

            #expect(
                try notes.upsert(["id": 2, "body": "B"] as RecordValues, in: context) == .integer(2)
            )
            #expect(try notes.find(2, in: context) == ["id": 2, "body": "B", "size": 7])
            #expect(
                try notes.upsert(["id": 20, "body": "n"] as RecordValues, in: context)
                    == .integer(20))
            #expect(try notes.upsert(["body": "m"] as RecordValues, in: context) == .integer(21))

            #expect(try notes.delete(20, in: context))
            #expect(try !notes.delete(20, in: context))
            #expect(try notes.delete(keys: [21, 20, 11], in: context) == 2)
            #expect(try notes.delete(record: ["id": 10] as RecordValues, in: context))
            #expect(try notes.all(in: context).map { $0["id"] } == [1, 2])
        }
    }

    @Test("a key of several columns")
    func compositeKey() async throws {
        for suffix in ["", " WITHOUT ROWID"] {
            let folder = try StoreFolder()
            let pool = try await folder.pool(
                script:
                    "CREATE TABLE seats(row INTEGER, seat TEXT, name TEXT, PRIMARY KEY (seat, row))"
                    + suffix)
            let seats = PlainTable("seats")
            try await pool.write { context throws in
                let first: RecordValues = ["row": 1, "seat": "a", "name": "Ana"]
                let key = try seats.insert(first, in: context)
                #expect(key == .integer(suffix.isEmpty ? 1 : 0))
                try seats.insert(
                    ["row": 1, "seat": "b", "name": "Bo"] as RecordValues, in: context)
                #expect(try seats.description(in: context).key == ["seat", "row"])
                #expect(
                    try seats.update(
                        ["row": 1, "seat": "a", "name": "Cy"] as RecordValues, in: context))
                #expect(
                    try seats.upsert(
                        ["row": 1, "seat": "a", "name": "Di"] as RecordValues, in: context)
                        == key)
                let names = try seats.all(in: context).map { $0["name"] ?? .null }
                #expect(Set(names) == ["Bo", "Di"])
                #expect(
                    try seats.delete(record: ["row": 1, "seat": "b"] as RecordValues, in: context))
                #expect(try seats.count(in: context) == 1)
            }
            let errors = [
                await refusal { try await pool.read { try seats.find("a", in: $0) } },
                await refusal { try await pool.write { try seats.delete("a", in: $0) } },
            ]
            #expect(errors.map(\.?.kind) == [.misuse, .misuse])
            let incomplete = await refusal {
                try await pool.write {
                    try seats.update(["row": 1, "name": "x"] as RecordValues, in: $0)
                }
            }
            #expect(incomplete?.kind == .value)
        }
    }

    @Test("a table without a key is found by rowid, and its rows are written by conditions only")
    func noKey() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE log(line TEXT)")
        let log = PlainTable("log")
        try await pool.write { context throws in
            #expect(try log.insert(["line": "a"] as RecordValues, in: context) == .integer(1))
            #expect(try log.insert(["line": "b"] as RecordValues, in: context) == .integer(2))
            #expect(try log.find(2, in: context) == ["line": "b"])
            #expect(try log.latest(in: context) == ["line": "b"])
            #expect(try log.delete(1, in: context))
        }
        let error = await refusal {
            try await pool.write { try log.update(["line": "c"] as RecordValues, in: $0) }
        }
        #expect(error?.kind == .misuse)
    }

    @Test(
        "keys that SQLite or the table makes, and those that nobody makes",
        arguments: [
            ("id INTEGER PRIMARY KEY", true), ("id INTEGER PRIMARY KEY AUTOINCREMENT", true),
            ("id TEXT PRIMARY KEY", true), ("id UUID PRIMARY KEY", true),
            ("id TEXT PRIMARY KEY DEFAULT (hex(randomblob(8)))", true),
            ("id INT PRIMARY KEY DEFAULT 7", true), ("id INT PRIMARY KEY", false),
            ("id INTEGER PRIMARY KEY DESC", false), ("id BLOB PRIMARY KEY", false),
            ("id REAL PRIMARY KEY", false),
        ])
    func madeKeys(_ column: String, isMade: Bool) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE t(\(column), body TEXT)")
        let table = PlainTable("t")
        do {
            let key = try await pool.write {
                try table.insert(["id": .null, "body": "a"] as RecordValues, in: $0)
            }
            #expect(isMade)
            #expect(try await pool.read { try table.find(key, in: $0)?["body"] } == "a")
        } catch let error as StoreError {
            #expect(!isMade)
            #expect(error.kind == .value)
            #expect(error.message.contains("“id”"))
        }
    }

    @Test("WITHOUT ROWID keys of one column")
    func withoutRowID() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT) WITHOUT ROWID;\n"
                + "CREATE TABLE u(id TEXT PRIMARY KEY DEFAULT (hex(randomblob(8))), body TEXT) WITHOUT ROWID"
        )
        let error = await refusal {
            try await pool.write {
                try PlainTable("t").insert(["body": "a"] as RecordValues, in: $0)
            }
        }
        #expect(error?.kind == .value)
        try await pool.write { context throws in
            let key = try PlainTable("t").insert(
                ["id": 5, "body": "a"] as RecordValues, in: context)
            #expect(key == .integer(5))
            let made = try PlainTable("u").insert(["body": "b"] as RecordValues, in: context)
            #expect(try PlainTable("u").find(made, in: context)?["body"] == "b")
        }
    }

    @Test("generated columns are read and never written")
    func generatedColumns() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER,
                    double INTEGER AS (a * 2), kept INTEGER AS (a + 1) STORED)
                """)
        let table = PlainTable("t")
        try await pool.write { context throws in
            try table.insert(["a": 1] as RecordValues, in: context)
            var row = try #require(try table.find(1, in: context))
            #expect(row == ["id": 1, "a": 1, "double": 2, "kept": 2])
            row["a"] = 5
            #expect(try table.update(row, in: context))
            #expect(try table.find(1, in: context)?["double"] == 10)
        }
    }

    @Test("names with quotes, spaces, other scripts, and reserved words")
    func namesThatNeedQuotes() async throws {
        for (table, column) in [
            ("select", "from"), ("a \"b\"", "c \"d\""), ("表", "列"), ("with space", "1st"),
            ("semi;colon", "what?"), ("[brackets]", "`ticks`"), ("rowid", "rowid_"),
        ] {
            let folder = try StoreFolder()
            let pool = try await folder.pool()
            let quoted = [table, column].map { "\"\($0.replacing("\"", with: "\"\""))\"" }
            try await pool.write { context throws in
                _ = try context.rows(
                    "CREATE TABLE \(quoted[0])(\"key\" INTEGER PRIMARY KEY, \(quoted[1]) TEXT)")
                let plain = PlainTable(table)
                try plain.insert(RecordValues(names: [column], values: ["a"]), in: context)
                try plain.update(
                    RecordValues(names: ["key", column], values: [1, "b"]), in: context)
                #expect(try plain.find(1, in: context)?[column] == "b")
                #expect(try plain.all(where: Column<String>(column) == "b", in: context).count == 1)
                #expect(try plain.delete(1, in: context))
            }
        }
    }

    @Test("a view is read; writing it needs its own triggers, and it has no keys")
    func views() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: """
                CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);
                INSERT INTO t(a) VALUES ('x');
                CREATE VIEW v AS SELECT a FROM t;

                """)
        let view = PlainTable("v")
        #expect(try await pool.read { try view.all(in: $0) } == [["a": "x"]])
        #expect(try await pool.read { try view.count(in: $0) } == 1)
        let errors = [
            await refusal { try await pool.read { try view.find(1, in: $0) } },
            await refusal { try await pool.write { try view.delete(1, in: $0) } },
            await refusal {
                try await pool.write { try view.insert(["a": "y"] as RecordValues, in: $0) }
            },
        ]
        #expect(errors.map(\.?.remedy) == Array(repeating: .correctTheProgram, count: 3))
    }

    @Test("a record that has nothing for the table is refused")
    func externalRecord() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT)")
        let error = await refusal {
            try await pool.write {
                try PlainTable("t").insert(["nmae": "Ana"] as RecordValues, in: $0)
            }
        }
        #expect(error?.kind == .unknown)
        #expect(error?.message.contains("nmae") == true)
        #expect(try await pool.integer("SELECT count(*) FROM t") == 0)
    }
}
