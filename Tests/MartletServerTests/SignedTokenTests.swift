import Foundation
import MartletServer
import MartletServerCore
import OpenSSLKit
import SocketTalk
import Synchronization
import Testing
import Waiting
import WebSocketKit

@testable import MartletServer

/// Makes tokens as an issuer would, signed with a secret (HS256).
struct Issuer {
    var secret = "0123456789abcdef0123456789abcdef"
    var kid = "first"

    /// A key file for this issuer's tokens, as a JWK Set.
    var keys: String {
        #"{"keys": [{"kty": "oct", "kid": "\#(kid)", "k": "\#(Self.encoded(secret))"}]}"#
    }

    /// Claims that are right, over which others may be laid.
    func token(
        _ changes: [String: Any] = [:], without: String? = nil, header: [String: Any]? = nil,
        signature: String? = nil
    ) throws -> String {
        var claims: [String: Any] = [
            "dataset": "league", "sub": "ann", "roles": ["coach"], "aud": "martlet",
            "iss": "https://issuer.example", "exp": 2_000_000_000,
        ]
        for (name, value) in changes { claims[name] = value }
        if let without { claims[without] = nil }
        let head = try JSONSerialization.data(
            withJSONObject: header ?? ["alg": "HS256", "kid": kid])
        let payload = try JSONSerialization.data(withJSONObject: claims)
        let signed = Self.encoded(head) + "." + Self.encoded(payload)
        let code = HMACSHA256.code([UInt8](signed.utf8), key: [UInt8](secret.utf8))
        return signed + "." + (signature ?? Self.encoded(Data(code)))
    }

    private static func encoded(_ text: String) -> String { encoded(Data(text.utf8)) }

    private static func encoded(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }
}

/// A clock that a test turns on: milliseconds since 1970.
private final class TurnedClock: Sendable {
    private let offset = Mutex<Int64>(0)

    var now: Int64 { 1_500_000_000_000 + offset.withLock { $0 } }

    func turn(by milliseconds: Int64) { offset.withLock { $0 += milliseconds } }
}

@Suite("Tokens of an issuer")
struct SignedTokenTests {
    private static let create = """
        {"clientId": "d1", "maxRevision": 0, "changeSets": [{"identifier": "i1", "sequence": 1,
        "types": ["teams"], "teams": {"create": [-1], "attributes": {"-1": {"name": "Eagles"}}}}]}
        """
    private static let nothing = #"{"maxRevision": 0, "changeSets": []}"#

    private static func server(
        _ issuer: Issuer = Issuer(), clock: TurnedClock = TurnedClock(),
        _ configure: (inout ServerConfiguration) throws -> Void = { _ in }
    ) async throws -> LiveServer {
        let folder = TemporaryFolder()
        let path = try Self.keyFile(issuer, in: folder)
        return try await LiveServer(folder: folder) { configuration in
            var settings = SignedTokenSettings(keyFile: path)
            settings.audience = "martlet"
            settings.issuer = "https://issuer.example"
            settings.leeway = 0
            configuration.signedTokens = settings
            configuration.now = { clock.now }
            try configure(&configuration)
        }
    }

