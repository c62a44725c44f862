import Foundation
import MartletModel
import MartletStore
import Synchronization
import Testing

@Suite("Hooks", .timeLimit(.minutes(5)))
struct WriteHooksTests {
    private static let script = """
        CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT);
        CREATE TABLE seats(row INTEGER, seat TEXT, name TEXT, PRIMARY KEY (row, seat));
        CREATE TABLE log(line TEXT);

        """
    private let notes = PlainTable("notes")

    /// What hooks have heard, in order.
    final class Heard: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        func take() -> [String] {
            lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }
    }

    private static func text(_ write: RowWrite) -> String {
        let key =
            switch write.key {
            case .integer(let number)?: "\(number)"
            case .text(let text)?: text
            case nil: "-"
            }
        return "\(write.operation) \(write.table) \(key)"
    }

    private func listening(_ heard: Heard) -> WriteHooks {
        var hooks = WriteHooks()
        for name in ["1", "2"] {
            hooks.before([.insert, .update, .delete]) { write, _ in
                heard.add("before\(name) \(Self.text(write))")
            }
            hooks.after([.insert, .update, .delete]) { write, _ in
                heard.add("after\(name) \(Self.text(write))")
            }
        }
        return hooks
    }

    @Test("they run around each write, in the order they were added, and know the key")
    func orderOfHooks() async throws {
        let heard = Heard()
        let hooks = listening(heard)
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { $0.hooks = hooks }
        try await pool.write { context throws in
            try notes.insert(["body": "a"] as RecordValues, in: context)
            #expect(
                heard.take() == [
                    "before1 insert notes -", "before2 insert notes -", "after1 insert notes 1",
                    "after2 insert notes 1",
                ])
            try notes.update(["id": 1, "body": "b"] as RecordValues, in: context)
            #expect(
                heard.take() == [
                    "before1 update notes 1", "before2 update notes 1", "after1 update notes 1",
                    "after2 update notes 1",
                ])
            try notes.delete(1, in: context)
            #expect(heard.take().count == 4)
            // There was no row, so nothing was written.
            try notes.delete(1, in: context)
            try notes.update(["id": 1, "body": "b"] as RecordValues, in: context)
            #expect(
                heard.take() == [
                    "before1 delete notes 1", "before2 delete notes 1", "before1 update notes 1",
                    "before2 update notes 1",
                ])
            // An upsert is told as what it is.
            try notes.upsert(["id": 7, "body": "b"] as RecordValues, in: context)
            #expect(
                heard.take() == [
                    "before1 insert notes 7", "before2 insert notes 7", "after1 insert notes 7",
                    "after2 insert notes 7",
                ])
            try notes.upsert(["id": 7, "body": "c"] as RecordValues, in: context)
            #expect(
                heard.take() == [
                    "before1 update notes 7", "before2 update notes 7", "after1 update notes 7",
                    "after2 update notes 7",
                ])
            // SQL text passes by.
            _ = try context.rows("DELETE FROM notes")
            #expect(heard.take().isEmpty)
        }
    }

    @Test("they see values, and the columns of a key of several")
    func valuesInHooks() async throws {
        var hooks = WriteHooks()
        let seen = Heard()
        hooks.before([.insert, .update, .delete], of: "SEATS") { write, _ in
            seen.add(
                "\(write.operation) \(write.keyValues["seat"] ?? .null) \(write.values?.names ?? [])"
            )
        }
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { [hooks] in $0.hooks = hooks }
        let seats = PlainTable("seats")
        try await pool.write { context throws in
            let record: RecordValues = ["row": 1, "seat": "a", "name": "Ana"]
            try seats.insert(record, in: context)
            try seats.update(record, in: context)
            try seats.delete(record: record, in: context)
            try notes.insert(["body": "not watched"] as RecordValues, in: context)
        }
        #expect(
            seen.take() == [
                "insert text(\"a\") [\"row\", \"seat\", \"name\"]", "update text(\"a\") [\"name\"]",
                "delete text(\"a\") []",
            ])
    }

    struct Veto: Error, Equatable { let reason: String }

    @Test(
        "a hook that throws takes the whole save back, with its own error",
        arguments: [true, false])
    func veto(isBefore: Bool) async throws {
        var hooks = WriteHooks()
        let hook: WriteHooks.Hook = { write, _ in
            if write.values?["body"] == "bad" { throw Veto(reason: "bad") }
        }
        if isBefore {
            hooks.before([.insert, .update], of: "notes", hook)
        } else {
            hooks.after([.insert, .update], of: "notes", hook)
        }
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { [hooks] in $0.hooks = hooks }
        await #expect(throws: Veto(reason: "bad")) {
            try await pool.write { context throws in
                try notes.insert(["body": "good"] as RecordValues, in: context)
                try notes.insert(["body": "bad"] as RecordValues, in: context)
            }
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
        // Within a savepoint, only its part.
        try await pool.write { context throws in
            try notes.insert(["body": "good"] as RecordValues, in: context)
            #expect(throws: Veto.self) {
                try context.savepoint {
                    try notes.insert(["body": "fine"] as RecordValues, in: context)
                    try notes.update(["id": 1, "body": "bad"] as RecordValues, in: context)
                }
            }
        }
        #expect(try await pool.read { try notes.all(in: $0) } == [["id": 1, "body": "good"]])
    }

    @Test("what a hook writes belongs to the save, and is hooked itself")
    func writingHooks() async throws {
        struct Stop: Error {}
        let log = PlainTable("log")
        let heard = Heard()
        var hooks = WriteHooks()
        hooks.after([.insert, .delete], of: "notes") { write, context in
            try log.insert(["line": .text(Self.text(write))] as RecordValues, in: context)
        }
        hooks.before([.insert], of: "log") { write, _ in heard.add("log") }
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { [hooks] in $0.hooks = hooks }
        try await pool.write { try notes.insert(["body": "a"] as RecordValues, in: $0) }
        await #expect(throws: Stop.self) {
            try await pool.write { context throws in
                try notes.delete(1, in: context)
                throw Stop()
            }
        }
        #expect(try await pool.read { try log.all(in: $0) } == [["line": "insert notes 1"]])
        #expect(heard.take() == ["log", "log"])
    }

    @Test("a hook that sets itself off is stopped, and nothing stays")
    func endlessHook() async throws {
        var hooks = WriteHooks()
        let notes = notes
        hooks.before([.insert], of: "notes") { _, context in
            try notes.insert(["body": "again"] as RecordValues, in: context)
        }
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { [hooks] in $0.hooks = hooks }
        let error = await refusal {
            try await pool.write { try notes.insert(["body": "a"] as RecordValues, in: $0) }
        }
        #expect(error?.kind == .misuse)
        #expect(error?.remedy == .correctTheProgram)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
        // The depth is that of one chain; a save may write any number of rows.
        let other = try await folder.pool("other.sqlite", script: Self.script) {
            $0.hooks.after([.insert]) { _, _ in }
        }
        try await other.write { context in
            for _ in 0..<100 { try notes.insert(["body": "a"] as RecordValues, in: context) }
        }
        #expect(try await other.integer("SELECT count(*) FROM notes") == 100)
    }

    /// The hooks of the article “From Table to DataCenter”, which `articleHooks` compares.
    private static func hooksOfTheArticle() -> WriteHooks {
        // article
        var hooks = WriteHooks()
        hooks.before([.insert, .update], of: "players") { write, context in
            switch try write.written("name", as: String.self) {
            case .null, .value(""): throw StoreError(.vetoed, "A player needs a name; type one.")
            case .absent, .value: break
            }
        }
        hooks.after([.delete], of: "teams") { write, context in
            try context.rows("UPDATE players SET shirt = NULL WHERE team_id IS NULL")
        }
        // end
        return hooks
    }

    @Test("the article's hooks refuse what they say, and no update of another column")
    func articleHooks() async throws {
        let own = try String(contentsOfFile: #filePath, encoding: .utf8)
        let file = URL(fileURLWithPath: #filePath)
            .appendingPathComponent(
                "../../../../Sources/MartletStore/MartletStore.docc/FromTableToDataCenter.md"
            ).standardized
        let article = try String(contentsOf: file, encoding: .utf8)
        func block(_ text: String, from first: String, to last: String) -> [String] {
            let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            return Array(lines.drop { $0 != first }.dropFirst().prefix { $0 != last })
        }
        let code = block(own, from: "// article", to: "// end")
        #expect(code.count == 10)
        #expect(
            block(article, from: "var hooks = WriteHooks()", to: "var options = DatabaseOptions()")
                == Array(code.dropFirst()))

        let script = """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE players(
                id INTEGER PRIMARY KEY, name TEXT, shirt INTEGER,
                team_id INTEGER REFERENCES teams ON DELETE SET NULL);

            """
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: script) { $0.hooks = Self.hooksOfTheArticle() }
        let players = PlainTable("players")
        let teams = PlainTable("teams")
        try await pool.write { context throws in
            try teams.insert(["id": 1, "name": "Owls"] as RecordValues, in: context)
            try players.insert(
                ["id": 1, "name": "Ada", "shirt": 3, "team_id": 1] as RecordValues, in: context)
            // A form makes such a partial update.
            #expect(try players.update(["id": 1, "shirt": 9] as RecordValues, in: context))
        }
        for name: SQLValue in [.null, ""] {
            let error = await refusal {
                try await pool.write {
                    try players.update(["id": 1, "name": name] as RecordValues, in: $0)
                }
            }
            #expect(error?.kind == .vetoed)
            #expect(error?.message == "A player needs a name; type one.")
        }
        try await pool.write { try teams.delete(1, in: $0) }
        #expect(try await pool.integer("SELECT count(*) FROM players WHERE shirt IS NULL") == 1)
    }

    @Test("an error that a hook meets says that a hook met it")
    func errorsInHooks() async throws {
        var hooks = WriteHooks()
        hooks.before([.update], of: "notes") { write, _ in
            _ = try write.values?.value("body", as: String.self)
        }
        let given = hooks
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { $0.hooks = given }
        let error = await refusal {
            try await pool.write { context in
                try notes.insert(["id": 1, "body": "a"] as RecordValues, in: context)
                try notes.update(["id": 1, "body": .null] as RecordValues, in: context)
            }
        }
        #expect(error?.kind == .value)
        #expect(error?.message.hasPrefix("A write hook of “notes” failed. ") == true)
    }
}
