import CompressionKit
import SocketTalk

/// What the hostile network does with a request.
enum Deed: Sendable {
    /// How a connection ends in the middle of something.
    enum Cut: String, Sendable, CaseIterable {
        case end, reset
    }

    case pass
    /// Another program answers in the server's place.
    case stray(Letter)
    /// The request gets no farther than this byte.
    case cutUp(Int, Cut)
    /// The answer gets no farther than this byte; counted from its end if negative.
    case cutDown(Chance, Cut)
    /// Nothing comes for a while after some bytes of the answer; then the connection ends.
    case silence(Chance, milliseconds: Int)
    /// A field of the request, or of the answer, is taken away.
    case strip(Chance)
    /// The server gets the request more than once.
    case again(Int)
    /// An earlier answer to somebody's request of this kind comes in place of the request's own.
    case swap(Chance)
    /// An earlier request of somebody's goes to the server in place of this one.
    case misdirect(Chance)
    /// All comes at once, and late.
    case collect(milliseconds: Int)
    /// The frame around a true answer is wrong.
    case misframe(Chance)
    /// The connection is kept, and the next request on it gets no answer.
    case stale(Cut)
    /// A server with other data answers.
    case elsewhere
    /// The connection carries so many bytes each way, and no more.
    case short(Int, Cut)

    /// The sorts of deeds; each world has some of them.
    enum Sort: String, CaseIterable, Sendable {
        case stray, cutUp, cutDown, silence, strip, again, swap, misdirect, collect, misframe, stale
        case elsewhere
    }

    init(_ sort: Sort, _ request: Letter, _ chance: inout Chance) {
        switch sort {
        case .stray: self = .stray(.stray(&chance))
        case .cutUp:
            self = .cutUp(chance.offset(in: request.bytes.count), chance.pick(Cut.allCases))
        case .cutDown: self = .cutDown(Chance(chance.next()), chance.pick(Cut.allCases))
        case .silence:
            self = .silence(Chance(chance.next()), milliseconds: chance.roll(10...1_500))
        case .strip: self = .strip(Chance(chance.next()))
        case .again: self = .again(chance.roll(2...3))
        case .swap: self = .swap(Chance(chance.next()))
        case .misdirect: self = .misdirect(Chance(chance.next()))
        case .collect: self = .collect(milliseconds: chance.roll(10...800))
        case .misframe: self = .misframe(Chance(chance.next()))
        case .stale: self = .stale(chance.pick(Cut.allCases))
        case .elsewhere: self = .elsewhere
        }
    }
}

/// How fast a connection is.
struct Line: Sendable {
    /// Milliseconds in each direction.
    var latency: Int
    /// Nil for as fast as the machine.
    var bytesPerSecond: Int?
    /// The bytes of a packet.
    var piece: Int

    static let well = Line(latency: 0, bytesPerSecond: nil, piece: 1 << 20)
}

// MARK: - Other programs' answers

extension Letter {
    /// What a portal, a gateway or any other program may answer.
    static func stray(_ chance: inout Chance) -> Letter {
        let statuses = [
            200, 200, 204, 302, 400, 401, 403, 404, 407, 413, 429, 500, 502, 503, 504, 511,
            chance.roll(100...599), chance.roll(100...599),
        ]
        let status = chance.pick(statuses)
        let version = chance.percent(90) ? "HTTP/1.1" : chance.pick(["HTTP/1.0", "HTTP/2", "ICY"])
        var letter = Letter(
            lines: ["\(version) \(status)\(chance.percent(90) ? " Something" : "")"],
            body: strayBody(status, &chance))
        if let type = chance.pick([
            "text/html", "text/html; charset=utf-8", "application/json", "application/problem+json",
            "text/event-stream", "application/gzip", "application/octet-stream", nil,
        ]) {
            letter.set("Content-Type", type)
        }
        if chance.percent(40) {
            letter.set(
                "Retry-After",
                chance.pick([
                    "0", "-1", "1", "86400", "Wed, 21 Oct 2037 07:28:00 GMT", "soon", "",
                    "99999999999999999999",
                ]))
        }
        let others = [
            "Location: http://portal.example/login", "WWW-Authenticate: Basic realm=\"x\"",
            "Proxy-Authenticate: Basic realm=\"x\"", "Set-Cookie: a=b",
            "Martlet-Answer: 200 plain 9",
            "Martlet-Answer: x", "Content-Range: bytes 0-9/10", "ETag: \"x\"", "Upgrade: h2c",
            "X-Filler: " + String(repeating: "x", count: 8_000),
        ]
        for other in others where chance.percent(12) { letter.lines.append(other) }
        if chance.percent(4) {
            let filler = "X-Filler: " + String(repeating: "y", count: 30_000)
            letter.lines += Array(repeating: filler, count: 12)
        }
        letter.frame(&chance)
        return letter
    }

