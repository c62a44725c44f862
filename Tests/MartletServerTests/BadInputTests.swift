import DeflateKit
import Foundation
import HTTPKit
import MartletServer
import SocketTalk
import Testing

/// One request that is not as it should be, and what becomes of it.
struct BadInput: Sendable, CustomTestStringConvertible {
    /// How it is turned away.
    enum Fate: Sendable {
        /// A problem of this status and kind.
        case problem(Int, String)
        /// An answer that refuses the set for this reason.
        case refused(String)
        /// Sound after all: nothing is changed by it.
        case harmless
    }

    var name: String
    var body: [UInt8]
    var headers: [String] = []
    var fate: Fate

    var testDescription: String { name }

    init(_ name: String, _ body: String, _ fate: Fate) {
        self.name = name
        self.body = [UInt8](body.utf8)
        self.fate = fate
    }

    init(_ name: String, gzip body: [UInt8], _ fate: Fate) {
        self.name = name
        self.body = body
        headers = ["Content-Encoding: gzip"]
        self.fate = fate
    }

    /// A request with one set with these members.
    static func set(_ members: String) -> String {
        #"{"clientId":"d","protocol":1,"maxRevision":1,"changeSets":[{"identifier":"bad","#
            + #""sequence":9,"seen":1,"# + members + "}]}"
    }

