import CompressionKit
import Foundation
import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords
import SocketTalk
import Testing
import Waiting
import ZstdKit

@testable import MartletServer

@Suite("Snapshots over HTTP")
struct SnapshotEndpointTests {
    private static let bearer = "Authorization: Bearer secret"

    /// A server whose data set has 30 teams and, at once, a snapshot of them.
    private func serverWithSnapshot(
        _ configure: (inout ServerConfiguration) throws -> Void = { _ in }
    ) async throws -> LiveServer {
        let live = try await LiveServer { configuration in
            configuration.snapshotEvery = 30
            try configure(&configuration)
        }
        for number in 1...30 {
            let answer = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
                "update":[],"delete":[],"attributes":{"-1":{"name":"Team \(number)",
                "founded":\(1_900 + number)}}}}]}
                """)
            #expect(answer.status == 200)
        }
        return live
    }

    /// The manifest, as soon as there is one of at least this revision.
    private func manifest(
        _ live: LiveServer, from revision: Revision = 1
    ) async throws -> SnapshotManifest {
        var newest: SnapshotManifest?
        try await waitUntil("there is a snapshot of revision \(revision)") {
            let answer = try await live.request("GET", "/snapshot", headers: [Self.bearer])
            if answer.status == 200 {
                newest = try SyncCoder.decodeSnapshotManifest(Array(answer.body.utf8))
            } else {
                #expect(answer.kind == "noSnapshot")
                #expect(answer.headers["retry-after"] == "10")
            }
            return newest.map { $0.revision >= revision } ?? false
        }
        return try #require(newest)
    }

    /// Fetches a file, or what the headers ask of it.
    private func fetch(
        _ live: LiveServer, _ hash: String, _ headers: [String] = [], method: String = "GET"
    ) async throws -> (status: Int, headers: [String: String], body: [UInt8]) {
        let client = RawClient(port: live.port)
        let head = ["\(method) /snapshot/\(hash) HTTP/1.1", "Host: localhost", "Connection: close"]
        await client.send((head + [Self.bearer] + headers + ["", ""]).joined(separator: "\r\n"))
        let bytes = await client.readBytes()
        let end = try #require(bytes.firstRange(of: [13, 10, 13, 10]))
        let answer = try LiveServer.answer(Array(bytes[..<end.upperBound]))
        return (answer.status, answer.headers, Array(bytes[end.upperBound...]))
    }

    private func inflated(_ bytes: [UInt8], zstd: Bool) throws -> [UInt8] {
        if zstd { return try ZstdReader().read(bytes) }
        return try Gzip.inflate(bytes, limit: 1 << 26, ratio: 5_000, ratioFloor: 1 << 20)
    }

    @Test("both codings hold the same file, as the manifest says, with the tables' rows in it")
    func filesOfBothCodings() async throws {
        let live = try await serverWithSnapshot()
        let manifest = try await manifest(live)
        #expect(manifest.revision == 30 && manifest.parts.map(\.name) == ["all"])
        let part = try #require(manifest.parts.first)
        #expect(part.types.map(\.records) == [30])
        for coding in part.codings {
            let answer = try await fetch(
                live, part.hash, ["Accept: application/\(coding.name)"])
            #expect(answer.status == 200)
            #expect(answer.headers["content-type"] == "application/\(coding.name)")
            #expect(answer.headers["content-encoding"] == nil)
            #expect(Int64(answer.body.count) == coding.sum.bytes)
            var sum = CRC32()
            sum.update(answer.body)
            #expect(sum.value == coding.sum.crc32)
            let plain = try inflated(answer.body, zstd: coding.name == "zstd")
            sum = CRC32()
            sum.update(plain)
            #expect(part.plain == .init(bytes: Int64(plain.count), crc32: sum.value))
            let path = live.folder.path + "/fetched.sqlite"
            try Data(plain).write(to: URL(fileURLWithPath: path))
            let reader = try SnapshotReader(path: path)
            try reader.verify()
            #expect(reader.description.dataSet == manifest.dataSet)
            #expect(
                try reader.connection.text(
                    "SELECT group_concat(name) FROM (SELECT name FROM teams ORDER BY id)")
                    == (1...30).map { "Team \($0)" }.joined(separator: ","))
        }
        try await live.untilMetrics(
            "martlet_snapshots_made_total 1",
            #"martlet_requests_total{endpoint="/snapshot/",status="200",kind="ok"} 2"#)
        await live.stop()
    }

    @Test("a range, a range of what was begun, one of another file, and one that is not there")
    func ranges() async throws {
        let live = try await serverWithSnapshot()
        let hash = try #require(try await manifest(live).parts.first).hash
        let whole = try await fetch(live, hash)
        let count = whole.body.count
        let etag = try #require(whole.headers["etag"])
        #expect(whole.headers["accept-ranges"] == "bytes")
        for (range, bytes) in [
            ("0-0", 0..<1), ("5-", 5..<count), ("-7", (count - 7)..<count),
            ("10-\(count + 99)", 10..<count), ("0-", 0..<count),
        ] {
            let answer = try await fetch(
                live, hash, ["Range: bytes=\(range)", "If-Range: \(etag)"])
            #expect(answer.status == 206, "\(range)")
            #expect(answer.body == Array(whole.body[bytes]), "\(range)")
            #expect(
                answer.headers["content-range"]
                    == "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(count)")
        }
        let other = try await fetch(
            live, hash, ["Range: bytes=5-", "If-Range: \"another\""])
        #expect(other.status == 200 && other.body == whole.body)
        let behind = try await fetch(live, hash, ["Range: bytes=\(count)-"])
        #expect(behind.status == 416)
        #expect(behind.headers["content-range"] == "bytes */\(count)")
        for ignored in ["bytes=1-2,4-5", "bytes=5-2", "lines=1-2", "bytes=a-b", "bytes=-"] {
            #expect(try await fetch(live, hash, ["Range: \(ignored)"]).status == 200)
        }
        let head = try await fetch(live, hash, method: "HEAD")
        #expect(head.status == 200 && head.body.isEmpty)
        #expect(head.headers["content-length"] == "\(count)")
        await live.stop()
    }

    @Test("a file is chosen by its hash alone, and only by who has a good token")
    func refusedSnapshotFile() async throws {
        let live = try await serverWithSnapshot()
        let part = try #require(try await manifest(live).parts.first)
        for path in ["", "x", "../tokens.sqlite", part.hash + "/", part.hash.uppercased()] {
            let answer = try await live.request(
                "GET", "/snapshot/" + path, headers: [Self.bearer])
            #expect(answer.status == 404 && answer.kind == "noSnapshotFile", "\(path)")
        }
        #expect(try await fetch(live, part.hash, ["Accept: text/html"]).status == 406)
        for path in ["/snapshot", "/snapshot/\(part.hash)"] {
            #expect(try await live.request("GET", path).status == 401)
            #expect(try await live.request("POST", path, headers: [Self.bearer]).status == 405)
        }
        let store = try TokenStore(directory: live.folder.path)
        let (token, record) = try store.create(dataSet: "league", now: 1)
        let (stranger, _) = try store.create(dataSet: "other", now: 1)
        func status(_ token: String) async throws -> Int {
            try await live.request(
                "GET", "/snapshot/\(part.hash)", headers: ["Authorization: Bearer \(token)"]
            ).status
        }
        #expect(try await status(token) == 200)
        #expect(try await status(stranger) == 404)
        #expect(try store.revoke(record.identifier, now: 2))
        #expect(try await status(token) == 401)
        await live.stop()
    }

    @Test("two generations stay; older files and what a killed process left are removed")
    func generations() async throws {
        let folder = TemporaryFolder()
        let live = try await LiveServer(folder: folder) { $0.snapshotEvery = 1 }
        var last: Revision = 0
        for number in 1...4 {
            _ = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
                "update":[],"delete":[],"attributes":{"-1":{"name":"Team \(number)"}}}}]}
                """)
            last = try await manifest(live, from: Revision(number)).revision
        }
        #expect(last == 4)
        await live.stop()
        let snapshots = folder.path + "/snapshots/league/everybody"
        func listing() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: snapshots).sorted()
        }
        let kept = try listing()
        #expect(kept.count == 6)
        #expect(kept.suffix(2) == ["manifest-3.json", "manifest-4.json"])
        for left in [
            "all.making", "all.gz.making", String(repeating: "a", count: 64) + ".sqlite.gz",
        ] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: snapshots + "/" + left))
        }
        // A manifest whose file is gone does not count.
        let second = try LiveServer.Answer(
            status: 200, headers: [:],
            body: String(contentsOfFile: snapshots + "/manifest-4.json", encoding: .utf8))
        let parts = try #require(try second.member("parts") as [[String: Any]]?)
        let hash = try #require(parts[0]["hash"] as? String)
        try FileManager.default.removeItem(atPath: "\(snapshots)/\(hash).sqlite.gz")
        let again = try await LiveServer(folder: folder) { $0.snapshotEvery = 1 }
        #expect(try await manifest(again, from: 4).revision == 4)
        await again.stop()
        #expect(try listing() == kept)
    }

    @Test("what came while one was made is in the next, though nothing comes after it")
    func meanwhile() async throws {
        let live = try await LiveServer { $0.snapshotEvery = 1 }
        for number in 1...10 {
            _ = try await live.sync(
                """
                {"maxRevision":0,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
                "update":[],"delete":[],"attributes":{"-1":{"name":"Team \(number)"}}}}]}
                """)
        }
        #expect(try await manifest(live, from: 10).revision == 10)
        await live.stop()
    }

    @Test("classes become parts, in the order of the seeding file")
    func classes() async throws {
        let live = try await serverWithSnapshot {
            $0.seeding = [UInt8](
                #"{"classes":[{"name":"first","types":{"teams":"founded > 1920"}}]}"#.utf8)
        }
        let manifest = try await manifest(live)
        #expect(manifest.parts.map(\.name) == ["first", "rest"])
        #expect(manifest.parts.map(\.records) == [10, 20])
        await live.stop()
    }

    @Test(
        "a seeding file that says something else is refused at the start",
        arguments: [
            "{}", #"{"classes":[]}"#, #"{"classes":[{"name":"rest","types":{"teams":"*"}}]}"#,
            #"{"classes":[{"name":"A/..","types":{}}]}"#,
            #"{"classes":[{"name":"a","types":{"nobody":"*"}}]}"#,
            #"{"classes":[{"name":"a","types":{"teams":"nothing > 3"}}]}"#,
        ])
    func seedingRefused(file: String) async throws {
        await #expect(throws: (any Error).self) {
            try await LiveServer { $0.seeding = [UInt8](file.utf8) }
        }
    }

    @Test("an empty data set has no snapshot, and says that waiting does not help")
    func emptyDataSet() async throws {
        let live = try await LiveServer()
        let answer = try await live.request("GET", "/snapshot", headers: [Self.bearer])
        #expect(answer.status == 404 && answer.kind == "noSnapshot")
        #expect(answer.headers["retry-after"] == nil)
        await live.stop()
    }
}
