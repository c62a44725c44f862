import Foundation
import PostgresKit
import Synchronization
import TestDatabases
import Testing

@testable import MartletCommand

@Suite("The commands of PostgreSQL")
struct PostgresCommandTests {
    private static func run(_ words: [String]) async -> (code: ExitCode, out: String, err: String) {
        let out = Mutex("")
        let err = Mutex("")
        let console = Console(
            isInteractive: false, out: { text in out.withLock { $0 += text } },
            err: { text in err.withLock { $0 += text } })
        let code = await MartletCommand.run(words, console: console)
        return (code, out.withLock(\.self), err.withLock(\.self))
    }

    @Test("say what is missing or wrong in their command line")
    func usage() async {
        for (words, sentence) in [
            (["adopt", "--tables", "a"], "needs --name"),
            (["adopt", "--name", "a"], "needs --tables"),
            (["adopt", "--name", "a", "--tables", "a"], "needs --postgres URL"),
            (["adopt", "--name", "a", "--tables", "a", "--truncate", "x"], "refuse or delete"),
            (["adopt", "--cdc", "x"], "--cdc takes triggers or logical"),
            (["init", "--name", "a"], "needs --schema"),
            (["release"], "needs --postgres URL, or MARTLET_POSTGRES"),
            (["schema", "--postgres", "postgresql://h", "x"], "schema"),
        ] {
            let result = await Self.run(["postgres"] + words)
            #expect(result.code == .usage, "\(words)")
            #expect(result.err.contains(sentence), "\(result.err)")
        }
        let absent = await Self.run([
            "postgres", "init", "--name", "a", "--schema", "/nowhere/schema.sql",
            "--postgres", "postgresql://127.0.0.1:1/x",
        ])
        #expect(absent.code == .failed)
        #expect(absent.err.contains("cannot be read"))
        let malformed = await Self.run(["postgres", "schema", "--postgres", "http://a:secret@b"])
        #expect(malformed.code == .failed)
        #expect(malformed.err.contains("postgresql://USER:PASSWORD@HOST"))
        #expect(!malformed.err.contains("secret"))
        let nobody = await Self.run([
            "postgres", "schema", "--postgres", "postgresql://127.0.0.1:1/x",
        ])
        #expect(nobody.code == .unreachable)
        #expect(nobody.err.contains("Check host and port"))
    }

    @Test("make, show, extend and release a data set")
    func life() async throws {
        let url = try await Self.database()
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("schema.sql").path
        try Data("CREATE TABLE teams (id bigserial PRIMARY KEY, name text)".utf8)
            .write(to: URL(fileURLWithPath: file))
        let location = ["--postgres", url]
        let made = await Self.run(
            ["postgres", "init", "--name", "club", "--schema", file] + location)
        #expect(made.code == .done, "\(made.err)")
        #expect(made.out.contains("- make the schema “_martlet”"))
        let schema = await Self.run(["postgres", "schema"] + location)
        #expect(schema.out.contains("\"id\" INTEGER PRIMARY KEY,\n    \"name\" TEXT"))
        let adopted = await Self.run(
            ["postgres", "adopt", "--name", "club", "--tables", "teams, nothing", "--dry-run"]
                + location)
        #expect(adopted.code == .failed)
        #expect(adopted.err.contains("- there is no table “nothing” in the database; check"))
        let again = await Self.run(
            ["postgres", "adopt", "--name", "club", "--tables", "teams", "--json"] + location)
        #expect(again.out.hasPrefix(#"{"done":true,"rows":0,"steps":["reinstall the triggers"#))
        let logical = await Self.run(["postgres", "adopt", "--cdc", "logical"] + location)
        #expect(logical.code == .failed)
        #expect(logical.err.contains("ALTER SYSTEM SET wal_level = logical"))
        let compared = await Self.run(["postgres", "compare"] + location)
        #expect(compared.out == "The tables are what the log says.\n", "\(compared.err)")
        try await Self.blocking {
            try PostgresConnection(PostgresAddress(url)).execute(
                "SET session_replication_role = replica; ALTER TABLE teams DISABLE TRIGGER ALL; "
                    + "INSERT INTO teams (name) VALUES ('past the log')")
        }
        let differs = await Self.run(["postgres", "compare"] + location)
        #expect(differs.code == .failed)
        #expect(differs.err.contains("no device can be sent stays listed until it is corrected"))
        let repaired = await Self.run(["postgres", "compare", "--repair", "--json"] + location)
        #expect(repaired.code == .done)
        #expect(repaired.out.hasPrefix(#"{"changed":1,"deleted":0,"repaired":true"#))
        let asked = await Self.run(["postgres", "release"] + location)
        #expect(asked.err.contains("--yes does it"))
        let released = await Self.run(
            ["postgres", "release", "--yes", "--name", "club"] + location)
        #expect(released.out.contains("drop the schema “_martlet”"))
        let gone = await Self.run(["postgres", "schema"] + location)
        #expect(gone.code == .failed)
    }