    /// A request with one set that changes teams.
    static func teams(
        create: String = "[]", update: String = "[]", delete: String = "[]",
        attributes: String = "{}"
    ) -> String {
        set(
            #""types":["teams"],"teams":{"create":\#(create),"update":\#(update),"#
                + #""delete":\#(delete),"attributes":\#(attributes)}"#)
    }

    static func named(_ type: String, create: String = "[-1]") -> String {
        set(
            #""types":["\#(type)"],"\#(type)":{"create":\#(create),"update":[],"delete":[],"#
                + #""attributes":{"-1":{"name":"x"}}}"#)
    }
}

extension BadInput {
    static let malformed = Fate.problem(400, "malformed")

    static let documents: [BadInput] = [
        BadInput("nothing", "", malformed), BadInput("white space", "  \n ", malformed),
        BadInput("no JSON", "hello", malformed), BadInput("an array", "[]", malformed),
        BadInput("a number", "17", malformed), BadInput("an empty object", "{}", malformed),
        BadInput("cut off", #"{"maxRevision": 1, "changeSets": [{"identifier""#, malformed),
        BadInput("two documents", #"{"maxRevision":1,"changeSets":[]}{}"#, malformed),
        BadInput("a trailing comma", #"{"maxRevision":1,"changeSets":[],}"#, malformed),
        BadInput("a comment", #"{"maxRevision":1,/**/"changeSets":[]}"#, malformed),
        BadInput(
            "a member twice", #"{"maxRevision":1,"maxRevision":1,"changeSets":[]}"#, malformed),
        BadInput("no revision", #"{"changeSets":[]}"#, malformed),
        BadInput("no sets", #"{"maxRevision":1}"#, malformed),
        BadInput("a text revision", #"{"maxRevision":"1","changeSets":[]}"#, malformed),
        BadInput("a real revision", #"{"maxRevision":1.0,"changeSets":[]}"#, malformed),
        BadInput("a null revision", #"{"maxRevision":null,"changeSets":[]}"#, malformed),
        BadInput("a negative revision", #"{"maxRevision":-1,"changeSets":[]}"#, malformed),
        BadInput(
            "a revision beyond 64 bits", #"{"maxRevision":99999999999999999999,"changeSets":[]}"#,
            malformed),
        BadInput(
            "a future revision", #"{"maxRevision":1000,"changeSets":[]}"#,
            .problem(409, "revisionAhead")),
        BadInput("sets that are an object", #"{"maxRevision":1,"changeSets":{}}"#, malformed),
        BadInput(
            "an empty client", #"{"clientId":"","maxRevision":1,"changeSets":[]}"#, malformed),
        BadInput(
            "a long client",
            #"{"clientId":"\#(String(repeating: "x", count: 129))","maxRevision":1,"changeSets":[]}"#,
            malformed),
        BadInput(
            "an old version", #"{"protocol":0,"maxRevision":1,"changeSets":[]}"#,
            .problem(400, "versionUnsupported")),
        BadInput(
            "a new version of another shape", #"{"protocol":2,"since":1}"#,
            .problem(400, "versionUnsupported")),
        BadInput(
            "another data set", #"{"dataSet":"ffff","maxRevision":1,"changeSets":[]}"#,
            .problem(409, "wrongDataSet")),
        BadInput(
            "another history", #"{"lineage":"ffff","maxRevision":1,"changeSets":[]}"#,
            .problem(409, "lineage")),
        BadInput("depth", String(repeating: "[", count: 100_000), malformed),
        BadInput(
            "depth in a member passed over",
            #"{"x":"# + String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
                + #","maxRevision":1,"changeSets":[]}"#, malformed),
        BadInput(
            "a number of a megabyte",
            #"{"maxRevision":"# + String(repeating: "9", count: 1 << 20) + #","changeSets":[]}"#,
            malformed),
        BadInput(
            "too many sets",
            #"{"maxRevision":1,"changeSets":["# + String(repeating: "{},", count: 10_001) + "{}]}",
            malformed),
        BadInput(
            "an unpaired surrogate", #"{"x":"\ud800","maxRevision":1,"changeSets":[]}"#, malformed),
    ]

    static let sets: [BadInput] = [
        BadInput(
            "a set that is a number", #"{"maxRevision":1,"changeSets":[17]}"#, .refused("invalid")),
        BadInput(
            "a type not listed", set(#""types":[],"teams":{"create":[-1]}"#), .refused("invalid")),
        BadInput("a type listed and absent", set(#""types":["teams"]"#), .refused("invalid")),
        BadInput(
            "a type listed twice", set(#""types":["teams","teams"],"teams":{}"#),
            .refused("invalid")),
        BadInput("an unknown type", named("cats"), .refused("unknownType")),
        BadInput("a type of SQL", named(#"teams; DROP TABLE teams; --"#), .refused("unknownType")),
        BadInput("a type in quotes", named(#"\"teams\""#), .refused("unknownType")),
        BadInput("a type of another case", named("Teams"), .refused("unknownType")),
        BadInput("the server's own table", named("martlet_log"), .refused("unknownType")),
        BadInput("SQLite's own table", named("sqlite_schema"), .refused("unknownType")),
        BadInput("a prototype", named("__proto__"), .refused("invalid")),
        BadInput(
            "an unknown attribute",
            teams(create: "[-1]", attributes: #"{"-1":{"name":"x","cat":1}}"#),
            .refused("unknownAttribute")),
        BadInput(
            "an attribute of SQL",
            teams(create: "[-1]", attributes: #"{"-1":{"name\"=0;--":"x"}}"#),
            .refused("unknownAttribute")),
        BadInput(
            "the key as an attribute",
            teams(create: "[-1]", attributes: #"{"-1":{"name":"x","id":5}}"#),
            .refused("invalid")),
        BadInput(
            "a reserved attribute",
            teams(create: "[-1]", attributes: #"{"-1":{"name":"x","__proto__":{}}}"#),
            .refused("invalid")),
        BadInput(
            "an old id sent up",
            teams(create: "[-1]", attributes: #"{"-1":{"name":"x","__oldId__":-7}}"#),
            .refused("invalid")),
        BadInput(
            "a positive id in a create", teams(create: "[77]", attributes: #"{"77":{"name":"x"}}"#),
            .refused("invalid")),
        BadInput(
            "an id of zero", teams(create: "[0]", attributes: #"{"0":{"name":"x"}}"#),
            .refused("invalid")),
        BadInput(
            "a text id", teams(create: #"["a"]"#, attributes: #"{"a":{"name":"x"}}"#),
            .refused("invalid")),
        BadInput(
            "a real id", teams(create: "[-1.5]", attributes: #"{"-1.5":{}}"#), .refused("invalid")),
        BadInput(
            "an id twice", teams(create: "[-1,-1]", attributes: #"{"-1":{"name":"x"}}"#),
            .refused("invalid")),
        BadInput(
            "an id created and deleted",
            teams(create: "[-1]", delete: "[-1]", attributes: #"{"-1":{"name":"x"}}"#),
            .refused("invalid")),
        BadInput(
            "an id beyond 64 bits", teams(create: "[-99999999999999999999]"), .refused("invalid")),
        BadInput(
            "attributes for nobody", teams(attributes: #"{"5":{"name":"x"}}"#), .refused("invalid")),
        BadInput("a create without attributes", teams(create: "[-1]"), .refused("invalid")),
        BadInput(
            "an update of nobody",
            teams(update: "[999]", attributes: #"{"999":{"revision":1,"name":"x"}}"#),
            .refused("stale")),
        BadInput(
            "an update without a revision",
            teams(update: "[1]", attributes: #"{"1":{"name":"x"}}"#), .refused("invalid")),
        BadInput(
            "an update of a future revision",
            teams(update: "[1]", attributes: #"{"1":{"revision":50,"name":"x"}}"#),
            .refused("invalid")),
        BadInput(
            "an update of a negative revision",
            teams(update: "[1]", attributes: #"{"1":{"revision":-5,"name":"x"}}"#),
            .refused("invalid")),
        BadInput("a delete of an old temporary id", teams(delete: "[-99]"), .refused("dependency")),
        BadInput(
            "a number where text belongs", teams(create: "[-1]", attributes: #"{"-1":{"name":5}}"#),
            .refused("invalid")),
        BadInput(
            "text where a number belongs",
            teams(create: "[-1]", attributes: #"{"-1":{"name":"x","founded":"1999"}}"#),
            .refused("invalid")),
        BadInput(
            "an object where a value belongs",
            teams(create: "[-1]", attributes: #"{"-1":{"name":{"x":1}}}"#), .refused("invalid")),
        BadInput(
            "a blob that is not base64",
            teams(create: "[-1]", attributes: #"{"-1":{"name":"x","logo":"***"}}"#),
            .refused("invalid")),
        BadInput(
            "null where a value must be",
            teams(create: "[-1]", attributes: #"{"-1":{"name":null}}"#), .refused("constraint")),
        BadInput(
            "a name that is taken", teams(create: "[-1]", attributes: #"{"-1":{"name":"Eagles"}}"#),
            .refused("constraint")),
    ]

    static let compressed: [BadInput] = [
        BadInput("gzip that is not", gzip: [UInt8]("{}".utf8), malformed),
        BadInput(
            "gzip cut off",
            gzip: [UInt8](
                OneShotGzip.compress([UInt8](#"{"maxRevision":1,"changeSets":[]}"#.utf8)).dropLast(
                    6)),
            malformed),
        BadInput("an empty body of gzip", gzip: [], malformed),
        BadInput(
            "gzip with a wrong checksum",
            gzip: {
                var bytes = OneShotGzip.compress(
                    [UInt8](#"{"maxRevision":1,"changeSets":[]}"#.utf8))
                bytes[bytes.count - 6] ^= 1
                return bytes
            }(), malformed),
        BadInput(
            "gzip twice over",
            gzip: OneShotGzip.compress(OneShotGzip.compress([UInt8](#"{"maxRevision":1}"#.utf8))),
            malformed),
        BadInput(
            "a bomb by ratio",
            gzip: OneShotGzip.compress([UInt8](repeating: 32, count: 20 << 20), level: 9),
            .problem(413, "tooLarge")),
        BadInput(
            "a bomb by size",
            gzip: OneShotGzip.compress([UInt8](repeating: 32, count: 80 << 20)),
            .problem(413, "tooLarge")),
    ]
}

@Suite("Bad input", .serialized)
struct BadInputTests {
    static let all = BadInput.documents + BadInput.sets + BadInput.compressed

    @Test("is refused in words, changes nothing, and the next request is served", arguments: all)
    func refusedInput(input: BadInput) async throws {
        let live = try await LiveServer()
        #expect(try await live.sync(ServerTests.create).status == 200)
        let before = try await live.state()
        let answer = try await live.request(
            "POST", "/sync",
            headers: ["Authorization: Bearer secret", "Content-Type: application/json"]
                + input.headers, body: input.body)
        #expect(answer.status < 500)
        let words: String
        switch input.fate {
        case .problem(let status, let kind):
            #expect(answer.status == status)
            #expect(answer.kind == kind)
            #expect(answer.headers["content-type"] == "application/problem+json")
            words = try answer.member("detail") ?? ""
        case .refused(let reason):
            let set = try #require(answer.changeSets.last, "\(answer.body)")
            #expect(set["conflict"] as? Bool == true)
            #expect(set["reason"] as? String == reason, "\(answer.body)")
            words = set["message"] as? String ?? ""
        case .harmless:
            #expect(answer.status == 200)
            words = "It is in order."
        }
        #expect(words.split(separator: " ").count >= 4, "words: \(words)")
        for internals in ["SQL", "SELECT", "INSERT", ".swift", "Swift", live.folder.path] {
            #expect(!answer.body.contains(internals), "\(answer.body)")
        }
        #expect(try await live.state() == before)
        let next = try await live.sync(
            ServerTests.create.replacing("device-1", with: "device-2")
                .replacing("set-1", with: "set-2").replacing("Eagles", with: "Hawks"))
        #expect(next.changeSets.last?["conflict"] as? Bool == false)
        await live.stop()
    }

    @Test("of the wrong type or coding is refused before it is read")
    func types() async throws {
        let live = try await LiveServer()
        let token = "Authorization: Bearer secret"
        let body = [UInt8](ServerTests.create.utf8)
        for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let answer = try await live.request(
                "POST", "/sync", headers: [token, "Content-Type: \(type)"], body: body)
            #expect(answer.status == 415)
            #expect(answer.kind == "unsupportedMediaType")
        }
        for coding in ["br", "deflate", "gzip, gzip", "gzip\r\nContent-Encoding: gzip"] {
            let answer = try await live.request(
                "POST", "/sync",
                headers: [token, "Content-Type: application/json", "Content-Encoding: \(coding)"],
                body: body)
            #expect(answer.status == 415)
            #expect(answer.kind == "unsupportedEncoding")
            #expect(answer.headers["accept-encoding"] == "gzip")
        }
        #expect(try await live.state().contains(#""maxRevision":0"#))
        await live.stop()
    }

    @Test("over the limit is refused before it has come")
    func largeBodyRefusedEarly() async throws {
        let live = try await LiveServer()
        let client = RawClient(port: live.port)
        await client.send(
            "POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(17 << 20)\r\n\r\n")
        let answer = try LiveServer.answer(await client.readBytes())
        #expect(answer.status == 413)
        #expect(answer.kind == "tooLarge")
        #expect(try await live.state().contains(#""maxRevision":0"#))
        await live.stop()
    }

    @Test("in HTTP itself is answered as a problem, and what follows it is not read")
    func smuggling() async throws {
        let live = try await LiveServer()
        let body = ServerTests.create
        let hidden =
            "POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        for lines in [
            "Content-Length: 0\r\nContent-Length: \(hidden.utf8.count)",
            "Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: 0\r\n folded",
            "Content-Length : 0", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        ] {
            let client = RawClient(port: live.port)
            await client.send("POST /sync HTTP/1.1\r\nHost: h\r\n\(lines)\r\n\r\n" + hidden)
            let text = await client.readBytes()
            let answer = try LiveServer.answer(text)
            #expect(answer.status == 400, "\(lines)")
            #expect(answer.kind == "badRequest")
            let all = String(decoding: text, as: UTF8.self)
            #expect(all.occurrences("HTTP/1.1 400") == 1)
            #expect(all.occurrences("HTTP/1.1 200") == 0)
        }
        #expect(try await live.state().contains(#""maxRevision":0"#))
        await live.stop()
    }

    @Test("that comes slowly is cut off in words, and nothing of it is applied")
    func slowBodyIsCutOff() async throws {
        let live = try await LiveServer {
            // The second client's head must be there by then.
            $0.http.headDeadline = .seconds(2)
            $0.http.bodyDeadline = .milliseconds(80)
        }
        let head = RawClient(port: live.port)
        await head.send("POST /sync HTTP/1.1\r\nHost: h\r\n")
        #expect(try LiveServer.answer(await head.readBytes()).kind == "timeout")
        let body = RawClient(port: live.port)
        let text = ServerTests.create
        await body.send(
            "POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(text.utf8.count + 1)\r\n\r\n"
                + text)
        #expect(try LiveServer.answer(await body.readBytes()).kind == "timeout")
        await live.stop()
        let patient = try await LiveServer(folder: live.folder)
        #expect(try await patient.state().contains(#""maxRevision":0"#))
        await patient.stop()
    }

    @Test("of one connection too many is answered as a problem with Retry-After")
    func connections() async throws {
        let live = try await LiveServer {
            $0.http.addressesWithoutLimit = []
            $0.http.maxConnectionsPerAddress = 1
        }
        let first = RawClient(port: live.port)
        await first.send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = await first.read(until: "ok\"}")
        let answer = try LiveServer.answer(await RawClient(port: live.port).readBytes())
        #expect(answer.status == 429)
        #expect(answer.kind == "tooManyConnections")
        #expect(answer.headers["retry-after"] == "2")
        #expect(try answer.member("retryAfter") == 2)
        await live.stop()
    }
}
