import RandomKit
import Testing

@testable import HTTPKit

/// What becomes of a head: scanned as a whole, then parsed.
func parse(_ text: String, limit: Int = 16 << 10) throws -> RequestHead? {
    try parse([UInt8](text.utf8), limit: limit)
}

func parse(_ bytes: [UInt8], limit: Int = 16 << 10) throws -> RequestHead? {
    try bytes.withUnsafeBytes { bytes in
        var scanner = HeadScanner()
        guard let end = try scanner.end(in: bytes, limit: limit) else { return nil }
        return try HeadParser.parse(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    }
}

@Suite("Request head")
struct HeadParserTests {
    @Test("reads method, target, headers and framing")
    func plain() throws {
        let head = try #require(
            try parse(
                "POST /sync?a=1?b HTTP/1.1\r\nHost: example.org\r\nX-Empty:\r\n"
                    + "content-LENGTH: \t12 \r\nAuthorization: Bearer x\r\n\r\nbody"))
        #expect(head.method == "POST")
        #expect(head.path == "/sync")
        #expect(head.query == "a=1?b")
        #expect(head.framing == .length(12))
        #expect(head.headers["host"] == "example.org")
        #expect(head.headers["x-empty"] == "")
        #expect(head.headers["AUTHORIZATION"] == "Bearer x")
        #expect(head.headers["cookie"] == nil)
        #expect(head.headers.count == 4)
        #expect(head.keepsAlive)
        #expect(!head.expectsContinue)
    }

    @Test(
        "takes the path out of every form of target",
        arguments: [
            ("GET / HTTP/1.1", "/"), ("GET //x HTTP/1.1", "//x"),
            ("GET http://h.example:80/p HTTP/1.1", "/p"), ("GET HTTPS://h HTTP/1.1", "/"),
            ("GET http://h?q HTTP/1.1", "/"), ("OPTIONS * HTTP/1.1", "*"),
        ])
    func targets(line: String, path: String) throws {
        #expect(try parse(line + "\r\nHost: h\r\n\r\n")?.path == path)
    }

    @Test("skips empty lines before the request line, and only those")
    func emptyLines() throws {
        #expect(try parse("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n")?.path == "/")
        #expect(throws: HTTPRefusal.self) { try parse("\r\n\rGET / HTTP/1.1\r\nHost: h\r\n\r\n") }
    }

    @Test(
        "keeps the connection as the version and the options say",
        arguments: [
            ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false),
            ("HTTP/1.1", "Connection: x, Close\r\n", false), ("HTTP/1.0", "", false),
            ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
            ("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ])
    func keepAlive(version: String, line: String, keeps: Bool) throws {
        let head = try parse("GET / \(version)\r\nHost: h\r\n\(line)\r\n")
        #expect(head?.keepsAlive == keeps)
    }

    static let refused: [(String, Int)] = [
        // Two readers could disagree about where these end.
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n", 400
        ),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n", 400),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n\tb\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: h\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\r\rb: c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\u{0}b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n\rX: a\r\n\r\n", 400),
        // Not HTTP, or not for us.
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET /\r\nHost: h\r\n\r\n", 400),
        ("GET / x HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("G(T / HTTP/1.1\r\nHost: h\r\n\r\n", 400), (" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET / HTTP/1.1x\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505), ("GET / http/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: a-miracle\r\n\r\n", 417),
        (
            "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "A: b\r\n", count: 100) + "\r\n",
            431
        ),
    ]

    @Test("refuses what two readers could read in two ways", arguments: refused)
    func refusalsOfAmbiguousHeads(text: String, status: Int) throws {
        let refusal = #expect(throws: HTTPRefusal.self) { try parse(text) }
        #expect(refusal?.status == status)
        #expect(refusal?.detail.hasSuffix(".") == true)
    }

    @Test("finds the same end whichever way the bytes are cut, looking at each once")
    func everyCut() throws {
        let text = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
        let bytes = [UInt8](text.utf8)
        for step in 1...bytes.count {
            var scanner = HeadScanner()
            var end: Int?
            var count = 0
            while end == nil, count < bytes.count {
                count = min(count + step, bytes.count)
                end = try bytes[..<count].withUnsafeBytes {
                    try scanner.end(in: $0, limit: 1_000)
                }
            }
            #expect(end == bytes.count - 3)
        }
    }

    @Test("refuses a head at the limit, ended or not")
    func limitOfHead() throws {
        let text = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        #expect(try parse(text, limit: text.utf8.count) != nil)
        #expect(throws: HTTPRefusal.self) { try parse(text, limit: text.utf8.count - 1) }
        #expect(throws: HTTPRefusal.self) {
            try parse(String(repeating: "\r\n", count: 50), limit: 100)
        }
    }

    @Test("never crashes on damaged heads", arguments: 1...20 as ClosedRange<UInt64>)
    func damageOfHeads(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let good = [UInt8](
            "POST /a?b HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 4\r\n\r\n".utf8)
        for _ in 0..<2_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[position] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: position)
                default: bytes.insert(contentsOf: [13, 10, 13].prefix(2), at: position)
                }
            }
            _ = try? parse(bytes)
        }
    }
}
