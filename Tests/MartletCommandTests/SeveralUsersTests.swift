import Foundation
import Martlet
import SQLiteKit
import Testing

@testable import MartletCommand

/// Commands of users who see different parts of a data set.
@Suite("Commands of several users", .serialized)
struct SeveralUsersTests {
    @Test("init: a file that another user's init left is his, and is not made the next user's")
    func unfinishedOfAnother() async throws {
        let served = try ServedData()
        let location = ["--data", served.data]
        let office = try await PolicyCommandTests.token("olga", "--role", "office", at: location)
        let (ann, ben) = try await (
            PolicyCommandTests.token("ann", at: location),
            PolicyCommandTests.token("ben", at: location)
        )
        try await served.start(rules: PolicyCommandTests.rules)
        let olga = try await served.device("olga", token: office)
        for city in ["ann", "ben"] {
            try await olga.write { context in
                _ = try context.insert("teams", ["name": .text("of \(city)"), "city": .text(city)])
            }
        }
        try await olga.sync()
        await olga.close()
        // So a stopped init leaves it.
        let left = try await served.device("new", token: ann)
        try await left.sync()
        await left.close()
        let file = served.path("new.sqlite")
        func initialise(_ token: String) async -> (code: ExitCode, out: String, err: String) {
            await ServedData.run(["init", file, "--server", served.address, "--token", token])
        }
        func texts(_ sql: String) throws -> [String] {
            try Connection(path: file, mode: .readWrite).prepare(sql).rows {
                (row) throws(SQLiteError) in row.text(0)
            }
        }
        let settings = "SELECT name FROM sqlite_schema WHERE name = 'martlet_command'"
        let refused = await initialise(ben)
        #expect(refused.code == .failed && refused.err.contains("a device of another user"))
        #expect(try texts(settings) == [])
        let done = await initialise(ann)
        #expect(done.code == .done, "\(done.err)")
        #expect(try texts("SELECT name FROM teams") == ["of ann"])
        #expect(try texts(settings) == ["martlet_command"])
        for ending in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: file + ending)
        }
        let other = await initialise(ben)
        #expect(other.code == .done, "\(other.err)")
        #expect(try texts("SELECT name FROM teams") == ["of ben"])
        await served.stop()
    }

    @Test(
        "purges: after a restore a device waits until it has asked again", arguments: [false, true])
    func restored(isDatabase: Bool) async throws {
        let served = try ServedData()
        var location = ["--data", served.data]
        if isDatabase {
            let url = try await ServedData.database()
            try PolicyCommandTests.write(ServedData.postgresSchema, to: served.path("schema.sql"))
            let made = await ServedData.run([
                "postgres", "init", "--postgres", url, "--name", "team", "--schema",
                served.path("schema.sql"),
            ])
            #expect(made.code == .done, "\(made.err)")
            served.use(postgres: url)
            location = ["--postgres", url]
        }
        let office = try await PolicyCommandTests.token("olga", "--role", "office", at: location)
        let (ann, ben) = try await (
            PolicyCommandTests.token("ann", at: location),
            PolicyCommandTests.token("ben", at: location)
        )
        try await served.start(rules: PolicyCommandTests.rules)
        let olga = try await served.device("olga", token: office)
        let (hers, his) = try await (
            served.device("ann", token: ann), served.device("ben", token: ben)
        )
        func purges() async -> [String] {
            let listed = await ServedData.run(["purges"] + location)
            return listed.out.split(separator: "\n").compactMap { line in
                guard !line.contains("olga"), let state = line.firstMatch(of: #/: ([a-z ]+)/#)
                else { return nil }
                let isRestored = line.contains("the data set was restored")
                return
                    "\(line.contains("ann") ? "ann" : "ben") \(state.1)\(isRestored ? ", restored" : "")"
            }.sorted()
        }
        for city in ["ann", "ben", "all"] {
            try await olga.write { context in
                _ = try context.insert("teams", ["name": .text(city), "city": .text(city)])
            }
        }
        for device in [olga, hers, his, hers, his] { try await device.sync() }
        #expect(await purges() == ["ann confirmed", "ben confirmed"])
        let dataSet = isDatabase ? [] : ["--dataset", "team"]
        let backup = served.path("backup")
        let made = await ServedData.run(["backup"] + location + dataSet + ["--out", backup])
        #expect(made.code == .done, "\(made.err)")
        try await olga.write { try $0.update("teams", .integer(2), ["city": "ann"]) }
        try await olga.sync()
        for _ in 0..<2 { try await hers.sync() }
        #expect(try await ServedData.teams(hers) == ["all", "ann", "ben"])
        await served.stop()
        if isDatabase { location = ["--postgres", try await ServedData.database()] }
        let done = await ServedData.run(
            ["restore"] + location + dataSet + ["--in", backup]
                + (isDatabase ? [] : ["--replace"]))
        #expect(done.code == .done, "\(done.err)")
        if isDatabase { served.use(postgres: location[1]) }
        #expect(await purges() == ["ann waits, restored", "ben waits, restored"])
        let json = await ServedData.run(["purges", "--json"] + location)
        #expect(json.code == .failed && json.out.contains(#""restoredSince":true"#))
        try await served.start(rules: PolicyCommandTests.rules)
        // He was here last before the backup, and has nothing else.
        for _ in 0..<2 { try await his.sync() }
        #expect(await purges() == ["ann waits, restored", "ben confirmed"])
        for _ in 0..<2 { try await hers.sync() }
        #expect(try await ServedData.teams(hers) == ["all", "ann"])
        #expect(await purges() == ["ann confirmed", "ben confirmed"])
        for device in [olga, hers, his] { await device.close() }
        await served.stop()
    }
}