    @Test("row-level security becomes a rules file, which is taken if it exists")
    func rules() async throws {
        let url = try await Self.database()
        try await Self.blocking {
            try PostgresConnection(PostgresAddress(url)).execute(
                """
                CREATE TABLE teams (id bigserial PRIMARY KEY, name text);
                ALTER TABLE teams ENABLE ROW LEVEL SECURITY;
                CREATE POLICY own ON teams USING (name = current_setting('martlet.user', true));
                GRANT ALL ON teams TO PUBLIC;
                """)
        }
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("rules.sql").path
        let adopt = ["postgres", "adopt", "--name", "club", "--tables", "teams", "--postgres", url]
        let bare = await Self.run(adopt)
        #expect(bare.code == .failed)
        #expect(bare.err.contains("martlet postgres adopt --rules FILE"), "\(bare.err)")
        let dry = await Self.run(adopt + ["--rules", file, "--dry-run"])
        #expect(dry.out.contains("CREATE POLICY own ON teams\n    USING ((name = current"))
        #expect(!FileManager.default.fileExists(atPath: file))
        let nowhere = await Self.run(adopt + ["--rules", "/nowhere/rules.sql"])
        #expect(nowhere.code == .failed)
        #expect(nowhere.err.contains("/nowhere/rules.sql cannot be written"), "\(nowhere.err)")
        for (path, words) in [
            ("", "The name of a file is empty"), (folder.path, "it is a folder"),
            ("/dev/null", "is no regular file"),
        ] {
            let odd = await Self.run(adopt + ["--rules", path])
            #expect(odd.code != .done && odd.err.contains(words), "\(odd.err)")
        }
        let none = await Self.run(["postgres", "schema", "--postgres", url])
        #expect(none.code == .failed)
        let empty = await Self.run(["purges", "--postgres", url])
        #expect(empty.code == .failed && !empty.err.contains("Nothing was changed"))
        let done = await Self.run(adopt + ["--rules", file])
        #expect(done.code == .done, "\(done.err)")
        #expect(done.out.contains("into a rules file"))
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(dry.out.contains(text))
        let warned = await Self.run(["doctor", "--postgres", url])
        #expect(warned.out.contains("warning: The row-level security of “teams” does not apply"))
        let sound = await Self.run(["doctor", "--postgres", url, "--rules", file])
        #expect(!sound.out.contains("row-level"), "\(sound.out)")
        let again = await Self.run(adopt + ["--rules", file])
        #expect(again.code == .done, "\(again.err)")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
        try Data("CREATE POLICY own ON team USING (true)".utf8)
            .write(to: URL(fileURLWithPath: file))
        let wrong = await Self.run(adopt + ["--rules", file])
        #expect(wrong.err.contains("line 1, column 22: the data set has no type “team”"))
        let ill = await Self.run(["doctor", "--postgres", url, "--rules", file])
        #expect(ill.code == .failed)
        #expect(ill.out.contains("error: The rules file: line 1, column 22"), "\(ill.out)")
        let misplaced = await Self.run(["doctor", "--data", "x", "--rules", file])
        #expect(misplaced.code == .usage)
    }

    private static func database() async throws -> String {
        let shared = try await DatabaseServers.shared().postgresURL
        let name = "c_" + UUID().uuidString.replacing("-", with: "").lowercased()
        var parts = try #require(URLComponents(string: shared))
        try await blocking {
            try PostgresConnection(PostgresAddress(shared)).execute("CREATE DATABASE \(name)")
        }
        parts.path = "/" + name
        return parts.string ?? ""
    }

    /// Off the cooperative pool: connecting blocks.
    private static func blocking(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}
