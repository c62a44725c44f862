import Foundation
import MartletServer
import SQLiteKit
import SocketTalk
import Testing
import Waiting

@Suite("Many data sets", .timeLimit(.minutes(5)))
struct ManyDataSetsTests {
    private static func tokens(_ names: [String]) throws -> [FixedToken] {
        try names.map { try FixedToken("\($0):token-\($0)") }
    }

    private static func team(_ name: String) -> String {
        """
        {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
        "update":[],"delete":[],"attributes":{"-1":{"name":"\(name)"}}}}]}
        """
    }

    private static func metric(_ name: String, _ live: LiveServer) async throws -> Int? {
        let text = try await live.request("GET", "/metrics").body
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + " ") }
        return line.flatMap { Int($0.dropFirst(name.count + 1)) }
    }

    /// Puts a file that is no SQLite file in place of a data set.
    private static func damage(_ name: String, in folder: TemporaryFolder) throws -> String {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        let path = folder.path + "/\(name).sqlite"
        try Data(repeating: 65, count: 10_000).write(to: URL(fileURLWithPath: path))
        return path
    }

    private static func waitUntilOpen(_ count: Int, _ live: LiveServer) async throws {
        try await waitUntil("\(count) data sets are open") {
            try await metric("martlet_data_sets_open", live) == count
        }
    }

    @Test("one that nobody uses is closed, and opened with all it has when somebody asks for it")
    func idleDataSet() async throws {
        let live = try await LiveServer { $0.closeAfter = .milliseconds(40) }
        #expect(try await live.sync(Self.team("Cats")).status == 200)
        try await Self.waitUntilOpen(0, live)
        // It was closed in good order, so no other file is left.
        let path = live.folder.path + "/league.sqlite"
        #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
        #expect(try await live.state().contains("Cats"))
        #expect(try await live.request("GET", "/readyz").status == 200)

        try await Self.waitUntilOpen(0, live)
        let other = try Connection(path: path)
        try other.execute("INSERT INTO teams (name) VALUES ('Dogs')")
        try await waitUntil("what was written while it was closed is there") {
            try await live.state().contains("Dogs")
        }
        #expect(try await Self.metric("martlet_data_sets", live) == 1)
        #expect(try await Self.metric("martlet_data_sets_closed_total", live) ?? 0 >= 2)
        await live.stop()
    }

    @Test("a stream and a long poll keep theirs open")
    func streams() async throws {
        let live = try await LiveServer {
            $0.closeAfter = .milliseconds(40)
            $0.tokens = try Self.tokens(["streamed", "polled", "unused"])
        }
        let stream = RawClient(port: live.port)
        await stream.send(
            """
            GET /deltas?since=0 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-streamed\r\n\
            Accept: text/event-stream\r\n\r\n
            """)
        _ = await stream.read(until: "retry: 2000")
        let poll = RawClient(port: live.port)
        await poll.send(
            """
            GET /deltas?since=0&wait=60 HTTP/1.1\r\nHost: h\r\n\
            Authorization: Bearer token-polled\r\n\r\n
            """)
        try await Self.waitUntilOpen(2, live)
        for name in ["streamed", "polled"] {
            let other = try Connection(path: live.folder.path + "/\(name).sqlite")
            try other.execute("INSERT INTO teams (name) VALUES ('By SQL')")
        }
        #expect(await stream.read(until: "By SQL").contains("By SQL"))
        #expect(await poll.read(until: "By SQL").contains("By SQL"))
        // The poll has ended, the stream has not.
        try await Self.waitUntilOpen(1, live)
        await live.stop()
    }

    @Test("a damaged file stops nobody else, and the log names it")
    func damagedFileAmongOthers() async throws {
        let folder = TemporaryFolder()
        let path = try Self.damage("broken", in: folder)
        let live = try await LiveServer(folder: folder) {
            $0.tokens = try Self.tokens(["broken", "sound"])
        }
        #expect(try await live.sync(Self.team("Cats"), token: "token-sound").status == 200)
        let answer = try await live.sync(Self.team("Cats"), token: "token-broken")
        #expect(answer.status == 503)
        #expect(answer.kind == "storage")
        #expect(live.logLines.contains { $0.contains("broken.sqlite") && $0.contains("remedy") })
        #expect(try await Self.metric("martlet_data_sets_failed", live) == 1)
        #expect(try await live.request("GET", "/readyz").status == 200)
        // Once the file is repaired, it is opened without a restart.
        try FileManager.default.removeItem(atPath: path)
        try await waitUntil("it is served") {
            try await live.sync(Self.team("Cats"), token: "token-broken").status == 200
        }
        #expect(try await Self.metric("martlet_data_sets_failed", live) == 0)
        await live.stop()
    }

    @Test(
        "where no data set can be opened, the server does not start, and says which file is to blame"
    )
    func allDamaged() async throws {
        let folder = TemporaryFolder()
        _ = try Self.damage("league", in: folder)
        let failure = await #expect(throws: ServerFailure.self) {
            _ = try await LiveServer(folder: folder)
        }
        #expect(failure?.message.contains("league.sqlite") == true)
    }

    @Test("only so many are open at a time: the one unused for longest makes room")
    func boundedOpenDataSets() async throws {
        let names = ["a", "b", "c"]
        let live = try await LiveServer {
            $0.tokens = try Self.tokens(names)
            $0.mostOpen = 2
        }
        for round in 1...3 {
            for name in names {
                let answer = try await live.sync(Self.team("\(round)"), token: "token-\(name)")
                #expect(answer.status == 200)
                #expect(try await Self.metric("martlet_data_sets_open", live) ?? 3 <= 2)
            }
        }
        for name in names {
            let state = try await live.state(token: "token-\(name)")
            for round in 1...3 { #expect(state.contains("\"name\":\"\(round)\"")) }
        }
        // Two data sets are in use, so the server may not close them.
        var streams: [RawClient] = []
        for name in ["a", "b"] {
            let stream = RawClient(port: live.port)
            await stream.send(
                """
                GET /deltas?since=0 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer token-\(name)\r\n\
                Accept: text/event-stream\r\n\r\n
                """)
            _ = await stream.read(until: "\"nextVersion\":3")
            streams.append(stream)
        }
        let refused = try await live.sync(Self.team("4"), token: "token-c")
        #expect(refused.kind == "busy")
        await streams[0].abort()
        try await waitUntil("there is room again") {
            try await live.sync(Self.team("4"), token: "token-c").status == 200
        }
        await live.stop()
    }

    @Test("requests that meet a data set as it closes are answered all the same")
    func closing() async throws {
        let live = try await LiveServer {
            $0.closeAfter = .milliseconds(1)
            $0.tokens = try Self.tokens(["a", "b"])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<4 {
                group.addTask {
                    for number in 0..<25 {
                        let answer = try await live.sync(
                            Self.team("\(client)-\(number)"),
                            token: "token-\(["a", "b"][client % 2])")
                        #expect(answer.status == 200, "\(answer.body)")
                    }
                }
            }
            try await group.waitForAll()
        }
        for name in ["a", "b"] {
            let state = try await live.state(token: "token-\(name)")
            #expect(state.occurrences("\"name\":") == 50)
        }
        await live.stop()
    }

    @Test("of many, none is opened before it is asked for, but one to see that the schema fits")
    func start() async throws {
        let names = (0..<40).map { "team-\($0)" }
        let live = try await LiveServer { $0.tokens = try Self.tokens(names) }
        #expect(try await Self.metric("martlet_data_sets", live) == 40)
        #expect(try await Self.metric("martlet_data_sets_open", live) == 1)
        #expect(try await live.sync(Self.team("Cats"), token: "token-team-33").status == 200)
        #expect(try await Self.metric("martlet_data_sets_open", live) == 2)
        await live.stop()
    }
}