    /// A refusal in the server's own words, of another server or another day: without the request's name.
    static func refusal(_ chance: inout Chance) -> Letter {
        let (status, kind) = chance.pick([
            (401, "unauthorized"), (401, "tokenExpired"), (403, "clientBound"),
            (403, "wrongDataSet"), (400, "versionUnsupported"), (400, "malformed"),
            (404, "notFound"), (409, "identityReused"), (409, "lineage"), (409, "revisionAhead"),
            (409, "tooManyDevices"), (415, "unsupportedEncoding"),
        ])
        let body = """
            {"type":"about:blank","title":"No","status":\(status),"kind":"\(kind)","detail":"No."}
            """
        return Letter(
            lines: [
                "HTTP/1.1 \(status) No", "Content-Type: application/problem+json",
                "Content-Length: \(body.utf8.count)",
            ], body: Array(body.utf8))
    }

    private static func strayBody(_ status: Int, _ chance: inout Chance) -> [UInt8] {
        let texts = [
            "<html><body>Accept our conditions.</body></html>", "", "{}", "[]", "null", "{",
            "{\"error\":\"login\"}", "{\"received\":7}", "data: {}\n\n", ":\n\n", "\u{0}\u{1}",
            """
            {"type":"about:blank","title":"No","status":\(status),"kind":"loginWanted","detail":"Pay."}
            """,
            "{\"status\":\(status),\"detail\":\"Forbidden\"}", "event: message\ndata: x\n\n",
            String(repeating: "x", count: chance.roll(1...100_000)),
        ]
        if chance.percent(3) { return bomb }
        return Array(chance.pick(texts).utf8)
    }

    /// More than an answer may have once it is inflated; some 70 kB before.
    static let bomb = Gzip.compress([UInt8](repeating: UInt8(ascii: " "), count: 66 << 20))

    /// Says of the body's length what is true, or what is not.
    mutating func frame(_ chance: inout Chance) {
        if body == Letter.bomb {
            set("Content-Encoding", "gzip")
        } else if chance.percent(8) {
            set("Content-Encoding", chance.pick(["gzip", "br", "deflate", "identity"]))
        }
        remove("content-length")
        remove("transfer-encoding")
        let count = body.count
        switch chance.roll(0...9) {
        case 0: lines.append("Content-Length: \(max(0, count - chance.roll(1...20)))")
        case 1: lines.append("Content-Length: \(count + chance.roll(1...20))")
        case 2: break
        case 3:
            lines += ["Content-Length: \(count)", "Content-Length: \(count + chance.roll(0...1))"]
        case 4:
            lines.append("Transfer-Encoding: chunked")
            body =
                Array("\(String(count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8)
        case 5:
            lines.append("Transfer-Encoding: chunked")
            body =
                Array(chance.pick(["zz\r\n", "5\r\nab\r\n", "ffffffffffffffff\r\n", ""]).utf8)
                + body
        case 6: lines.append("Content-Length: \(chance.pick(["-5", "x", "99999999999999999999"]))")
        default: lines.append("Content-Length: \(count)")
        }
    }
}
