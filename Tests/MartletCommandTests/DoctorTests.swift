import Foundation
import Martlet
import MartletDevice
internal import MartletModel
import MartletServer
import SQLiteKit
import Testing

@testable import MartletCommand

@Suite("Doctor, tokens in databases, and the unit for systemd", .serialized)
struct DoctorTests {
    /// The checks that found something.
    private static func checks(
        _ words: [String]
    ) async throws -> (code: ExitCode, checks: [String]) {
        let result = await ServedData.run(["doctor", "--json"] + words)
        let object = try JSONSerialization.jsonObject(with: Data(result.out.utf8))
        let findings = (object as? [String: Any])?["findings"] as? [[String: String]]
        return (result.code, (findings ?? []).compactMap { $0["check"] }.sorted())
    }

    @Test("a data folder: nothing is wrong, and then each thing that may be")
    func filesOfDataFolder() async throws {
        let served = try ServedData()
        try await served.start()
        let device = try await served.device("mine")
        try await device.write { _ = try $0.insert("teams", ["name": "Ants"]) }
        try await device.sync()
        let location = ["--data", served.data]
        let sound = try await Self.checks(location)
        #expect(sound.checks == [])
        #expect(sound.code == .done)
        await device.close()
        await served.stop()
        let connection = try Connection(path: served.data + "/team.sqlite", mode: .readWrite)
        try connection.execute(
            """
            DROP INDEX players_team;
            UPDATE martlet_types SET next_id = 1 WHERE name = 'teams';
            UPDATE martlet_log SET time = time + 900000000;
            PRAGMA foreign_keys = OFF; INSERT INTO players VALUES (1, 77, 'Stray');
            UPDATE martlet_dataset SET revision = revision + 1;
            """)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: served.data)
        let ill = try await Self.checks(location)
        // The stray row's key is beyond its counter, too.
        #expect(
            ill.checks == ["clock", "index", "keys", "keys", "log", "permissions", "references"])
        #expect(ill.code == .failed)
        let said = await ServedData.run(["doctor"] + location)
        #expect(said.out.contains("fix: Stop the server, then: UPDATE martlet_types SET next_id"))
        #expect(await ServedData.run(["doctor", "--data", served.path("no")]).code == .failed)
    }

    @Test("rows that devices do not receive, and a table that can take no new row")
    func rowsNotReceived() async throws {
        let served = try ServedData()
        try await served.start()
        let device = try await served.device("mine")
        try await device.write { context in
            for name in ["Ants", "Bees", "Cats"] {
                _ = try context.insert("teams", ["name": .text(name)])
            }
        }
        try await device.sync()
        await device.close()
        await served.stop()
        let connection = try Connection(path: served.data + "/team.sqlite", mode: .readWrite)
        try connection.execute(
            """
            CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT);
            INSERT INTO counted VALUES (9223372036854775807); DELETE FROM counted;
            UPDATE teams SET city = x'ff' WHERE id = 1;
            """)
        let location = ["--data", served.data]
        #expect(try await Self.checks(location).checks == ["sequence", "unsendable"])
        // Noted writes are no finding, and writes whose notes are gone are one.
        try connection.execute(
            "DELETE FROM teams WHERE id = 2; UPDATE martlet_types SET next_id = 9;"
                + " INSERT INTO teams(id, name) VALUES (8, 'Dogs')")
        #expect(try await Self.checks(location).checks == ["sequence", "unsendable"])
        try connection.execute("DELETE FROM martlet_outside")
        #expect(try await Self.checks(location).checks == ["sequence", "unnoted", "unsendable"])
        let said = await ServedData.run(["doctor"] + location)
        #expect(said.out.contains("does not know 1 rows of teams, and 1 that it knows are gone"))
        #expect(
            said.out.contains(
                "cannot be sent 1 rows of teams, such as 1: column “city” holds binary"))
        let fix = try #require(said.out.split(separator: "martlet doctor: ").last)
        try connection.execute(String(fix.prefix(while: { $0 != "\n" })))
        #expect(try await Self.checks(location).checks == ["sequence", "unsendable"])
    }

    @Test("keys that the server passes over are no finding; a counter at its end is one")
    func farKeys() async throws {
        let served = try ServedData()
        try await served.start()
        let device = try await served.device("mine")
        try await device.write { _ = try $0.insert("teams", ["name": "Ants"]) }
        try await device.sync()
        await device.close()
        await served.stop()
        let connection = try Connection(path: served.data + "/team.sqlite", mode: .readWrite)
        let most: Int64 = 1 << 62
        try connection.execute("INSERT INTO teams(id, name) VALUES (\(most), 'Far')")
        let location = ["--data", served.data]
        #expect(try await Self.checks(location).checks == [])
        try connection.execute(
            """
            INSERT INTO teams(id, name) VALUES (8, 'Near');
            UPDATE martlet_types SET next_id = \(most + 1) WHERE name = 'teams'
            """)
        let said = await ServedData.run(["doctor"] + location)
        #expect(said.out.contains("teams has no keys left; the next would be \(most + 1)"))
        #expect(said.out.contains("SET next_id = 9 WHERE name = 'teams'"))
        try connection.execute("UPDATE martlet_types SET next_id = 9 WHERE name = 'teams'")
        #expect(try await Self.checks(location).checks == [])
    }

    private static func database(_ served: ServedData) async throws -> String {
        let url = try await ServedData.database()
        let schema = served.path("schema.sql")
        try ServedData.postgresSchema.write(toFile: schema, atomically: true, encoding: .utf8)
        let made = await ServedData.run([
            "postgres", "init", "--postgres", url, "--name", "team", "--schema", schema,
        ])
        #expect(made.code == .done, "\(made.err)")
        return url
    }

    @Test("a database: nothing is wrong, and then each thing that may be")
    func databases() async throws {
        let served = try ServedData()
        let url = try await Self.database(served)
        let sound = try await Self.checks(["--postgres", url])
        // Other tests use the same servers.
        let shared: Set = ["connections", "transactions", "slots"]
        #expect(sound.checks.filter { !shared.contains($0) } == [])
        // The sequence does not come to such keys.
        try await ServedData.execute(
            """
            INSERT INTO teams(id, name) VALUES (\(Int64.max / 3), 'Far'), (\(Int64.max), 'Last');
            """, on: url)
        let far = try await Self.checks(["--postgres", url])
        #expect(!far.checks.contains("sequences"))
        try await ServedData.execute(
            """
            INSERT INTO teams(id, name) VALUES (9, 'Beyond the sequence');
            DROP INDEX players_team;
            ALTER TABLE _martlet.announced SET UNLOGGED;
            ALTER TABLE players DISABLE TRIGGER ALL;
            UPDATE _martlet.dataset SET revision = revision + 1;
            """, on: url)
        let ill = try await Self.checks(["--postgres", url])
        let found = Set(ill.checks).subtracting(shared)
        #expect(found == ["index", "log", "sequences", "triggers", "unlogged"])
        #expect(ill.code == .failed)
        let empty = try await ServedData.database()
        #expect(try await Self.checks(["--postgres", empty]).checks.contains("dataset"))
    }

    @Test("room: what a database and its disk say of it, where the role may know")
    func roomOfDatabase() async throws {
        let served = try ServedData()
        let url = try await Self.database(served)
        let role = "watcher_" + UUID().uuidString.replacing("-", with: "").lowercased()
        try await ServedData.execute(
            """
            CREATE ROLE \(role) LOGIN;
            GRANT USAGE ON SCHEMA _martlet TO \(role);
            GRANT SELECT ON ALL TABLES IN SCHEMA _martlet, public TO \(role);
            GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO \(role);
            """, on: url)
        let options = "options=-c%20role%3D\(role)"
        let limited = try await Self.checks([
            "--postgres", url + (url.contains("?") ? "&" : "?") + options,
        ])
        // Without a right it says less, and does not fail.
        let shared: Set = ["connections", "transactions", "slots"]
        #expect(limited.checks.filter { !shared.contains($0) } == [])
        #expect(limited.code == .done)
        #expect(EmbeddedDoctor.room(in: served.path(""), for: 1).isEmpty)
        #expect(EmbeddedDoctor.room(in: served.path(""), for: 1 << 60).map(\.check) == ["space"])
    }

    @Test(
        "tokens in a database count for its servers from the next request on, until they are revoked"
    )
    func tokensInDatabase() async throws {
        let served = try ServedData()
        let url = try await Self.database(served)
        served.use(postgres: url)
        try await served.start()
        let wrong = await ServedData.run(["token", "create", "other", "--postgres", url])
        #expect(wrong.err.contains("is called “team”"))
        let made = await ServedData.run([
            "token", "create", "team", "--postgres", url, "--user", "ines", "--role", "coach",
        ])
        #expect(made.code == .done, "\(made.err)")
        let token = made.out.trimmingCharacters(in: .whitespacesAndNewlines)
        let device = try await served.device("mine", token: token)
        try await device.write { _ = try $0.insert("teams", ["name": "Ants"]) }
        #expect(try await device.sync() == 1)
        let list = await ServedData.run(["token", "list", "--postgres", url])
        #expect(list.out.contains("user ines  roles coach"))
        #expect(!list.out.contains(token))
        let identifier = String(try #require(list.out.split(separator: " ").first))
        let revoked = await ServedData.run(["token", "revoke", identifier, "--postgres", url])
        #expect(revoked.code == .done, "\(revoked.err)")
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.kind == .unauthorized)
        await device.close()
        await served.stop()
    }

    @Test("systemd takes the unit as it is")
    func unit() throws {
        let tool = "/usr/bin/systemd-analyze"
        guard FileManager.default.isExecutableFile(atPath: tool) else { return }
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appendingPathComponent("Support/martlet.service"), encoding: .utf8)
        // A program and a user that are there on any machine.
        let served = try ServedData()
        let unit = served.path("martlet.service")
        try text.replacing("/usr/local/bin/martlet", with: "/bin/true")
            .replacing("=martlet\n", with: "=root\n")
            .write(toFile: unit, atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: tool)
        process.arguments = ["verify", unit]
        let said = Pipe()
        process.standardError = said
        try process.run()
        let words = String(
            decoding: try said.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        // Units of the machine that are not right themselves are not this one's fault.
        let own = words.split(separator: "\n").filter { $0.contains("martlet.service") }
        #expect(own.isEmpty, "\(own)")
    }
}
