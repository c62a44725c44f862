import Foundation
import HTTPKit
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import SocketTalk
import Synchronization
import Testing

/// Tests how a transport treats a program that answers in the server's place.
@Suite("Strangers at the server's address", .timeLimit(.minutes(5)))
struct StrangerTests {
    private static func transport(_ answer: String) throws -> (RawServer, URLSessionTransport) {
        let server = RawServer { connection in
            _ = connection.request()
            connection.send(answer)
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
        return (server, try URLSessionTransport(server: url, token: "t"))
    }

    private static let part = SnapshotManifest.Part(
        name: "all", hash: String(repeating: "0", count: 64), plain: .init(bytes: 9, crc32: 1),
        types: [], codings: [.init(name: "gzip", sum: .init(bytes: 90, crc32: 1))])

    @Test(
        "who end the connection within the head, or send a trailer, end no program",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Ty", "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n",
        ])
    func cutHead(answer: String) async throws {
        let (server, transport) = try Self.transport(answer)
        let body = try? await transport.exchange([UInt8]("{}".utf8)).body
        #expect(body.map { $0.count <= 2 } ?? true)
        let unread = await #expect(throws: SyncError.self) { try await transport.schema() }
        #expect(unread?.remedy == .wait)
        await #expect(throws: TransportFailure.self) { try await transport.manifest() }
        await #expect(throws: TransportFailure.self) {
            try await transport.open(Self.part, from: 0, tag: nil)
        }
        await #expect(throws: TransportFailure.self) {
            try await transport.deltas(DeltaCursor(since: 0)) { _ in }
        }
        server.stop()
    }

    @Test(
        "are taken for a network that does not work, not for a server that refuses",
        arguments: [200, 302, 401, 403, 404, 407, 502, 504, 511])
    func pages(status: Int) async throws {
        let page = "<html>Log in</html>"
        let (server, transport) = try Self.transport(
            "HTTP/1.1 \(status) X\r\nContent-Type: text/html\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
                + "Content-Length: \(page.utf8.count)\r\nConnection: close\r\n\r\n\(page)")
        let schema = await #expect(throws: SyncError.self) { try await transport.schema() }
        #expect(schema?.kind == .offline)
        // A proxy's 404 does not say that the server has no snapshot.
        let manifest = await #expect(throws: TransportFailure.self) {
            try await transport.manifest()
        }
        #expect(manifest?.problem?.isOfServer == false)
        await #expect(throws: TransportFailure.self) {
            try await transport.open(Self.part, from: 50, tag: nil)
        }
        server.stop()
    }

    @Test(
        "are told of in sentences by a device that has a file and fetches its first data later",
        arguments: [nil, 502])
    func sentencesOfSeeding(status: Int?) async throws {
        let live = try LiveServer()
        let empty = try await MartletClient.open(
            path: live.file("later"), schema: LiveServer.schema, transport: nil)
        await empty.close()
        let (server, transport) = try Self.transport(
            status.map { "HTTP/1.1 \($0) X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" }
                ?? "")
        let device = try await live.device("later", transport: transport) { $0.seeding = .server }
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.kind == .offline)
        let message = try #require(error?.message)
        if let status {
            #expect(message == Problem.unrecognized(status: status).detail)
        } else {
            #expect(message.hasPrefix("The connection failed: ") && message.hasSuffix("."))
        }
        await device.close()
        server.stop()
    }

    @Test(
        "give no bytes of a file: a page, another length, another piece",
        arguments: [
            "200 X\r\nContent-Type: text/html\r\nContent-Length: 90",
            "200 X\r\nContent-Type: text/html",
            "200 X\r\nContent-Type: application/gzip\r\nContent-Length: 91",
            "206 X\r\nContent-Type: text/html\r\nContent-Range: bytes 50-89/90\r\nContent-Length: 40",
            "206 X\r\nContent-Type: application/gzip\r\nContent-Range: bytes 49-89/90",
            "206 X\r\nContent-Type: application/gzip\r\nContent-Range: bytes 50-89/90\r\n"
                + "Content-Length: 41",
        ])
    func piecesOfStrangers(head: String) async throws {
        let page = String(repeating: "x", count: 91)
        let (server, transport) = try Self.transport(
            "HTTP/1.1 \(head)\r\nConnection: close\r\n\r\n\(page)")
        await #expect(throws: TransportFailure.self) {
            try await transport.open(Self.part, from: 50, tag: nil)
        }
        server.stop()
    }

    @Test("who pass on no tag have a download go on by its range alone", arguments: [nil, "\"a\""])
    func range(tag: String?) async throws {
        let asked = Mutex("")
        let server = RawServer { connection in
            let text = connection.request()
            asked.withLock { $0 = text }
            connection.send(
                "HTTP/1.1 206 X\r\nContent-Type: application/gzip\r\nContent-Length: 40\r\n"
                    + "Content-Range: bytes 50-89/90\r\n\r\n" + String(repeating: "x", count: 40))
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
        let transport = try URLSessionTransport(server: url, token: "t")
        let bytes = try await transport.open(Self.part, from: 50, tag: tag)
        #expect(bytes.offset == 50)
        let text = asked.withLock(\.self)
        #expect(text.contains("Range: bytes=50-\r\n"))
        #expect(text.contains("If-Range: \"a\"\r\n") == (tag != nil))
        server.stop()
    }

    @Test("whose tables are of another data set give a device none")
    func tables() async throws {
        let server = try LiveServer()
        try await server.start()
        let way = try await server.transport()
        let between = HTTPServer(options: HTTPServerOptions()) { request in
            if request.path == "/schema" {
                let ddl = "CREATE TABLE secrets (id INTEGER PRIMARY KEY)"
                return HTTPResponse(
                    status: 200, headers: [HTTPField("Content-Type", "application/json")],
                    body: [[UInt8](#"{"dataSet":"theirs","ddl":"\#(ddl)"}"#.utf8)])
            }
            guard let answer = try? await way.exchange(request.body) else {
                return HTTPResponse(status: 502, text: "nothing came\n")
            }
            return HTTPResponse(
                status: answer.status, headers: [HTTPField("Content-Type", "application/json")],
                body: [answer.body])
        }
        let port = try await between.start()
        let url = try #require(URL(string: "http://127.0.0.1:\(port)"))
        let path = server.file("begun")
        let error = await #expect(throws: SyncError.self) {
            _ = try await MartletClient.open(path: path, schema: nil, server: url, token: "t")
        }
        #expect(error?.kind == .wrongDataSet)
        #expect(!FileManager.default.fileExists(atPath: path))
        let device = try await MartletClient.open(
            path: path, schema: nil, server: try await server.url, token: LiveServer.token)
        #expect(try await device.read { try $0.rows("SELECT * FROM teams") }.isEmpty)
        await device.close()
        await between.stop(grace: .zero)
        await server.stop()
    }

    @Test("give nothing to a device that knows whose it is to be")
    func expected() async throws {
        let server = try LiveServer()
        try await server.start()
        let near = try await server.device("near")
        try await near.write { try $0.insert("teams", ["name": "Owls"]) }
        try await near.sync()
        let own = try #require(try await near.status().dataSet)
        let lost = try await server.device("lost") { $0.dataSet = "another" }
        let error = await #expect(throws: SyncError.self) { try await lost.sync() }
        #expect(error?.kind == .wrongDataSet)
        #expect(try await lost.read { try $0.rows("SELECT * FROM teams") }.isEmpty)
        await lost.close()
        let found = try await server.device("lost") { $0.dataSet = own }
        try await found.sync()
        #expect(try await found.read { try $0.rows("SELECT * FROM teams") }.count == 1)
        await found.close()
        // The file is one of that data set by now.
        let refused = await #expect(throws: SyncError.self) {
            _ = try await server.device("lost") { $0.dataSet = "another" }
        }
        #expect(refused?.kind == .wrongDataSet)
        // A device without tables asks for them first.
        var options = ClientOptions()
        options.dataSet = "another"
        let (path, url, asking) = (server.file("bare"), try await server.url, options)
        let bare = await #expect(throws: SyncError.self) {
            _ = try await MartletClient.open(
                path: path, schema: nil, server: url, token: LiveServer.token, options: asking)
        }
        #expect(bare?.kind == .wrongDataSet)
        #expect(!FileManager.default.fileExists(atPath: path))
        await near.close()
        await server.stop()
    }

    @Test("refuse nothing in the server's words, once it has repeated the names of requests")
    func nameless() async throws {
        let problem = #"{"status":403,"kind":"clientBound","detail":"no"}"#
        let isNamed = Mutex(false)
        let status = Mutex(403)
        let server = RawServer { connection in
            let request = connection.request()
            let name = request.split(separator: "\r\n")
                .first { $0.hasPrefix("Martlet-Request: ") }
            let line = isNamed.withLock(\.self) ? name.map { "\($0)\r\n" } ?? "" : ""
            connection.send(
                "HTTP/1.1 \(status.withLock(\.self)) X\r\nContent-Length: \(problem.utf8.count)\r\n\(line)"
                    + "Content-Type: application/json\r\nConnection: close\r\n\r\n\(problem)")
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
        let transport = try URLSessionTransport(server: url, token: "t")
        func isBelieved() async throws -> Bool {
            try await !transport.exchange([UInt8]("{}".utf8)).body.isEmpty
        }
        #expect(try await isBelieved())
        isNamed.withLock { $0 = true }
        #expect(try await isBelieved())
        isNamed.withLock { $0 = false }
        #expect(try await !isBelieved())
        // A server that has too much to do may say so before it knows the request.
        for busy in [408, 429, 503] {
            status.withLock { $0 = busy }
            #expect(try await isBelieved())
        }
        status.withLock { $0 = 409 }
        #expect(try await !isBelieved())
        isNamed.withLock { $0 = true }
        #expect(try await isBelieved())
        server.stop()
    }

    @Test(
        "whose JSON is not the server's, or half of it, are a network that does not work",
        arguments: [
            #"{"login":"http://10.0.0.1"}"#,
            // Cut at the end of an object inside.
            #"{"ddl":"","lineage":"","types":[{"name":"a"}"#,
        ])
    func jsonOfStrangers(answer: String) async throws {
        let (server, transport) = try Self.transport(
            "HTTP/1.1 200 X\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(answer.utf8.count)\r\nConnection: close\r\n\r\n\(answer)")
        let schema = await #expect(throws: SyncError.self) { try await transport.schema() }
        #expect(schema?.message == Problem.unrecognized(status: 200).detail)
        let list = await #expect(throws: TransportFailure.self) { try await transport.manifest() }
        #expect(list?.problem?.isOfServer == false)
        server.stop()
    }

    @Test("who answer a comparison with a page are a network that does not work")
    func comparison() async throws {
        let server = try LiveServer()
        try await server.start()
        let way = try await server.transport()
        let count = Mutex(0)
        let between = HTTPServer(options: HTTPServerOptions()) { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == 1, let answer = try? await way.exchange(request.body) else {
                return HTTPResponse(status: 200, text: "<html>Log in</html>")
            }
            return HTTPResponse(
                status: answer.status, headers: [HTTPField("Content-Type", "application/json")],
                body: [answer.body])
        }
        let port = try await between.start()
        let url = try #require(URL(string: "http://127.0.0.1:\(port)"))
        let device = try await server.device(
            "far", transport: try URLSessionTransport(server: url, token: LiveServer.token))
        let error = await #expect(throws: SyncError.self) { try await device.check() }
        #expect(error?.kind == .offline && count.withLock(\.self) == 2)
        #expect(error?.message == Problem.unrecognized(status: 200).detail)
        await device.close()
        await between.stop(grace: .zero)
        await server.stop()
    }

    @Test("are no server where the address is none")
    func address() throws {
        let url = try #require(URL(string: "not%20a%20url"))
        let error = #expect(throws: SyncError.self) {
            _ = try URLSessionTransport(server: url, token: nil)
        }
        #expect(error?.remedy == .checkServer)
    }

    @Test("who take less at once than a save has get it in pieces", arguments: [20_000, 300_000])
    func sizes(most: Int) async throws {
        let server = try LiveServer()
        try await server.start()
        let proxy = Proxy(to: try await server.url)
        try await proxy.start()
        proxy.traffic.state.withLock { $0.most = most }
        let far = try await server.device("far", transport: try await proxy.transport())
        // Compression does not shorten these bytes.
        var random = SystemRandomNumberGenerator()
        let photo = Data((0..<1_000_000).map { _ in UInt8.random(in: 0...255, using: &random) })
            .base64EncodedString()
        try await far.write { try $0.insert("teams", ["name": "Photo", "city": .text(photo)]) }
        try await far.sync()
        #expect(1...20 ~= proxy.traffic.state.withLock { $0.refusals })
        let near = try await server.device("near")
        try await near.sync()
        let kept = try await near.read { context in
            try context.rows("SELECT city FROM teams").first?["city"]
        }
        #expect(kept == .text(photo))
        await near.close()
        await far.close()
        await proxy.cut()
        await server.stop()
    }
}
