import Foundation
import Martlet
import MartletDevice
import SQLiteKit
import Synchronization
import Testing

@testable import MartletCommand

/// Command lines run in this process, with what they print.
@Suite("Commands")
struct CommandRunTests {
    private final class Recorder: Sendable {
        let out = Mutex("")
        let err = Mutex("")

        var console: Console {
            Console(
                isInteractive: false, out: { text in self.out.withLock { $0 += text } },
                err: { text in self.err.withLock { $0 += text } })
        }
    }

    private struct Result {
        let code: ExitCode
        let out: String
        let err: String
    }

    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-command-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func path(_ name: String) -> String { folder.path + "/" + name }

    private func write(_ name: String, _ text: String) throws {
        let url = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }

    private func run(_ words: String...) async -> Result { await run(words) }

    private func run(_ words: [String]) async -> Result {
        let recorder = Recorder()
        let code = await MartletCommand.run(words, console: recorder.console)
        return Result(
            code: code, out: recorder.out.withLock(\.self), err: recorder.err.withLock(\.self))
    }

    private func clean() {
        try? FileManager.default.removeItem(at: folder)
    }

    @Test("init, import, status and export work together without a server")
    func offline() async throws {
        defer { clean() }
        try write("schema.sql", "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);")
        try write("in/teams.csv", "id,name\n5,Falcons\n6,\"O, \"\"B\"\"\"\n")
        let made = await run("init", path("a.sqlite"), "--schema", path("schema.sql"))
        #expect(made.code == .done)
        #expect(made.out.contains("revision       0"))
        let imported = await run("import", path("a.sqlite"), path("in"), "--json")
        #expect(imported.out == #"{"records":2,"skipped":0,"changeSets":1,"queued":1}"# + "\n")
        let again = await run("import", path("a.sqlite"), path("in"))
        #expect(again.out.contains("0 records in 0 change sets (2 were there from before)."))
        let status = await run("status", path("a.sqlite"), "--json")
        #expect(status.out.contains(#""outbox":1,"parked":0"#))
        let words = await run("status", path("a.sqlite"))
        #expect(words.out.contains("withheld       0 records"))
        let exported = await run("export", path("a.sqlite"), path("out"))
        #expect(exported.out == "teams.csv  2 records\n")
        let text = try String(contentsOfFile: path("out/teams.csv"), encoding: .utf8)
        #expect(text == "id,name\n-3,\"O, \"\"B\"\"\"\n-2,Falcons\n")
    }

    @Test("status counts and names records that no change set can carry")
    func withheldInStatus() async throws {
        defer { clean() }
        try write("schema.sql", "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);")
        try write("in/teams.csv", "id,name\n5,Falcons\n")
        _ = await run("init", path("a.sqlite"), "--schema", path("schema.sql"))
        _ = await run("import", path("a.sqlite"), path("in"))
        try Connection(path: path("a.sqlite"), mode: .readWrite)
            .execute("UPDATE teams SET name = CAST(x'c328' AS TEXT)")
        let words = await run("status", path("a.sqlite")).out
        #expect(words.contains("withheld       1 records"))
        #expect(words.contains("  withheld teams -2: "))
    }

