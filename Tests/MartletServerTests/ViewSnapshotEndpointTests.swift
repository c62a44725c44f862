import CompressionKit
import Foundation
import MartletModel
import MartletProtocol
import MartletServerCore
import SocketTalk
import Synchronization
import Testing
import Waiting

@testable import MartletServer

@Suite("Snapshots of views over HTTP")
struct ViewSnapshotEndpointTests {
    private static let rules = """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY coach ON players TO coach USING (name LIKE 'A%');
        CREATE POLICY doctor ON players TO doctor USING (name LIKE 'C%' OR name LIKE 'A%');
        """

    /// A server with three players and a clock that the test sets. Coaches see two of the players.
    private struct Club {
        let live: LiveServer
        let clock: TestClock
        let tokens: [String: String]

        /// - Parameter every: The revisions after which there is a snapshot of everything.
        init(
            every: Int64 = 10_000, _ limits: (inout ViewSnapshotLimits) -> Void = { _ in }
        ) async throws {
            let folder = TemporaryFolder()
            let store = try TokenStore(directory: folder.path)
            var tokens: [String: String] = [:]
            for (user, roles) in [
                ("olga", ["office"]), ("ann", ["coach"]), ("bob", ["coach"]), ("cyd", []),
                ("dora", ["doctor"]),
            ] {
                tokens[user] = try store.create(
                    dataSet: "league", user: user, roles: roles, now: 1
                ).token
            }
            self.tokens = tokens
            let clock = TestClock()
            self.clock = clock
            live = try await LiveServer(folder: folder) { configuration in
                configuration.rules = Array(ViewSnapshotEndpointTests.rules.utf8)
                configuration.snapshotEvery = every
                configuration.viewSnapshots.leastRecords = 2
                limits(&configuration.viewSnapshots)
                configuration.now = { clock.value }
            }
            try await save(
                """
                "create":[-1,-2,-3],"update":[],"delete":[],"attributes":{\
                "-1":{"name":"Anna","team":-1},"-2":{"name":"Amir","team":-1},\
                "-3":{"name":"Canary","team":-1}}
                """,
                team: #""create":[-1],"update":[],"delete":[],"attributes":{"-1":{"name":"T"}}"#)
        }

        func save(
            _ players: String,
            team: String = #""create":[],"update":[],"delete":[],"attributes":{}"#
        ) async throws {
            let answer = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams","players"],"teams":{\(team)},\
                "players":{\(players)}}]}
                """, token: tokens["olga"] ?? "")
            #expect(answer.status == 200 && !answer.body.contains("\"conflict\":true"))
        }

        func bearer(_ user: String) -> String { "Authorization: Bearer \(tokens[user] ?? "")" }

        /// Asks for a snapshot for the person's device.
        func ask(_ user: String) async throws -> SnapshotManifest? {
            let answer = try await live.request(
                "GET", "/snapshot?client=\(user)1", headers: [bearer(user)])
            guard answer.status == 200 else {
                #expect(answer.status == 404 && answer.kind == "noSnapshot")
                return nil
            }
            return try SyncCoder.decodeSnapshotManifest(Array(answer.body.utf8))
        }

        /// Asks until there is a snapshot.
        func manifest(_ user: String, from revision: Revision = 1) async throws -> SnapshotManifest
        {
            var found: SnapshotManifest?
            try await waitUntil("\(user) gets a snapshot") {
                found = try await ask(user)
                return found.map { $0.revision >= revision } ?? false
            }
            return try #require(found)
        }

        /// Fetches a file as gzip.
        /// - Parameter device: The device that asks; nil for that of the person.
        func file(
            _ hash: String, _ user: String, for device: String? = nil
        ) async throws -> (status: Int, body: [UInt8]) {
            let client = RawClient(port: live.port)
            await client.send(
                [
                    "GET /snapshot/\(hash)?client=\(device ?? "\(user)1") HTTP/1.1",
                    "Host: localhost", "Connection: close",
                    bearer(user), "", "",
                ].joined(separator: "\r\n"))
            let bytes = await client.readBytes()
            let end = try #require(bytes.firstRange(of: [13, 10, 13, 10]))
            let head = try LiveServer.answer(Array(bytes[..<end.upperBound]))
            return (head.status, Array(bytes[end.upperBound...]))
        }

        /// The devices, with what they have confirmed.
        var devices: [String] {
            get throws {
                try PurgeReport.files(in: live.folder.path).flatMap(\.devices).map {
                    "\($0.clientID) \($0.state.rawValue)"
                }
            }
        }

        /// The files of snapshots of views.
        var files: [String] {
            get throws {
                try FileManager.default.contentsOfDirectory(
                    atPath: live.folder.path + "/snapshots/league/views"
                ).sorted()
            }
        }
    }

    /// A clock.
    private final class TestClock: Sendable {
        private let time = Mutex<Int64>(1_000_000)

        var value: Int64 { time.withLock { $0 } }

        func advance(_ milliseconds: Int64) { time.withLock { $0 += milliseconds } }
    }

    @Test("none is promised of a view that shows few records")
    func few() async throws {
        let club = try await Club { $0.leastRecords = 100 }
        try await waitUntil("none is promised") {
            let answer = try await club.live.request(
                "GET", "/snapshot?client=ann1", headers: [club.bearer("ann")])
            #expect(answer.status == 404 && answer.kind == "noSnapshot")
            return !answer.body.contains("retryAfter")
        }
        try await waitUntil("no file is kept") { try club.files == [] }
        let late = try await club.live.request(
            "GET", "/snapshot?client=ann1", headers: [club.bearer("ann")])
        #expect(!late.body.contains("retryAfter"))
        club.clock.advance(ViewSnapshots.shortPause)
        let later = try await club.live.request(
            "GET", "/snapshot?client=ann1", headers: [club.bearer("ann")])
        #expect(later.body.contains("\"retryAfter\":10"))
    }

    @Test("a view that showed few records has a snapshot a minute after it shows more")
    func grown() async throws {
        let club = try await Club { $0.leastRecords = 5 }
        try await waitUntil("none is promised") {
            let answer = try await club.live.request(
                "GET", "/snapshot?client=ann1", headers: [club.bearer("ann")])
            return !answer.body.contains("retryAfter")
        }
        try await club.save(
            """
            "create":[-1,-2],"update":[],"delete":[],"attributes":{\
            "-1":{"name":"Alba","team":1},"-2":{"name":"Ada","team":1}}
            """)
        club.clock.advance(ViewSnapshots.shortPause)
        let manifest = try await club.manifest("ann")
        #expect(manifest.parts.first?.types.map(\.records) == [1, 4])
        await club.live.stop()
    }

    @Test("the second request leads to one, which nobody with another view gets")
    func shared() async throws {
        let club = try await Club()
        #expect(try await club.ask("ann") == nil)
        #expect(try await club.ask("dora") == nil)
        try await Task.sleep(for: .milliseconds(100))
        #expect(try club.files == [])
        let manifest = try await club.manifest("bob")
        #expect(try await club.manifest("ann") == manifest)
        #expect(manifest.view != nil && manifest.lineage.contains("-v"))
        let part = try #require(manifest.parts.first)
        #expect(manifest.parts.count == 1)
        #expect(part.types.map { "\($0.name) \($0.records)" } == ["teams 1", "players 2"])
        let answer = try await club.file(part.hash, "ann")
        #expect(answer.status == 200)
        let plain = try Gzip.inflate(
            answer.body, limit: 1 << 26, ratio: 5_000, ratioFloor: 1 << 20)
        let text = String(decoding: plain, as: Unicode.ASCII.self)
        #expect(text.contains("Anna") && !text.contains("Canary"))
        for other in ["cyd", "dora", "olga"] {
            #expect(try await club.file(part.hash, other).status == 404)
        }
        #expect(try await club.ask("cyd") == nil)
        await club.live.stop()
    }

    @Test("another user's device gets neither the list nor a file, whatever its user sees")
    func othersDevice() async throws {
        let club = try await Club(every: 1)
        let hash = try #require(try await club.manifest("ann").parts.first).hash
        let everything = try #require(try await club.manifest("olga").parts.first).hash
        #expect(try await club.file(hash, "ann").status == 200)
        for (user, hash) in [("bob", hash), ("cyd", hash), ("olga", everything)] {
            let list = try await club.live.request(
                "GET", "/snapshot?client=ann1", headers: [club.bearer(user)])
            #expect(list.status == 403 && list.kind == "clientBound")
            #expect(try await club.file(hash, user, for: "ann1").status == 403)
        }
        #expect(try await club.file(hash, "bob").status == 200)
        await club.live.stop()
    }

    @Test(
        "a data set whose file was put back by hand is known by its snapshots: no device is confirmed"
    )
    func putBack() async throws {
        let club = try await Club(every: 1)
        let token = club.tokens["ann"] ?? ""
        let first = try await club.live.sync(
            #"{"clientId":"ann1","protocol":1,"maxRevision":0,"changeSets":[]}"#, token: token)
        let lineage: String? = try first.member("lineage")
        let view: Int? = try first.member("view")
        let plain = """
            {"clientId":"ann1","protocol":1,"maxRevision":1,"lineage":"\(lineage ?? "")","changeSets":[]
            """
        let purged =
            #","purged":{"view":\#(view ?? 0),"revision":1,"removed":[0,"0000000000000000"]}}"#
        #expect(try await club.live.sync(plain + purged, token: token).status == 200)
        #expect(try club.devices == ["ann1 confirmed"])
        await club.live.stop()
        let (path, copy) = (
            club.live.folder.path + "/league.sqlite", club.live.folder.path + "/copy"
        )
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        func start() async throws -> LiveServer {
            try await LiveServer(folder: club.live.folder) { configuration in
                configuration.rules = Array(Self.rules.utf8)
                configuration.snapshotEvery = 1
            }
        }
        let later = try await start()
        _ = try await later.sync(
            """
            {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],"update":[],\
            "delete":[],"attributes":{"-1":{"name":"U"}}}}]}
            """,
            token: club.tokens["olga"] ?? "")
        try await waitUntil("there is a snapshot of what will be lost") {
            let answer = try await later.request(
                "GET", "/snapshot", headers: [club.bearer("olga")])
            return answer.body.contains(#""revision":2"#)
        }
        #expect(try club.devices == ["ann1 confirmed"])
        await later.stop()
        for ending in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: path + ending)
        }
        try FileManager.default.moveItem(atPath: copy, toPath: path)
        let restored = try await start()
        try await waitUntil("the server has noticed") { try club.devices == ["ann1 waits"] }
        let next = try await restored.sync(plain + "}", token: token)
        let known: Int? = try next.member("view")
        #expect(known != nil && known != view)
        #expect(try club.devices == ["ann1 waits"])
        await restored.stop()
    }

    @Test("the server notes which device gets the file, and gives it to no program without a name")
    func devices() async throws {
        let club = try await Club()
        let manifest = try await club.manifest("ann")
        let hash = try #require(manifest.parts.first).hash
        #expect(try club.devices == [])
        for path in ["/snapshot", "/snapshot/\(hash)"] {
            let answer = try await club.live.request("GET", path, headers: [club.bearer("ann")])
            #expect(answer.status == 404 && answer.body.contains("name the device"))
            #expect(answer.kind == (path == "/snapshot" ? "noSnapshot" : "noSnapshotFile"))
            let strange = try await club.live.request(
                "GET", "\(path)?name=ann1", headers: [club.bearer("ann")])
            #expect(strange.status == 400 && strange.kind == "malformed")
        }
        #expect(try club.devices == [])
        #expect(try await club.file(hash, "ann").status == 200)
        #expect(try club.devices == ["ann1 waits"])
        #expect(try await club.file(hash, "bob", for: "ann1").status == 403)
        #expect(try await club.file(hash, "bob", for: "b%00").status == 400)
        #expect(try club.devices == ["ann1 waits"])
        await club.live.stop()
    }

    @Test("a device that gets a snapshot of everything counts as one that has everything")
    func everything() async throws {
        let club = try await Club(every: 1)
        let hash = try #require(try await club.manifest("olga").parts.first).hash
        let pull = #"{"clientId":"c1","maxRevision":0,"changeSets":[]}"#
        let cyd = club.tokens["cyd"] ?? ""
        #expect(try await club.live.sync(pull, token: cyd).status == 200)
        #expect(try club.devices == ["c1 waits"])
        // Cyd becomes one of the office.
        let chief = try TokenStore(directory: club.live.folder.path).create(
            dataSet: "league", user: "cyd", roles: ["office"], now: 1
        ).token
        let whole = try await club.live.request(
            "GET", "/snapshot/\(hash)?client=c1", headers: ["Authorization: Bearer \(chief)"])
        #expect(whole.status == 200)
        #expect(try club.devices == ["c1 sees all"])
        #expect(try await club.file(hash, "olga", for: "c1").status == 403)
        #expect(try await club.file(hash, "olga").status == 200)
        let unnamed = try await club.live.request(
            "GET", "/snapshot/\(hash)", headers: [club.bearer("olga")])
        #expect(unnamed.status == 200)
        #expect(try club.devices == ["c1 sees all"])
        await club.live.stop()
    }

    @Test("when a record leaves the view, its files are no longer sent, and another one is made")
    func left() async throws {
        let club = try await Club()
        let old = try await club.manifest("ann")
        let hash = try #require(old.parts.first).hash
        try await club.save(
            """
            "create":[-1],"update":[1],"delete":[],"attributes":{\
            "-1":{"name":"Alba","team":1},"1":{"name":"Zoe","revision":1}}
            """)
        #expect(try await club.file(hash, "bob").status == 404)
        #expect(try await club.ask("bob") == nil)
        // The pause after the last one is not over.
        #expect(try await club.ask("bob") == nil)
        club.clock.advance(ViewSnapshots.longPause)
        let new = try await club.manifest("bob", from: 2)
        #expect(new.parts.first?.types.map(\.records) == [1, 2])
        #expect(try await club.file(hash, "bob").status == 404)
        try await waitUntil("the old files are gone") { try club.files.count == 3 }
        await club.live.stop()
    }

    @Test("a file that is asked for in vain is no request for one")
    func missingFile() async throws {
        let club = try await Club()
        #expect(try await club.ask("ann") == nil)
        for _ in 0..<3 {
            #expect(try await club.file(String(repeating: "0", count: 64), "ann").status == 404)
        }
        // They are made one after another, so one for Ann would be there by now.
        _ = try await club.manifest("dora")
        try await waitUntil("there is only Dora's") { try club.files.count == 3 }
        try await club.live.untilMetrics("martlet_snapshots_made_total 1")
        await club.live.stop()
    }

    @Test("there are no more, and no larger ones, than the limits say")
    func limits() async throws {
        var club = try await Club { $0.count = 1 }
        let first = try await club.manifest("ann")
        let second = try await club.manifest("dora")
        #expect(second.view != first.view)
        #expect(try await club.ask("bob") == nil)
        try await waitUntil("the old files are gone") { try club.files.count == 3 }
        await club.live.stop()
        for limit in [\ViewSnapshotLimits.bytes, \.leastRecords] {
            club = try await Club { $0[keyPath: limit] = limit == \.bytes ? 100 : 100_000 }
            for _ in 0..<3 { #expect(try await club.ask("ann") == nil) }
            if limit == \.bytes {
                try await club.live.untilMetrics("martlet_snapshots_made_total 1")
            }
            try await waitUntil("no file is kept") { try club.files == [] }
            #expect(try await club.ask("ann") == nil)
            await club.live.stop()
        }
        club = try await Club { $0.count = 0 }
        for _ in 0..<3 { #expect(try await club.ask("ann") == nil) }
        await club.live.stop()
    }
}
