import Foundation
import Martlet
internal import MartletDevice
internal import MartletModel
import MartletServer
import Testing

@testable import MartletCommand

@Suite("Backup and restore", .serialized)
struct BackupTests {
    /// What stands in for `--data … --dataset …`.
    private static func location(_ served: ServedData, _ database: String?) -> [String] {
        if let database { return ["--postgres", database] }
        return ["--data", served.data, "--dataset", "team"]
    }

    private static func served(isPostgres: Bool) async throws -> (ServedData, String?) {
        let served = try ServedData()
        guard isPostgres else { return (served, nil) }
        let database = try await ServedData.database()
        let schema = served.path("schema.sql")
        try ServedData.postgresSchema.write(toFile: schema, atomically: true, encoding: .utf8)
        let made = await ServedData.run([
            "postgres", "init", "--postgres", database, "--name", "team", "--schema", schema,
        ])
        #expect(made.code == .done, "\(made.err)")
        served.use(postgres: database)
        return (served, database)
    }

    private static func add(_ name: String, _ client: MartletClient) async throws {
        try await client.write { _ = try $0.insert("teams", ["name": .text(name)]) }
    }

    /// Backs up while the server runs, goes on, and puts the backup in its place.
    private static func restored(
        _ served: ServedData, _ database: String?, after work: () async throws -> Void
    ) async throws {
        let backup = served.path("team.backup")
        let made = await ServedData.run(
            ["backup"] + location(served, database) + ["--out", backup, "--json"])
        #expect(made.code == .done, "\(made.err)")
        #expect(made.out.contains("\"dataSet\":\"team\""))
        #expect(made.out.contains("\"revision\":1"))
        try await work()
        await served.stop()
        let target = database == nil ? nil : try await ServedData.database()
        let done = await ServedData.run(
            ["restore"] + location(served, target) + ["--in", backup]
                + (database == nil ? ["--replace"] : []))
        #expect(done.code == .done, "\(done.err)")
        if let target { served.use(postgres: target) }
        try await served.start()
    }

    @Test(
        "a device ahead of the backup, and one whose history was overwritten, keep all their work",
        arguments: [false, true], [false, true])
    func devices(isPostgres: Bool, isOverwritten: Bool) async throws {
        let (served, database) = try await Self.served(isPostgres: isPostgres)
        try await served.start()
        let mine = try await served.device("mine")
        let other = try await served.device("other")
        try await Self.add("Ants", other)
        try await other.sync()
        try await mine.sync()
        try await Self.restored(served, database) {
            let team = try await mine.write { try $0.insert("teams", ["name": "Bees"]) }
            try await mine.write {
                _ = try $0.insert("players", ["team_id": team.sqlValue, "name": "Ann"])
            }
            try await mine.sync()
            try await mine.write { try $0.update("teams", .integer(1), ["name": "Ants of mine"]) }
        }
        if isOverwritten {
            for name in ["Cats", "Dogs", "Emus", "Foxes"] { try await Self.add(name, other) }
            try await other.sync()
        }
        let events = mine.events
        try await mine.sync()
        let rejoined = await events.first { event in
            if case .rejoined = event { true } else { false }
        }
        guard case .rejoined(let told)? = rejoined else { return }
        #expect(told.sentAgain == 2)
        #expect(told.parked == 0)
        try await other.sync()
        let expected =
            ["Ants of mine", "Bees"] + (isOverwritten ? ["Cats", "Dogs", "Emus", "Foxes"] : [])
        for client in [mine, other] {
            #expect(try await ServedData.teams(client) == expected)
            let players = try await client.read { context in
                try context.rows(
                    """
                    SELECT players.name || ' of ' || teams.name AS text
                    FROM players JOIN teams ON teams.id = team_id
                    """
                ).compactMap { row -> String? in
                    guard case .text(let text)? = row["text"] else { return nil }
                    return text
                }
            }
            #expect(players == ["Ann of Bees"])
            #expect(try await client.status().outbox == 0)
            #expect(try await client.status().parked == 0)
        }
        await mine.close()
        await other.close()
        await served.stop()
    }

    @Test("a damaged backup, and one that would take a place, change nothing")
    func refusedBackup() async throws {
        let (served, _) = try await Self.served(isPostgres: false)
        try await served.start()
        let device = try await served.device("mine")
        try await Self.add("Ants", device)
        try await device.sync()
        let backup = served.path("a.backup")
        let location = Self.location(served, nil)
        _ = await ServedData.run(["backup"] + location + ["--out", backup])
        let again = await ServedData.run(["backup"] + location + ["--out", backup])
        #expect(again.err.contains("already"))
        let running = await ServedData.run(["restore"] + location + ["--in", backup, "--replace"])
        #expect(running.code == .failed)
        #expect(running.err.contains("Another martlet server"))
        await served.stop()
        let taken = await ServedData.run(["restore"] + location + ["--in", backup])
        #expect(taken.err.contains("--replace"))
        let handle = try #require(FileHandle(forWritingAtPath: backup))
        try handle.seek(toOffset: 5_000)
        try handle.write(contentsOf: Data([1, 2, 3, 4]))
        try handle.close()
        let damaged = await ServedData.run(["restore"] + location + ["--in", backup, "--replace"])
        #expect(damaged.err.contains("not what was backed up"))
        let none = await ServedData.run(["restore"] + location + ["--in", served.path("none")])
        #expect(none.err.contains("no manifest"))
        try await served.start()
        try await device.sync()
        #expect(try await ServedData.teams(device) == ["Ants"])
        await device.close()
        await served.stop()
    }