    private static func keyFile(_ issuer: Issuer, in folder: TemporaryFolder) throws -> String {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        let path = folder.path + "/keys.json"
        try Data(issuer.keys.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test("its claims are those of the principal")
    func claims() throws {
        let (issuer, folder) = (Issuer(), TemporaryFolder())
        let settings = SignedTokenSettings(keyFile: try Self.keyFile(issuer, in: folder))
        var tokens = try SignedTokens(settings, log: ServerLog(minimum: .error) { _ in })
        let token = [UInt8](try issuer.token(["club": "north", "age": 7]).utf8)
        let principal = try tokens.record(of: token, now: 1_500_000_000_000).principal
        #expect(principal.user == "ann" && principal.roles == ["coach"])
        #expect(principal.claims["club"] == "north" && principal.claims["age"] == "7")
        #expect(principal.claims["exp"] == nil)
    }

    @Test("a good one opens the data set it names, beside the server's own tokens")
    func good() async throws {
        let issuer = Issuer()
        let live = try await Self.server(issuer)
        let answer = try await live.sync(Self.create, token: try issuer.token())
        #expect(answer.status == 200)
        #expect(try answer.member("maxRevision") == 1)
        #expect(try await live.state().contains("Eagles"))
        let club = try issuer.token(["dataset": "club"])
        #expect(try await live.sync(Self.nothing, token: club).member("maxRevision") == 0)
        await live.stop()
    }

    @Test("each that is not good is a 401 of its own kind, which tells nothing of it")
    func refusedTokens() async throws {
        let issuer = Issuer()
        let live = try await Self.server(issuer)
        let forger = Issuer(secret: "ffffffffffffffffffffffffffffffff")
        let cases: [(String, String)] = [
            (try issuer.token(["exp": 1_400_000_000]), "tokenExpired"),
            (try issuer.token(["exp": 1_500_000_000]), "tokenExpired"),
            (try issuer.token(["nbf": 1_600_000_000]), "tokenNotYet"),
            (try forger.token(), "tokenForged"),
            (try issuer.token(header: ["alg": "none"], signature: ""), "tokenAlgorithm"),
            (try issuer.token(header: ["alg": "RS256", "kid": "first"]), "tokenAlgorithm"),
            (try issuer.token(header: ["alg": "HS256", "kid": "other"]), "tokenKey"),
            (try issuer.token(["aud": "elsewhere"]), "tokenAudience"),
            (try issuer.token(["iss": "https://other.example"]), "tokenIssuer"),
            (try issuer.token(without: "exp"), "tokenClaims"),
            (try issuer.token(["exp": "soon"]), "tokenMalformed"),
            (try issuer.token(["dataset": "../escape"]), "tokenClaims"),
            (try issuer.token(["sub": "an\nn"]), "tokenClaims"),
            ("a.b.c", "tokenMalformed"),
            (try issuer.token(["sub": String(repeating: "x", count: 9_000)]), "unauthorized"),
        ]
        for (token, kind) in cases {
            let answer = try await live.sync(Self.create, token: token)
            #expect(answer.status == 401, "\(kind)")
            #expect(answer.kind == kind)
            #expect(answer.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
            for secret in ["ann", "league", "issuer.example", "first", "elsewhere", issuer.secret] {
                #expect(!answer.body.contains(secret), "\(kind) tells \(secret)")
            }
        }
        #expect(try await live.sync(Self.nothing).member("maxRevision") == 0, "nothing was taken")
        await live.stop()
    }

    @Test("roles are those of the rules file; a device belongs to the user, whatever the token")
    func rolesAndUsers() async throws {
        let issuer = Issuer()
        let live = try await Self.server(issuer) {
            $0.rules = [UInt8](
                #"{"default": {"create": ["coach"], "update": ["coach"], "delete": []}}"#.utf8)
        }
        let player = try await live.sync(
            Self.create, token: try issuer.token(["roles": ["player"], "sub": "bob"]))
        #expect(player.changeSets.last?["reason"] as? String == "permission")
        let coach = Self.create.replacingOccurrences(of: "d1", with: "d2")
            .replacingOccurrences(of: "i1", with: "i2")
        let accepted = try await live.sync(coach, token: try issuer.token())
        #expect(try accepted.member("maxRevision") == 1)
        // Nobody comes without his roles because they cannot be read.
        for roles: Any in [["x": 1], ["coach", 1], 7, NSNull(), [["coach"]]] as [Any] {
            let odd = try await live.sync(coach, token: try issuer.token(["roles": roles]))
            #expect(odd.status == 401, "\(roles)")
        }
        let renewed = try await live.sync(
            coach, token: try issuer.token(["exp": 1_900_000_000]))
        #expect(renewed.status == 200)
        let other = try await live.sync(
            coach, token: try issuer.token(["sub": "bob", "roles": ["coach"]]))
        #expect(other.status == 403)
        #expect(other.kind == "clientBound")
        await live.stop()
    }

    @Test("keys that change in the file count within a second or two, and bad ones not at all")
    func keysChange() async throws {
        let first = Issuer()
        let live = try await Self.server(first)
        let path = URL(fileURLWithPath: live.folder.path + "/keys.json")
        let second = Issuer(secret: "abcdefabcdefabcdefabcdefabcdefab", kid: "second")
        let old = try first.token()
        let new = try second.token()
        #expect(try await live.sync(Self.nothing, token: old).status == 200)
        #expect(try await live.sync(Self.nothing, token: new).kind == "tokenKey")
        try Data("{".utf8).write(to: path)
        try await waitUntil("the server has met the bad file") {
            let answer = try await live.sync(Self.nothing, token: old)
            #expect(answer.status == 200)
            return live.logLines.contains { $0.contains("correct the file") }
        }
        try Data(second.keys.utf8).write(to: path, options: .atomic)
        try await waitUntil("the new key counts") {
            try await live.sync(Self.nothing, token: new).status == 200
        }
        #expect(try await live.sync(Self.nothing, token: old).kind == "tokenKey")
        await live.stop()
    }

    @Test("a stream and a WebSocket end when their token does")
    func endings() async throws {
        let clock = TurnedClock()
        let live = try await Self.server(clock: clock)
        let bearer = "Authorization: Bearer " + (try Issuer().token(["exp": 1_500_000_001]))
        let socket = TestSocket(RawClient(port: live.port))
        #expect(await socket.open("/deltas?since=0", [bearer]).hasPrefix("HTTP/1.1 101 "))
        let first = TestSocket(RawClient(port: live.port))
        _ = await first.open("/deltas?since=0")
        await first.say(#"{"token": "\#(bearer.dropFirst("Authorization: Bearer ".count))"}"#)
        async let stream = live.request(
            "GET", "/deltas?since=0", headers: [bearer, "Accept: text/event-stream"])
        try await waitUntil("all three listen") { await live.server.waitingListeners == 3 }
        clock.turn(by: 1_000)
        #expect(await socket.closeCode() == DeltaSocket.unauthorized)
        #expect(await first.closeCode() == DeltaSocket.unauthorized)
        let ended = try await stream
        #expect(ended.status == 200)
        let late = try await live.request("GET", "/deltas?since=0", headers: [bearer])
        #expect(late.kind == "tokenExpired")
        await live.stop()
    }

    @Test("a server does not start with keys it cannot use")
    func badKeys() async throws {
        let folder = TemporaryFolder()
        await #expect(throws: ServerFailure.self) {
            try await LiveServer(folder: folder) {
                $0.signedTokens = SignedTokenSettings(keyFile: folder.path + "/none.json")
            }
        }
        await #expect(throws: ServerFailure.self) {
            let path = try Self.keyFile(Issuer(), in: folder)
            _ = try await LiveServer(folder: folder) {
                $0.signedTokens = SignedTokenSettings(keyFile: path)
                $0.tokens = [try FixedToken("league:a.b.c")]
            }
        }
    }
}
