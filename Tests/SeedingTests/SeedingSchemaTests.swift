import Foundation
import MartletModel
internal import MartletProtocol
import MartletServer
import MartletServerCore
import MartletStore
import SQLiteKit
import Testing
import Waiting

@testable import Martlet
@testable import MartletDevice

@Suite("Seeding where the app's tables differ")
struct SeedingSchemaTests {
    @Test(
        "a new column, an unknown type and an unknown column: rows are copied, the rest kept aside")
    func otherSchema() async throws {
        let fixture = try SeedingFixture()
        let script = """
            CREATE TABLE players (
                id TEXT PRIMARY KEY, team INTEGER, height REAL, colour TEXT DEFAULT 'red');
            """
        try await fixture.seed(from: fixture.source(), schema: .script(script))
        let connection = try Connection(path: fixture.device)
        // The server has no colours: a record has none, as one that comes by the change log.
        #expect(
            try connection.text(
                "SELECT count(*) || count(colour) || max(height) FROM players") == "190003.4")
        #expect(try connection.integer("SELECT count(*) FROM martlet_aside") == 2_000)
        let file = try LocalStore(readingFrom: fixture.device)
        #expect(try Outbox(store: file).queued().isEmpty)
        #expect(try file.counter("revision") == fixture.manifest.revision)
        // The next version of the app has them, without a new download.
        let client = try await MartletClient.open(
            path: fixture.device,
            schema: """
                CREATE TABLE players (
                    id TEXT PRIMARY KEY, team INTEGER, height REAL, colour TEXT DEFAULT 'red',
                    note TEXT);
                CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
                """, transport: nil)
        await client.close()
        #expect(
            try SeedingFixture.content(fixture.device).count == fixture.expected().count)
    }

    @Test("triggers and full-text indexes of the app see the rows come in")
    func triggersSeeSeededRows() async throws {
        let fixture = try SeedingFixture()
        let script =
            SeedingFixture.script + """
                CREATE TABLE tally (id INTEGER PRIMARY KEY, n INTEGER);
                CREATE VIRTUAL TABLE words USING fts5(name);
                CREATE TRIGGER teams_words AFTER INSERT ON teams
                    BEGIN INSERT INTO words(rowid, name) VALUES (NEW.id, NEW.name); END;
                """
        try await fixture.seed(from: fixture.source(), schema: .script(script))
        let connection = try Connection(path: fixture.device)
        #expect(
            try connection.integer("SELECT rowid FROM words WHERE words MATCH '77'") == 77)
    }

    @Test("an app with versions gets its tables by them, and the snapshot's rows")
    func versions() async throws {
        let fixture = try SeedingFixture()
        let migrations = try Migrations([
            Migration(1, "tables") { try $0.create(SeedingFixture.script) }
        ])
        try await fixture.seed(
            from: fixture.source(), schema: .versions(migrations, .fail, progress: { _ in }))
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
    }

    @Test("of several parts the first makes the file, which knows what is to come")
    func partsOfSeed() async throws {
        let plan = SeedingPlan(classes: [
            .init(name: "first", types: ["teams": .all, "players": .matching("height > 3")])
        ])
        let fixture = try SeedingFixture(plan: plan)
        #expect(fixture.manifest.parts.count == 2)
        let source = fixture.source(cut: [3_000])
        try await fixture.seed(from: source)
        #expect(source.opened == [0, 3_000])
        #expect(try fixture.left() == ["device.sqlite"])
        let client = try await MartletClient.open(
            path: fixture.device, schema: SeedingFixture.script, transport: nil)
        let counts = try await client.read { context in
            try context.rows(
                "SELECT count(*), (SELECT count(*) FROM teams), min(height) > 3 FROM players")
        }
        #expect(counts.map(\.values) == [[400, 100, 1]])
        let status = try await client.seedingStatus()
        #expect(status.classes.map(\.name) == ["first", "rest"])
        #expect(status.classes.map(\.isComplete) == [true, false])
        #expect(status.classes.map(\.records) == [500, 1_500])
        #expect(!status.isComplete)
        #expect(status.isComplete(class: "first") && !status.isComplete(class: "rest"))
        #expect(!status.isComplete(class: "unknown"))
        #expect(status.isComplete(type: "teams") && !status.isComplete(type: "players"))
        let sizes = fixture.manifest.parts.map { $0[coding: "gzip"]?.sum.bytes ?? 0 }
        #expect(status.progress.received == sizes[0])
        #expect(status.progress.total == sizes[0] + sizes[1])
        await client.close()
    }

    @Test("a snapshot shipped with the app is copied, checked and left as it is")
    func shipped() async throws {
        let fixture = try SeedingFixture()
        let before = try Data(contentsOf: URL(fileURLWithPath: fixture.plain[0]))
        try await fixture.seed(from: nil, .file(fixture.plain[0]))
        #expect(try SeedingFixture.content(fixture.device) == fixture.expected())
        #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.plain[0])) == before)
        try fixture.removeDevice()
        let cut = fixture.folder.appendingPathComponent("cut.sqlite")
        try before.prefix(20_000).write(to: cut)
        await #expect(throws: SyncError.self) {
            try await fixture.seed(from: nil, .file(cut.path))
        }
        await #expect(throws: SyncError.self) {
            try await fixture.seed(from: nil, .file(fixture.device + "-none"))
        }
        #expect(try fixture.left().isEmpty)
    }

    @Test("a device seeded from a running server goes on with what came after, both ways")
    func live() async throws {
        let fixture = try SeedingFixture()
        let data = fixture.folder.appendingPathComponent("data")
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: false)
        try FileManager.default.copyItem(
            at: fixture.folder.appendingPathComponent("server.sqlite"),
            to: data.appendingPathComponent("league.sqlite"))
        var configuration = ServerConfiguration(
            dataDirectory: data.path, schema: SeedingFixture.script)
        configuration.tokens = [try FixedToken("league:secret")]
        configuration.log = ServerLog(minimum: .error) { _ in }
        let server = MartletServer(configuration)
        let port = try await server.start()
        let url = try #require(URL(string: "http://127.0.0.1:\(port)"))
        let transport = try URLSessionTransport(server: url, token: "secret")
        try await waitUntil("there is a snapshot") { try await transport.manifest() != nil }
        var options = ClientOptions()
        options.seeding = .server
        let client = try await MartletClient.open(
            path: fixture.device, schema: nil, server: url, token: "secret", options: options)
        #expect(try await client.status().revision == fixture.manifest.revision)
        #expect(try await client.read { try $0.rows("SELECT id FROM players").count } == 1_900)
        try await client.write { context in
            try context.rows("UPDATE teams SET name = 'Renamed' WHERE id = 5")
        }
        #expect(try await client.sync() == fixture.manifest.revision + 1)
        #expect(try await client.parked().isEmpty)
        await client.close()
        // An interrupted opening leaves a file without tables, which gets them now.
        let empty = fixture.folder.appendingPathComponent("empty.sqlite").path
        for prepares in [false, true] {
            try Data().write(to: URL(fileURLWithPath: empty))
            let tables = "SELECT 1 FROM sqlite_schema WHERE name IN ('teams', 'players')"
            if prepares {
                let alone = try await MartletClient.open(path: empty, schema: nil)
                #expect(try await alone.read { try $0.rows(tables).isEmpty })
                await alone.close()
            }
            let begun = try await MartletClient.open(
                path: empty, schema: nil, server: url, token: "secret")
            #expect(try await begun.read { try $0.rows(tables).count } == 2)
            #expect(try await begun.sync() == fixture.manifest.revision + 1)
            await begun.close()
            for end in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: empty + end)
            }
        }
        await server.stop()
    }
}