    @Test("the backup of another data set takes a data set's place only if a flag says so")
    func other() async throws {
        var identities: [String] = []
        var folders: [ServedData] = []
        for name in ["Ants", "Bees"] {
            let (served, _) = try await Self.served(isPostgres: false)
            try await served.start()
            let device = try await served.device("mine")
            try await Self.add(name, device)
            try await device.sync()
            await device.close()
            let made = await ServedData.run(
                ["backup", "--json"] + Self.location(served, nil) + ["--out", served.path("b")])
            let object = try JSONSerialization.jsonObject(with: Data(made.out.utf8))
            identities.append(try #require((object as? [String: Any])?["identity"] as? String))
            await served.stop()
            folders.append(served)
        }
        let restore =
            ["restore"] + Self.location(folders[0], nil) + [
                "--in", folders[1].path("b"), "--replace",
            ]
        let refused = await ServedData.run(restore)
        #expect(refused.code == .failed)
        for word in identities + ["--other-data-set"] { #expect(refused.err.contains(word)) }
        let done = await ServedData.run(restore + ["--other-data-set"])
        #expect(done.code == .done, "\(done.err)")
        // A file that cannot be read tells no identity, so that the name counts.
        let path = folders[0].data + "/team.sqlite"
        try Data("rubbish".utf8).write(to: URL(fileURLWithPath: path))
        #expect(await ServedData.run(restore).code == .done)
        // A data set to which nobody has written has nothing to lose.
        try FileManager.default.removeItem(atPath: folders[0].data)
        try await folders[0].start()
        await folders[0].stop()
        let empty = await ServedData.run(restore)
        #expect(empty.code == .done, "\(empty.err)")
    }

    @Test(
        "tokens come along with a data set's file; what was revoked stays so, and others' stay away"
    )
    func tokensInBackup() async throws {
        let (served, _) = try await Self.served(isPostgres: false)
        try await served.start()
        let store = try TokenStore(directory: served.data)
        let good = try store.create(dataSet: "team", user: "ada", now: 1)
        let early = try store.create(dataSet: "team", user: "bob", now: 2)
        let late = try store.create(dataSet: "team", user: "eve", now: 3)
        let foreign = try store.create(dataSet: "club", user: "mel", now: 4)
        #expect(try store.revoke(early.record.identifier, now: 5))
        let mine = try await served.device("mine", token: good.token)
        let fixed = try await served.device("fixed")
        try await Self.add("Ants", mine)
        for device in [mine, fixed] { try await device.sync() }
        let backup = served.path("a.backup")
        let made = await ServedData.run(
            ["backup"] + Self.location(served, nil) + ["--out", backup])
        #expect(made.code == .done, "\(made.err)")
        #expect(try store.revoke(late.record.identifier, now: 6))
        await served.stop()

        // In the same folder: what was revoked since is not good again.
        let here = await ServedData.run(
            ["restore"] + Self.location(served, nil) + ["--in", backup, "--replace"])
        #expect(here.code == .done, "\(here.err)")
        #expect(here.err.contains("Good tokens of it here: 1."))
        #expect(try store.list().count { $0.revoked == nil && $0.dataSet == "team" } == 1)
        #expect(try store.list().count == 4)

        // On a new machine: all there was, and none of other data sets.
        try FileManager.default.removeItem(atPath: served.data)
        let there = await ServedData.run(
            ["restore"] + Self.location(served, nil) + ["--in", backup])
        #expect(there.code == .done, "\(there.err)")
        let again = try TokenStore(directory: served.data)
        #expect(
            try again.list().map { $0.revoked } == [nil, 5, nil])
        #expect(try !again.list().contains { $0.identifier == foreign.record.identifier })
        try await served.start()
        // Both are who they were: the fixed token has its old name too.
        for device in [mine, fixed] {
            try await device.sync()
            #expect(try await ServedData.teams(device) == ["Ants"])
            await device.close()
        }
        await served.stop()
        try Data("x".utf8).write(to: URL(fileURLWithPath: backup + ".tokens"))
        let damaged = await ServedData.run(
            ["restore"] + Self.location(served, nil) + ["--in", backup, "--replace"])
        #expect(damaged.err.contains("not what was backed up"))
    }

    @Test("a database that is not empty is left as it is")
    func notEmpty() async throws {
        let (served, database) = try await Self.served(isPostgres: true)
        let url = try #require(database)
        let backup = served.path("a.backup")
        _ = await ServedData.run(["backup", "--postgres", url, "--out", backup])
        let result = await ServedData.run(["restore", "--postgres", url, "--in", backup])
        #expect(result.code == .failed)
        #expect(result.err.contains("is not empty"))
    }

    @Test("compact empties old entries; who is behind gets rows", arguments: [false, true])
    func compact(isPostgres: Bool) async throws {
        let (served, database) = try await Self.served(isPostgres: isPostgres)
        try await served.start()
        let device = try await served.device("mine")
        for number in 0..<8 {
            try await Self.add("Team \(number)", device)
            try await device.sync()
        }
        // So that the server knows that all was received.
        try await device.sync()
        if !isPostgres { await served.stop() }
        let result = await ServedData.run(
            ["compact"] + Self.location(served, database) + ["--keep-revisions", "2", "--json"])
        #expect(result.code == .done, "\(result.err)")
        #expect(result.out.contains("\"floor\":6"), "\(result.out)")
        if isPostgres { await served.stop() }
        try await served.start()
        let late = try await served.device("late")
        try await late.sync()
        #expect(try await ServedData.teams(late).count == 8)
        await device.close()
        await late.close()
        await served.stop()
    }
}