    @Test("a failure of a file names the file and says what to do")
    func filesThatFail() async throws {
        defer { clean() }
        let schema = path("schema.sql")
        try write("schema.sql", "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);")
        try write("folder/in", "")
        try write("in/teams.csv", "id,name\n5,Falcons\n")
        for words in [
            ["init", path("folder"), "--schema", schema], ["import", path("folder"), path("in")],
        ] {
            let said = await run(words)
            #expect(said.code == .failed)
            #expect(said.err.contains("\(path("folder")) is a folder. Name the device file in it."))
        }
        #expect(await run("init", path("a.sqlite"), "--schema", schema).code == .done)
        try FileManager.default.createDirectory(
            atPath: path("out"), withIntermediateDirectories: true)
        #if os(Linux)
            // A disk without room.
            try FileManager.default.createSymbolicLink(
                atPath: path("out/teams.csv.partial"), withDestinationPath: "/dev/full")
            let full = await run("export", path("a.sqlite"), path("out"))
            #expect(full.code == .failed)
            #expect(
                full.err.contains("\(path("out/teams.csv")) cannot be written. Its disk is full."))
        #endif
        let readOnly = SQLiteError(extendedCode: 8, message: "attempt to write a readonly database")
        let error = DeviceFile.named(readOnly, "b.sqlite")
        #expect(FailureReport(error).sentence.hasPrefix("b.sqlite can only be read by this user"))
        let fault = SyncError(.busy, "the storage is away; send the same again")
        #expect(FailureReport(fault).sentence.contains("the same again. Nothing is lost"))
        let disk = FailureReport(SyncError(.storage, "The device's file failed: disk I/O error."))
        #expect(
            disk.sentence.hasSuffix("See that the disk has space and is sound, then run it again."))
        let index = FailureReport(SyncError(.file, "An index is wrong. Drop it."))
        #expect(index.sentence == "An index is wrong. Drop it." && index.code == .failed)
    }

    @Test("status counts what was written in a table that is gone")
    func goneTable() async throws {
        defer { clean() }
        try write("schema.sql", "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);")
        _ = await run("init", path("a.sqlite"), "--schema", path("schema.sql"))
        try Connection(path: path("a.sqlite"), mode: .readWrite).execute(
            "INSERT INTO teams VALUES (-2, 'Owls'); ALTER TABLE teams RENAME TO elsewhere")
        let away = await run("status", path("a.sqlite"))
        #expect(away.out.contains("queued         0 change sets"))
        #expect(
            away.out.contains(
                "not queued: 1 records that another program wrote in tables which are gone or renamed"
            ))
        #expect(await run("status", path("a.sqlite"), "--json").out.contains(#""awaitingTable":1"#))
        try Connection(path: path("a.sqlite"), mode: .readWrite).execute(
            "ALTER TABLE elsewhere RENAME TO teams")
        let back = await run("status", path("a.sqlite"))
        #expect(
            back.out.contains("queued         1 change sets") && !back.out.contains("not queued"))
    }

    @Test("import makes a device from files alone, and says what schema it found")
    func inferred() async throws {
        defer { clean() }
        try write("in/teams.csv", "id,name\n5,Falcons\n")
        try write("in/players.csv", "id,team_id\n1,5\n")
        let result = await run("import", path("a.sqlite"), path("in"))
        #expect(result.code == .done)
        #expect(result.err.contains("team_id → teams"))
        let schema = await run("schema", path("in"))
        #expect(schema.out.contains("\"team_id\" INTEGER REFERENCES \"teams\"(id)"))
    }

    @Test("mistakes end in a sentence and the documented exit code")
    func failuresOfCommands() async throws {
        defer { clean() }
        try write("schema.sql", "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);")
        try write("teams.csv", "id,name\n1,\n")
        try write(
            "text.txt",
            "no database, long enough to be looked at as one: \(String(repeating: "x", count: 2_000))"
        )
        #expect(await run("stauts").code == .usage)
        let missing = await run("status", path("none.sqlite"))
        #expect(missing.code == .failed)
        #expect(missing.err.contains("martlet init"))
        #expect(await run("status", path("text.txt")).err.contains("no SQLite file"))
        try FileManager.default.createSymbolicLink(
            atPath: path("link"), withDestinationPath: folder.path)
        for name in [folder.path, path("link")] {
            let words = await run("status", name).err
            #expect(words.contains("is a folder. Name the device file"))
        }
        _ = await run("init", path("a.sqlite"), "--schema", path("schema.sql"))
        let second = await run("init", path("a.sqlite"), "--schema", path("schema.sql"))
        #expect(second.err.contains("exists already"))
        let faulty = await run("import", path("a.sqlite"), path("teams.csv"))
        #expect(faulty.code == .failed)
        #expect(faulty.err.contains("teams.csv, line 2, column name"))
        let nowhere = await run("sync", path("a.sqlite"))
        #expect(nowhere.err.contains("--server URL"))
        let away = await run("sync", path("a.sqlite"), "--server", "http://127.0.0.1:9")
        #expect(away.code == .unreachable)
        // A data folder that is misspelled is not made, and is not one without tokens.
        for words in [["token", "list"], ["token", "revoke", "5f3a90c1d2e4"]] {
            let lost = await run(words + ["--data", path("nowhere")])
            #expect(lost.code == .failed && lost.err.contains("check --data"))
            #expect(!FileManager.default.fileExists(atPath: path("nowhere")))
        }
        let plain = await run("sync", path("a.sqlite"), "--server", "http://sync.example.org")
        #expect(plain.code == .failed)
        #expect(plain.err.contains("https"))
        #expect(plain.err.contains("Then run the command again."))
        #expect(await run("init", path("b.sqlite"), "--schema", path("none.sql")).code == .failed)
        #expect(!FileManager.default.fileExists(atPath: path("b.sqlite")))
    }

    @Test("tokens are made, listed without the token, and revoked once")
    func tokensOfCommand() async throws {
        defer { clean() }
        let made = await run("token", "create", "team", "--data", path("data"), "--user", "ines")
        #expect(made.code == .done)
        let token = made.out.split(separator: "\n").first.map(String.init) ?? ""
        #expect(token.hasPrefix("mt_"))
        let list = await run("token", "list", "--data", path("data"))
        #expect(list.out.contains("user ines"))
        #expect(!list.out.contains(token))
        let identifier = list.out.split(separator: " ").first.map(String.init) ?? ""
        #expect(await run("token", "revoke", identifier, "--data", path("data")).code == .done)
        #expect(await run("token", "revoke", identifier, "--data", path("data")).code == .failed)
        #expect(await run("token", "create", "no/way", "--data", path("data")).code == .failed)
    }

    @Test("policies are read, and a fault is told with the file, the line and the column")
    func rulesCheck() async throws {
        defer { clean() }
        try write("schema.sql", "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT)")
        try write("a.sql", "CREATE POLICY own ON teams TO coach USING (name = martlet_user())")
        try write("b.sql", "CREATE POLICY own ON teams\nUSING (nam = 'x')")
        let good = await run("rules", "check", path("a.sql"), path("schema.sql"))
        #expect(good.code == .done)
        #expect(
            good.out == """
                teams:
                  own (ALL, to coach, line 1): the row alone; asks for the user
                  view: people share one if they have the same of these: the user, the role coach; \
                rows are found by name

                """)
        let json = await run("rules", "check", path("a.sql"), path("schema.sql"), "--json")
        #expect(json.out.contains(#""name":"own","line":1,"permissive":true,"command":"all""#))
        let faulty = await run("rules", "check", path("b.sql"), path("schema.sql"))
        #expect(faulty.code == .failed)
        #expect(faulty.err.contains("b.sql, line 2, column 8: “teams” has no column “nam”"))
        let lost = await run("rules", "check", path("none.sql"), path("schema.sql"))
        #expect(lost.code == .failed && lost.err.contains("none.sql cannot be read"))
    }
}
