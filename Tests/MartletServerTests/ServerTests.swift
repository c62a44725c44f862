import DeflateKit
import Foundation
import SocketTalk
import Testing
import Waiting

@testable import MartletServer

@Suite("Server")
struct ServerTests {
    static let create = """
        {"clientId": "device-1", "protocol": 1, "maxRevision": 0, "changeSets": [
          {"identifier": "set-1", "sequence": 1, "seen": 0, "types": ["teams", "players"],
           "teams": {"create": [-1], "update": [], "delete": [],
                     "attributes": {"-1": {"name": "Eagles", "founded": 1999}}},
           "players": {"create": [-2], "update": [], "delete": [],
                       "attributes": {"-2": {"team": -1, "name": "Ann", "active": true}}}}]}
        """

    @Test("takes changes, gives permanent ids, and passes them on to the next device")
    func sync() async throws {
        let live = try await LiveServer()
        let answer = try await live.sync(Self.create)
        #expect(answer.status == 200)
        #expect(answer.headers["content-type"] == "application/json")
        #expect(answer.headers["cache-control"] == "no-store")
        #expect(answer.headers["x-content-type-options"] == "nosniff")
        #expect(try answer.member("maxRevision") == 1)
        let set = try #require(answer.changeSets.first)
        #expect(set["conflict"] as? Bool == false)
        #expect(set["identifier"] as? String == "set-1")
        #expect(answer.body.contains(#""__oldId__":-1"#))
        let other = try await live.sync(
            #"{"clientId": "device-2", "protocol": 1, "maxRevision": 0, "changeSets": []}"#)
        #expect(other.body.contains("Eagles"))
        #expect(!other.body.contains("__oldId__"))
        // Nothing new: an answer without sets.
        let idle = try await live.sync(
            #"{"clientId": "device-2", "protocol": 1, "maxRevision": 1, "changeSets": []}"#)
        #expect(idle.status == 200)
        #expect(idle.changeSets.isEmpty)
        await live.stop()
    }

    @Test("answers the same set the same way, before and after a restart")
    func repeatedAnswer() async throws {
        let live = try await LiveServer()
        let first = try await live.sync(Self.create)
        let second = try await live.sync(Self.create)
        #expect(second.status == 200)
        #expect(second.body == first.body)
        await live.stop()
        let again = try await LiveServer(folder: live.folder)
        let third = try await again.sync(Self.create)
        #expect(third.body == first.body)
        #expect(try third.member("maxRevision") == 1)
        await again.stop()
    }

    @Test("a set that comes before the one it depends on waits for it")
    func dependencyInLaterRequest() async throws {
        let live = try await LiveServer { $0.dependencyWaitSeconds = 600 }
        let body = Self.create.replacing("device-1", with: "device-2")
            .replacing("set-1", with: "set-2").replacing("Eagles", with: "Hawks")
            .replacing(#""seen": 0"#, with: #""seen": 0, "dependencyIdentifier": "set-1""#)
        async let late = live.sync(body)
        try await waitUntil("the set waits") {
            try await live.request("GET", "/metrics").body
                .contains(#"martlet_queue_depth{data_set="league"} 1"#)
        }
        #expect(try await live.sync(Self.create).member("maxRevision") == 1)
        let answer = try await late
        #expect(try answer.member("maxRevision") == 2)
        #expect(answer.changeSets.last?["conflict"] as? Bool == false)
        await live.stop()
    }

    @Test("a set that depends on itself is refused at once")
    func dependencyOnItself() async throws {
        let live = try await LiveServer { $0.dependencyWaitSeconds = 600 }
        let body = Self.create.replacing(
            #""seen": 0"#, with: #""seen": 0, "dependencyIdentifier": "set-1""#)
        let answer = try await live.sync(body)
        #expect(answer.changeSets.last?["reason"] as? String == "dependency")
        #expect(answer.changeSets.last?["retryAfter"] == nil)
        await live.stop()
    }

    @Test("reads and writes gzip")
    func gzip() async throws {
        let live = try await LiveServer()
        let long = Self.create.replacing("Ann", with: String(repeating: "Ann ", count: 5_000))
        let answer = try await live.request(
            "POST", "/sync",
            headers: [
                "Authorization: Bearer secret", "Content-Type: application/json; charset=utf-8",
                "Content-Encoding: gzip", "Accept-Encoding: br, gzip",
            ], body: OneShotGzip.compress([UInt8](long.utf8)))
        #expect(answer.status == 200)
        #expect(answer.headers["content-encoding"] == "gzip")
        #expect(answer.headers["vary"] == "Accept-Encoding")
        #expect(answer.body.contains("Eagles"))
        let plain = try await live.sync(long)
        #expect(plain.headers["content-encoding"] == nil)
        #expect(plain.body == answer.body)
        await live.stop()
    }

    @Test("serves the schema to who has a token")
    func schemaForToken() async throws {
        let live = try await LiveServer()
        #expect(try await live.request("GET", "/schema").status == 401)
        let answer = try await live.request(
            "GET", "/schema", headers: ["Authorization: Bearer secret", "Accept-Encoding: gzip"])
        #expect(answer.status == 200)
        let types: [[String: Any]] = try #require(try answer.member("types"))
        #expect(types.map { $0["name"] as? String } == ["teams", "players"])
        let hash: String = try #require(try answer.member("hash"))
        #expect(hash.count == 16)
        let ddl: String = try #require(try answer.member("ddl"))
        #expect(ddl.contains("CREATE TABLE teams"))
        #expect(ddl.contains("players_by_team"))
        #expect(!ddl.contains("martlet_"))
        let synced = try await live.sync(
            #"{"clientId": "d", "protocol": 1, "maxRevision": 0, "changeSets": []}"#)
        #expect(try synced.member("schema") == hash)
        let dataSet: String = try #require(try answer.member("dataSet"))
        #expect(try synced.member("dataSet") == dataSet)
        await live.stop()
    }

    @Test("tells how it does, and its numbers on this machine only")
    func health() async throws {
        let live = try await LiveServer()
        #expect(try await live.request("GET", "/healthz").body == #"{"status":"ok"}"#)
        _ = try await live.sync(Self.create)
        _ = try await live.sync("not json")
        try await live.untilMetrics(
            #"martlet_requests_total{endpoint="/sync",status="200",kind="ok"} 1"#,
            #"martlet_requests_total{endpoint="/sync",status="400",kind="malformed"} 1"#,
            "martlet_sets_accepted_total 1", #"martlet_queue_depth{data_set="league"} 0"#,
            "martlet_batch_sets_count 1")
        for header in ["X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "Via: x"] {
            let answer = try await live.request("GET", "/metrics", headers: [header])
            #expect(answer.status == 404)
        }
        await live.stop()
    }

    @Test("says what an address takes, and what it does not know")
    func addresses() async throws {
        let live = try await LiveServer()
        let cases: [(String, String, Int, String?)] = [
            ("GET", "/", 404, nil), ("GET", "/sync/", 404, nil), ("POST", "/syncs", 404, nil),
            ("GET", "/../tokens.sqlite", 404, nil), ("GET", "/%73ync", 404, nil),
            ("GET", "/sync", 405, "POST"), ("PUT", "/sync", 405, "POST"),
            ("BREW", "/sync", 405, "POST"), ("POST", "/schema", 405, "GET, HEAD"),
            ("DELETE", "/healthz", 405, "GET, HEAD"), ("OPTIONS", "*", 404, nil),
        ]
        for (method, path, status, allow) in cases {
            let answer = try await live.request(method, path)
            #expect(answer.status == status, "\(method) \(path)")
            #expect(answer.headers["allow"] == allow, "\(method) \(path)")
            #expect(answer.headers["content-type"] == "application/problem+json")
        }
        await live.stop()
    }

    @Test("keeps data sets apart: other token, other data")
    func dataSets() async throws {
        let live = try await LiveServer { $0.tokens.append(try FixedToken("club:other")) }
        _ = try await live.sync(Self.create)
        #expect(try await live.state().contains("Eagles"))
        let other = try await live.state(token: "other")
        #expect(!other.contains("Eagles"))
        #expect(other.contains(#""maxRevision":0"#))
        // The same device and set there are new.
        let answer = try await live.sync(Self.create, token: "other")
        #expect(try answer.member("maxRevision") == 1)
        let files = try FileManager.default.contentsOfDirectory(atPath: live.folder.path)
        #expect(files.contains("league.sqlite") && files.contains("club.sqlite"))
        await live.stop()
    }

    @Test("a token made or revoked by another process counts from the next request on")
    func tokensOfOtherProcess() async throws {
        let live = try await LiveServer()
        let store = try TokenStore(directory: live.folder.path)
        let (token, record) = try store.create(dataSet: "fresh", user: "ann", now: 1)
        let answer = try await live.sync(Self.create, token: token)
        #expect(answer.status == 200)
        #expect(try store.revoke(record.identifier, now: 2))
        let refused = try await live.sync(Self.create, token: token)
        #expect(refused.status == 401)
        #expect(refused.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
        #expect(refused.kind == "unauthorized")
        await live.stop()
    }

    @Test("lets nobody in without a good token, and tells all of them the same")
    func unauthorized() async throws {
        let live = try await LiveServer()
        let json = "Content-Type: application/json"
        let body = [UInt8](Self.create.utf8)
        var bodies: Set<String> = []
        for headers in [
            [json], [json, "Authorization: Bearer wrong"], [json, "Authorization: Bearer secre"],
            [json, "Authorization: Basic secret"], [json, "Authorization: secret"],
            [json, "Authorization: Bearer"], [json, "Authorization: Bearer secret extra"],
            [json, "Authorization: Bearer secret", "Authorization: Bearer secret"],
            [json, "Cookie: token=secret"],
        ] {
            let answer = try await live.request("POST", "/sync", headers: headers, body: body)
            #expect(answer.status == 401, "\(headers)")
            #expect(answer.headers["www-authenticate"] != nil)
            bodies.insert(answer.body)
        }
        let query = try await live.request(
            "POST", "/sync?token=secret&access_token=secret", headers: [json], body: body)
        #expect(query.status == 401)
        #expect(bodies.count == 1)
        #expect(try await live.state().contains(#""maxRevision":0"#))
        await live.stop()
    }

    @Test("applies the rules to the roles of a token")
    func rules() async throws {
        let live = try await LiveServer {
            $0.rules = [UInt8](#"{"types": {"teams": {"create": ["admin"]}}}"#.utf8)
        }
        let store = try TokenStore(directory: live.folder.path)
        let admin = try store.create(dataSet: "club", roles: ["admin"], now: 1)
        let fan = try store.create(dataSet: "club", roles: ["fan"], now: 1)
        let refused = try await live.sync(Self.create, token: fan.token)
        #expect(refused.status == 200)
        #expect(refused.changeSets.first?["conflict"] as? Bool == true)
        #expect(refused.changeSets.first?["reason"] as? String == "permission")
        let accepted = try await live.sync(
            Self.create.replacing("device-1", with: "device-2").replacing("set-1", with: "set-2"),
            token: admin.token)
        #expect(accepted.changeSets.first?["conflict"] as? Bool == false)
        await live.stop()
    }

    @Test("logs lines of JSON with identifiers, never a token or a value")
    func log() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(Self.create)
        _ = try await live.sync("{", token: "wrong-token")
        _ = try await live.sync(#"{"maxRevision": "Eagles"}"#)
        await live.stop()
        let lines = live.logLines
        #expect(lines.count == 5)
        for line in lines {
            #expect(throws: Never.self) {
                try JSONSerialization.jsonObject(with: Data(line.utf8))
            }
            for secret in ["secret", "wrong-token", "Eagles", "Ann", live.folder.path] {
                #expect(!line.contains(secret))
            }
        }
        #expect(lines.contains { $0.contains(#""device":"device-1""#) })
        #expect(lines.contains { $0.contains(#""kind":"unauthorized""#) })
    }
}

@Suite("Starting and stopping")
struct StartTests {
    @Test("a second server on the same folder is refused, until the first has stopped")
    func lock() async throws {
        let first = try await LiveServer()
        let failure = await #expect(throws: ServerFailure.self) {
            try await LiveServer(folder: first.folder)
        }
        #expect(failure?.message.contains("Another martlet server") == true)
        // The first is none the worse for it.
        #expect(try await first.sync(ServerTests.create).status == 200)
        await first.stop()
        let second = try await LiveServer(folder: first.folder)
        #expect(try await second.state().contains("Eagles"))
        await second.stop()
    }

    @Test("nothing is left beside the files, and stop may be called twice")
    func checkpoint() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(ServerTests.create)
        await live.stop()
        await live.stop()
        let files = try FileManager.default.contentsOfDirectory(atPath: live.folder.path)
        #expect(files.filter { $0.hasSuffix("-wal") || $0.hasSuffix("-shm") }.isEmpty)
        #expect(Set(files).isSuperset(of: ["league.sqlite", "tokens.sqlite"]))
    }

    @Test("SIGTERM ends it in good order: the files are closed, and the next server has all")
    func termination() async throws {
        let folder = TemporaryFolder()
        var configuration = ServerConfiguration(
            dataDirectory: folder.path, schema: LiveServer.schema)
        configuration.tokens = [try FixedToken("league:secret")]
        configuration.log = .silent
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let running = Task { [configuration] in
            defer { port.finish() }
            try await MartletServer.run(configuration) { port.yield($0) }
        }
        var found: Int?
        for await number in ports {
            found = number
            break
        }
        let client = RawClient(port: try #require(found))
        let body = ServerTests.create
        await client.send(
            "POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n"
                + "Content-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        #expect(await client.read(until: "Eagles").hasPrefix("HTTP/1.1 200 "))
        kill(getpid(), SIGTERM)
        try await running.value
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!files.contains { $0.hasSuffix("-wal") })
        let again = try await LiveServer(folder: folder)
        #expect(try await again.state().contains("Eagles"))
        await again.stop()
    }

    @Test("what was accepted is answered before the server is gone")
    func finishing() async throws {
        let live = try await LiveServer()
        let clients = (0..<20).map { _ in RawClient(port: live.port) }
        for (number, client) in clients.enumerated() {
            let body =
                ServerTests.create.replacing("device-1", with: "device-\(number)")
                .replacing("set-1", with: "set-\(number)")
                .replacing("Eagles", with: "Team \(number)")
            await client.send(
                "POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n"
                    + "Content-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        }
        await live.stop()
        var answered = 0
        for client in clients {
            let answer = await client.readAll()
            if answer.hasPrefix("HTTP/1.1 200 ") { answered += 1 }
        }
        let again = try await LiveServer(folder: live.folder)
        let state = try await again.sync(#"{"maxRevision": 0, "changeSets": []}"#)
        #expect(state.changeSets.count >= answered)
        await again.stop()
    }

    @Test("types and columns that were added to the schema are there after a restart")
    func migrationAtRestart() async throws {
        let live = try await LiveServer()
        _ = try await live.sync(ServerTests.create)
        await live.stop()
        let again = try await LiveServer(folder: live.folder) {
            $0.schema = LiveServer.schema.replacing("logo BLOB", with: "logo BLOB, motto TEXT")
            $0.schema += "CREATE TABLE coaches (id INTEGER PRIMARY KEY, name TEXT);"
        }
        let schema = try await again.request(
            "GET", "/schema", headers: ["Authorization: Bearer secret"])
        #expect(schema.body.contains("motto"))
        #expect(schema.body.contains("coaches"))
        #expect(try await again.state().contains("Eagles"))
        await again.stop()
    }

    @Test("says in a sentence why it cannot start, and leaves nothing running")
    func failuresAtStart() async throws {
        let folder = TemporaryFolder()
        await #expect(throws: (any Error).self) {
            try await LiveServer(folder: folder) { $0.schema = "CREATE TABLE x (" }
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        let rules = await #expect(throws: ServerFailure.self) {
            try await LiveServer(folder: folder) {
                $0.rules = [UInt8](#"{"types": {"cats": {}}}"#.utf8)
            }
        }
        #expect(rules?.message.contains("cats") == true)
        await #expect(throws: ServerFailure.self) {
            try await LiveServer(folder: folder) { $0.tlsKeyPath = "/nowhere" }
        }
        let live = try await LiveServer(folder: folder)
        let second = TemporaryFolder()
        await #expect(throws: (any Error).self) {
            try await LiveServer(folder: second) { $0.port = live.port }
        }
        // The failed start let go of its folder.
        let third = try await LiveServer(folder: second)
        await third.stop()
        await live.stop()
    }
}
