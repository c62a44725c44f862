import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import Testing

/// Statements, names and values that cannot be used: typed, with a remedy, and nothing is changed.
@Suite("Statements and values that are refused", .timeLimit(.minutes(5)))
struct StatementRefusalTests {
    private static let script = """
        CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT, size INTEGER, fee NUMERIC, ok BOOLEAN);
        INSERT INTO notes(body) VALUES ('kept');

        """
    private let notes = PlainTable("notes")

    private func refused(
        _ kind: StoreError.Kind, _ remedy: StoreError.Remedy,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (WriteContext) throws -> Void
    ) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let error = await refusal {
            try await pool.write { context throws in
                _ = try context.rows("UPDATE notes SET body = 'changed'")
                try body(context)
            }
        }
        #expect(error?.kind == kind, "\(error?.message ?? "none")", sourceLocation: sourceLocation)
        #expect(error?.remedy == remedy, sourceLocation: sourceLocation)
        #expect(error?.message.contains("secret") == false, sourceLocation: sourceLocation)
        #expect(
            try await pool.integer("SELECT count(*) FROM notes WHERE body = 'kept'") == 1,
            sourceLocation: sourceLocation)
        #expect(try await pool.integrity() == "ok", sourceLocation: sourceLocation)
    }

    @Test("a numeric of many digits, unless its column keeps all of them")
    func manyDigits() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE sums(id INTEGER PRIMARY KEY, exact NUMERIC TEXT, rough NUMERIC);")
        let sums = PlainTable("sums")
        let digits = "123456789012345678901234567890.10"
        try await pool.write { context in
            _ = try sums.insert(["exact": .text(digits)] as RecordValues, in: context)
        }
        #expect(
            try await pool.read { try $0.rows("SELECT exact FROM sums").first?["exact"] }
                == .text(digits))
        for (name, text) in [("rough", digits), ("exact", "secret")] {
            let error = await refusal {
                try await pool.write { context throws in
                    _ = try sums.insert([name: .text(text)] as RecordValues, in: context)
                }
            }
            #expect(error?.kind == .value)
        }
    }

    @Test("a table or a column that is not there")
    func unknownNames() async throws {
        let nothing = PlainTable("nothing")
        let notes = notes
        for sql in [
            "SELECT * FROM absent", "SELECT absent FROM notes", "SELECT \"absent\" FROM notes",
            "UPDATE notes SET absent = 1", "INSERT INTO notes(absent) VALUES (1)",
            "UPDATE notes SET body = 1 WHERE \"absent\" = 'secret'",
        ] {
            try await refused(.unknown, .correctTheProgram) { _ = try $0.rows(sql) }
        }
        try await refused(.unknown, .correctTheProgram) { _ = try nothing.all(in: $0) }
        try await refused(.unknown, .correctTheProgram) { _ = try nothing.description(in: $0) }
        try await refused(.unknown, .correctTheProgram) {
            try nothing.insert(["a": 1] as RecordValues, in: $0)
        }
        try await refused(.unknown, .correctTheProgram) {
            _ = try notes.all(where: Column<Int>("nothing") == 1, in: $0)
        }
        try await refused(.unknown, .correctTheProgram) {
            _ = try notes.all(orderBy: [Column<Int>("nothing").ascending], in: $0)
        }
        try await refused(.unknown, .correctTheProgram) {
            _ = try nothing.all(where: Column<Int>("a\0b") == 1, in: $0)
        }
        try await refused(.unknown, .correctTheProgram) {
            _ = try PlainTable("notes\0").all(in: $0)
        }
    }

    @Test("SQL that is wrong, empty, or more than one statement")
    func wrongStatements() async throws {
        for sql in [
            "", " ", "-- nothing", "SELEC 1", "SELECT", "SELECT 1; SELECT 2",
            "UPDATE notes SET body = 1; DROP TABLE notes", "SELECT 1\0", "SELECT '\0'",
            "SELECT 'open",
        ] {
            try await refused(.statement, .correctTheProgram) { _ = try $0.rows(sql) }
        }
    }

    @Test("one statement may be followed by spaces, comments and semicolons")
    func harmlessTails() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        for sql in ["SELECT 1;", "SELECT 1 ; \n", "SELECT 1; -- done", "SELECT 1 /* x */;"] {
            #expect(try await pool.integer(sql) == 1)
        }
    }

    @Test("too few or too many values")
    func valueCount() async throws {
        try await refused(.statement, .correctTheProgram) { _ = try $0.rows("SELECT ?") }
        try await refused(.statement, .correctTheProgram) {
            _ = try $0.rows("SELECT ?", ["secret", "secret"])
        }
        try await refused(.statement, .correctTheProgram) {
            _ = try $0.rows("SELECT 1", ["secret"])
        }
    }

    @Test("a value of another type than the column's, and a text with a NUL")
    func wrongValues() async throws {
        let notes = notes
        let wrong: [(String, SQLValue)] = [
            ("size", "secret"), ("size", 1.5), ("size", .blob([1])), ("body", 1),
            ("body", .blob([1])),
            ("fee", "secret"), ("fee", "nan"), ("fee", "0x1p3"), ("ok", 2), ("ok", "true"),
            ("body", "secret\0"), ("id", "secret"),
        ]
        for (column, value) in wrong {
            try await refused(.value, .correctTheValues) {
                try notes.insert(RecordValues(names: [column], values: [value]), in: $0)
            }
        }
        try await refused(.value, .correctTheValues) {
            try notes.update(["id": 1, "size": "secret"] as RecordValues, in: $0)
        }
        try await refused(.value, .correctTheValues) { _ = try notes.find("secret\0", in: $0) }
        try await refused(.value, .correctTheValues) { _ = try $0.rows("SELECT ?", ["secret\0"]) }
    }

    @Test("a NUL may stand in binary data")
    func binaryNUL() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE t(v)")
        try await pool.write { _ = try $0.rows("INSERT INTO t VALUES (?)", [.blob([0, 1, 0])]) }
        #expect(
            try await pool.read { try $0.rows("SELECT v FROM t") } == [["v": .blob([0, 1, 0])]])
    }

    struct Note: Codable, ReadableRecord {
        var id: Int
        var body: String
    }

    @Test("a null read into what is not optional, and text that is not UTF-8")
    func readingValues() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: """
                CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT);
                INSERT INTO notes VALUES (1, NULL), (2, CAST(x'ff41' AS TEXT));

                """)
        let notes = PlainTable("notes", of: Note.self)
        let rows = PlainTable("notes")
        for key in [1, 2] {
            let error = await refusal { try await pool.read { try notes.find(key, in: $0) } }
            #expect(error?.kind == .value)
            #expect(error?.message.contains("“body”") == true)
        }
        let errors = [
            await refusal { try await pool.read { try rows.all(in: $0) } },
            await refusal { try await pool.read { try $0.rows("SELECT body FROM notes") } },
            await refusal { try await pool.read { try rows.find(2, in: $0) } },
        ]
        #expect(errors.map(\.?.kind) == [.value, .value, .value])
        // As the message says, it can be read as binary data.
        let bytes = try await pool.read {
            try $0.rows("SELECT CAST(body AS BLOB) AS b FROM notes WHERE id = 2")
        }
        #expect(bytes == [["b": .blob([0xff, 0x41])]])
        #expect(try await pool.integrity() == "ok")
    }

    @Test("a value over SQLite's limit")
    func longValue() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let notes = notes
        let values: [SQLValue] = [
            .text(String(repeating: "x", count: 100_001)),
            .blob(Array(repeating: 1, count: 100_001)),
        ]
        for value in values {
            let error = await refusal {
                try await pool.write { context throws in
                    context.session.connection.longestValue = 100_000
                    _ = try context.rows("UPDATE notes SET body = ?", [value])
                }
            }
            #expect(error?.kind == .tooLarge)
            #expect(error?.remedy == .correctTheValues)
        }
        // The connection goes on.
        try await pool.write { context throws in
            try notes.insert(["body": "fits"] as RecordValues, in: context)
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 2)
    }
}
