import Foundation
import SocketTalk
import Testing

/// Hundreds of requests that are not as they should be, at one server: cases by rule, where
/// `BadInputTests` has those by name.
@Suite("Hostile requests", .timeLimit(.minutes(5)))
struct HostileRequestTests {
    /// The members of a request and of a set in it, with what each may be.
    private static let members: [(name: String, good: String)] = [
        ("clientId", #""d""#), ("protocol", "1"), ("maxRevision", "1"), ("acknowledged", "0"),
        ("dataSet", #""9f2c""#), ("lineage", #""80cd""#), ("rows", "false"), ("changeSets", "[]"),
    ]
    private static let values = [
        "null", "true", "-1", "1.5", "1e999", "99999999999999999999", #""""#, #""\ud800""#,
        #""\#(String(repeating: "x", count: 200))""#, "[1]", "[[]]", "{}", #"{"a":{}}"#, "NaN",
        "'x'", "", "1 2", "\u{0}",
    ]

    /// Requests in which one member is of another kind, twice, or cut.
    private static var documents: [String] {
        var documents: [String] = []
        for (index, member) in members.enumerated() {
            func request(_ text: String) -> String {
                var parts = members.map { #""\#($0.name)":\#($0.good)"# }
                parts[index] = text
                return "{\(parts.joined(separator: ","))}"
            }
            for value in values where isWrong(member.name, value) {
                documents.append(request(#""\#(member.name)":\#(value)"#))
            }
            let text = #""\#(member.name)":\#(member.good)"#
            documents.append(request("\(text),\(text)"))
            documents.append(request(#""\#(member.name)""#))
            documents.append(request("\(text),"))
        }
        let whole = ServerTests.create
        for length in stride(from: 0, to: whole.utf8.count - 2, by: 9) {
            documents.append(String(decoding: whole.utf8.prefix(length), as: UTF8.self))
        }
        for text in ["\u{FEFF}\(whole)", whole + "x", "[\(whole)]", whole + whole, "x" + whole] {
            documents.append(text)
        }
        return documents
    }

    /// Whether a value is refused in that place by itself, not only together with the others.
    private static func isWrong(_ member: String, _ value: String) -> Bool {
        switch member {
        case "rows": value != "true"
        case "changeSets": value != "[1]" && value != "[[]]"
        default: true
        }
    }

    @Test("are refused in words, each and all, and change nothing")
    func documents() async throws {
        let live = try await LiveServer()
        #expect(try await live.sync(ServerTests.create).status == 200)
        let before = try await live.state()
        let documents = Self.documents
        #expect(documents.count >= 200)
        for document in documents {
            let answer = try await live.sync(document)
            #expect(
                (400..<500).contains(answer.status), "\(answer.status): \(document.prefix(200))")
            let words: String = try answer.member("detail") ?? ""
            #expect(words.split(separator: " ").count >= 4, "\(words): \(document.prefix(200))")
            #expect(!answer.body.contains("Swift") && !answer.body.contains(live.folder.path))
        }
        #expect(try await live.state() == before)
        await live.stop()
    }

    @Test(
        "that break HTTP itself are refused with a 4xx or 5xx, and nothing behind them is answered")
    func heads() async throws {
        let live = try await LiveServer()
        let heads = [
            "GET /healthz", "GET  /healthz HTTP/1.1", "GET /healthz HTTP/1.1 ",
            " GET /healthz HTTP/1.1", "GET healthz HTTP/1.1", "GET /health\u{7f} HTTP/1.1",
            "GET /healthz HTTP/1,1", "GET /healthz HTTP/11", "GET /healthz http/1.1",
            "GET /healthz HTTP/2.0", "GÉT /healthz HTTP/1.1",
            "\(String(repeating: "G", count: 40)) / HTTP/1.1", "GET / HTTP/1.1\r\n: x",
            "GET / HTTP/1.1\r\nA", "GET / HTTP/1.1\r\nA : b", "GET / HTTP/1.1\r\nA: b\r\n c",
            "GET / HTTP/1.1\r\nA: b\0c", "GET / HTTP/1.1\r\nHost: g", "GET / HTTP/1.1\nA: b",
            "POST / HTTP/1.1\r\nContent-Length: 0x5", "POST / HTTP/1.1\r\nContent-Length: -1",
            "POST / HTTP/1.1\r\nContent-Length: 5, 5", "POST / HTTP/1.1\r\nContent-Length:",
            "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity",
            "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\tchunked",
            "GET / HTTP/1.1\r\nX: \(String(repeating: "y", count: 20_000))",
            "GET / HTTP/1.1" + String(repeating: "\r\nX: y", count: 101),
        ]
        for head in heads {
            let client = RawClient(port: live.port)
            await client.send("\(head)\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            let text = String(decoding: await client.readBytes(), as: UTF8.self)
            #expect(
                text.hasPrefix("HTTP/1.1 4") || text.hasPrefix("HTTP/1.1 5"), "\(head): \(text)")
            #expect(!text.contains(" 200 "), "\(head)")
        }
        #expect(try await live.request("GET", "/healthz").status == 200)
        await live.stop()
    }

    @Test("with SQL in their values keep it as a value")
    func valuesWithSQL() async throws {
        let live = try await LiveServer()
        let name = #"x'); DROP TABLE teams; --\" OR 1=1 %s $1 ?1 \\"#
        let answer = try await live.sync(
            ServerTests.create.replacing("Eagles", with: name).replacing("1999", with: "null"))
        #expect(answer.changeSets.first?["conflict"] as? Bool == false, "\(answer.body)")
        let state = try await live.state()
        #expect(state.contains(#"DROP TABLE teams; --\" OR 1=1"#), "\(state)")
        await live.stop()
    }
}

/// Requests that announce bodies.
@Suite("Announced bodies", .timeLimit(.minutes(5)))
struct AnnouncedBodyTests {
    @Test("nobody is asked for a body who may not send one")
    func strangers() async throws {
        let live = try await LiveServer()
        for (line, headers, status) in [
            ("POST /sync", "", 401), ("POST /sync", "Authorization: Bearer wrong\r\n", 401),
            ("GET /healthz", "", 413), ("GET /deltas?since=0", "", 413), ("POST /nowhere", "", 413),
        ] {
            for framing in ["Content-Length: 16000000", "Transfer-Encoding: chunked"] {
                let client = RawClient(port: live.port)
                await client.send("\(line) HTTP/1.1\r\nHost: h\r\n\(headers)\(framing)\r\n\r\n")
                let answer = try LiveServer.answer(await client.readBytes())
                #expect(answer.status == status, "\(line), \(framing)")
                #expect(answer.headers["content-type"] == "application/problem+json")
                #expect((answer.headers["www-authenticate"] != nil) == (status == 401))
            }
        }
        await live.stop()
    }

    @Test("what is announced and does not arrive keeps out no device")
    func silenceOfUploader() async throws {
        let live = try await LiveServer()
        let head = """
            POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n\
            Content-Type: application/json\r\nContent-Length: 16777216\r\n\r\n{
            """
        let silent = (0..<40).map { _ in RawClient(port: live.port) }
        for client in silent { await client.send(head) }
        #expect(try await live.sync(ServerTests.create).status == 200)
        for client in silent { await client.abort() }
        await live.stop()
    }
}
