import Foundation
import SQLiteKit
import Synchronization
import Testing

@testable import MartletCommand

/// Command lines on files and folders that are not as a command expects them.
@Suite("Commands on odd files")
final class OddFileTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-odd-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try write(
            "schema.sql",
            """
            CREATE TABLE players(id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT);
            """)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func path(_ name: String) -> String { folder.path + "/" + name }

    private func write(_ name: String, _ text: String) throws {
        let url = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    private func run(_ words: String...) async -> (code: ExitCode, out: String, err: String) {
        let (out, err) = (Written(), Written())
        let console = Console(isInteractive: false, out: out.add, err: err.add)
        let code = await MartletCommand.run(words, console: console)
        return (code, out.text, err.text)
    }

    private final class Written: Sendable {
        private let held = Mutex("")

        var text: String { held.withLock(\.self) }

        func add(_ text: String) { held.withLock { $0 += text } }
    }

    private func make(_ name: String) async {
        #expect(await run("init", path(name), "--schema", path("schema.sql")).code == .done)
    }

    /// Another program on a device's file, which no trigger sees.
    private func tamper(_ name: String, _ sql: String) throws {
        try Connection(path: path(name), mode: .readWrite).execute(
            "UPDATE martlet_control SET capture = 0; \(sql);"
                + " UPDATE martlet_control SET capture = 1")
    }

    @Test(
        "an export removes no folder, and writes nothing if one is in its way",
        arguments: ["", ".partial"])
    func folderInTheWay(ending: String) async throws {
        await make("a.sqlite")
        try write("keep/teams.csv\(ending)/precious.txt", "x")
        let refused = await run("export", path("a.sqlite"), path("keep"))
        #expect(refused.code == .failed)
        #expect(refused.err.contains("\(path("keep/teams.csv" + ending)) is a folder"))
        #expect(try text("keep/teams.csv\(ending)/precious.txt") == "x")
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("keep")).count == 1)
        // A file is replaced.
        try write("out/teams.csv", "old")
        #expect(await run("export", path("a.sqlite"), path("out")).code == .done)
        #expect(try text("out/teams.csv") == "id,name\n")
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("out")).count == 3)
    }

    @Test(
        "an export never replaces the device's file, a link or a pipe",
        arguments: ["device", "link to device", "link", "pipe"], [".csv", ".csv.partial"])
    func precious(kind: String, ending: String) async throws {
        let target = path("out/teams" + ending)
        try write("out/here", "x")
        var device = path("a.sqlite")
        switch kind {
        case "device":
            device = target
            await make("out/teams" + ending)
        case "link to device":
            await make("a.sqlite")
            try FileManager.default.createSymbolicLink(
                atPath: target, withDestinationPath: device)
        case "link":
            await make("a.sqlite")
            try FileManager.default.createSymbolicLink(
                atPath: target, withDestinationPath: path("out/here"))
        default:
            await make("a.sqlite")
            let made = unsafe mkfifo(target, 0o600)
            try #require(made == 0)
        }
        let refused = await run("export", device, path("out"))
        #expect(refused.code == .failed)
        let word =
            kind.contains("device")
            ? "the device's own file" : kind == "link" ? "a link" : "no ordinary file"
        #expect(refused.err.contains("\(target) is \(word)"))
        #expect(try text("out/here") == "x")
        #expect(await run("status", device).code == .done)
    }

    @Test(
        "a place in which nothing can be written is named",
        arguments: ["schema.sql", "schema.sql/out"])
    func noFolder(name: String) async throws {
        await make("a.sqlite")
        let refused = await run("export", path("a.sqlite"), path(name))
        #expect(refused.code == .failed)
        #expect(refused.err.contains("no folder \(path(name))"))
        let made = await run("init", path("\(name)/x.db"), "--schema", path("schema.sql"))
        #expect(made.code == .failed)
        #expect(
            made.err.contains("no folder \(path(name))") && made.err.contains("Make the folder"))
    }

    @Test(
        "an empty name is none", arguments: [["init", ""], ["export", "a", ""], ["status", ""]])
    func emptyName(words: [String]) async {
        let console = Written()
        let code = await MartletCommand.run(
            words, console: Console(isInteractive: false, out: { _ in }, err: console.add))
        #expect(code == .usage)
        #expect(console.text.contains("is empty"))
    }

    @Test("an export goes on past texts that are not UTF-8, and names them")
    func notUTF8() async throws {
        await make("a.sqlite")
        try tamper(
            "a.sqlite",
            """
            INSERT INTO teams VALUES (-2, CAST(x'ff' AS TEXT)), (-3, 'Owls');
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
            INSERT INTO notes SELECT CAST(x'ff' AS TEXT) || printf('%04d', i), 'b' || i FROM n;
            INSERT INTO notes VALUES ('a', 'é'), (x'0102', 'blob')
            """)
        let done = await run("export", path("a.sqlite"), path("out"))
        #expect(done.code == .done)
        #expect(done.out.contains("notes.csv  2502 records") && done.out.contains("teams.csv  2 "))
        #expect(done.err.contains("teams -2: column “name” holds text that is not UTF-8."))
        #expect(done.err.contains("notes x'ff30303031': column “id”"))
        #expect(try text("out/teams.csv") == "id,name\n-3,Owls\n-2,/w==\n")
        let notes = try text("out/notes.csv")
        #expect(notes.hasPrefix("id,body\na,é\n/zAwMDE=,b1\n"))
        #expect(notes.hasSuffix(",b2500\nAQI=,blob\n"))
        let json = await run("export", path("a.sqlite"), path("out"), "--type", "teams", "--json")
        #expect(json.out.contains(#""unreadable":["teams -2: "#))
    }

    @Test(
        "init takes a file that holds nothing, as a stopped one leaves it",
        arguments: [true, false])
    func emptyFile(hasHeader: Bool) async throws {
        if hasHeader {
            try Connection(path: path("a.sqlite"), mode: .readWriteCreate)
                .execute("PRAGMA journal_mode = WAL")
            #expect(try Data(contentsOf: folder.appendingPathComponent("a.sqlite")).count > 0)
        } else {
            try write("a.sqlite", "")
        }
        let status = await run("status", path("a.sqlite"))
        #expect(status.code == .failed)
        #expect(status.err.contains("martlet init \(path("a.sqlite")) once more"))
        await make("a.sqlite")
        #expect(await run("status", path("a.sqlite")).code == .done)
        // One that holds something is left alone.
        for name in ["a.sqlite", "other.sqlite", "text.txt", "byte.txt"] {
            if name == "other.sqlite" {
                try Connection(path: path(name), mode: .readWriteCreate)
                    .execute("CREATE TABLE t(a)")
            }
            if name == "text.txt" { try write(name, "no database") }
            if name == "byte.txt" { try write(name, "x") }
            let refused = await run("init", path(name), "--schema", path("schema.sql"))
            #expect(refused.code == .failed && refused.err.contains("exists already"))
            #expect(FileManager.default.fileExists(atPath: path(name)))
        }
        #expect(try text("byte.txt") == "x")
    }

    @Test("a journal that a killed program left is rolled back by the first command")
    func hotJournal() async throws {
        await make("a.sqlite")
        let other = try Connection(path: path("a.sqlite"), mode: .readWrite)
        try other.execute(
            """
            PRAGMA journal_mode = DELETE; PRAGMA cache_size = 5;
            UPDATE martlet_control SET capture = 0;
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO teams SELECT -i, printf('%0200d', i) FROM n;
            BEGIN; UPDATE teams SET name = 'lost'
            """)
        // The files as they are if the program is killed now.
        for name in ["a.sqlite", "a.sqlite-journal"] {
            try FileManager.default.copyItem(
                atPath: path(name), toPath: path(name.replacing("a.", with: "b.")))
        }
        try other.execute("ROLLBACK")
        let status = await run("status", path("b.sqlite"))
        #expect(status.code == .done, "\(status.err)")
        let copy = try Connection(path: path("b.sqlite"), mode: .readOnly)
        #expect(try copy.integer("SELECT count(*) FROM teams WHERE name <> 'lost'") == 2_000)
    }

    @Test("small things are said in sentences that help")
    func sentencesOfCommands() async throws {
        await make("a.sqlite")
        try write("token", "one\ntwo\n")
        let token = await run(
            "sync", path("a.sqlite"), "--server", "http://127.0.0.1:9",
            "--token-file", path("token"))
        #expect(token.code == .failed && token.err.contains("has more than one line"))
        try Connection(path: path("a.sqlite"), mode: .readWrite)
            .execute("INSERT INTO notes VALUES (printf('%.*c', 1000000, 'x'), x'00')")
        #expect(await run("sync", path("a.sqlite")).code == .failed)
        let status = await run("status", path("a.sqlite"))
        #expect(status.out.contains("withheld       1 records"), "\(status.out.prefix(1_000))")
        #expect(status.out.utf8.count < 2_000)

        try write("in/teams.csv", "id,name\n5,Falcons\n")
        #expect(await run("import", path("a.sqlite"), path("in")).code == .done)
        // As for one that looked before the other was done.
        try Connection(path: path("a.sqlite"), mode: .readWrite)
            .execute("DELETE FROM martlet_import_tables")
        let second = await run("import", path("a.sqlite"), path("in"))
        #expect(second.code == .failed && second.err.contains("Another import into this file"))

        try Connection(path: path("a.sqlite"), mode: .readWrite).execute(
            "DELETE FROM martlet_state")
        let damaged = await run("status", path("a.sqlite"))
        #expect(damaged.code == .failed && damaged.err.contains("martlet_state has lost its rows"))
    }
}
