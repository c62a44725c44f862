import Foundation
import SQLiteKit
import Testing

@testable import MartletServer

@Suite("Tokens")
struct TokenTests {
    private func bytes(_ token: String) -> [UInt8] { [UInt8](token.utf8) }

    @Test("opens its data set, with the user, roles and device it was made for")
    func create() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        let (token, record) = try store.create(
            dataSet: "league", user: "anna", roles: ["admin", "coach"], device: "Anna's phone",
            now: 17)
        #expect(record.created == 17)
        #expect(try store.list() == [record])
        var index = try TokenIndex(store: store, fixed: [])
        #expect(try index.record(of: bytes(token)) == record)
        #expect(try index.record(of: bytes(token + "x")) == nil)
        #expect(try index.record(of: bytes(String(token.dropLast()))) == nil)
        #expect(try index.record(of: []) == nil)
    }

    @Test("is not in the file, and neither is anything of it")
    func hashed() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        let (token, record) = try store.create(dataSet: "league", now: 1)
        let second = try store.create(dataSet: "league", now: 1)
        #expect(token != second.token)
        #expect(token.utf8.count == 67)
        #expect(!token.contains(record.identifier))
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let data = try #require(FileManager.default.contents(atPath: folder.path + "/" + name))
            #expect(data.range(of: Data(token.utf8)) == nil)
            #expect(data.range(of: Data(token.dropFirst(3).prefix(16).utf8)) == nil)
        }
    }

    @Test("is worthless from the moment another connection revokes it")
    func revoke() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        let kept = try store.create(dataSet: "a", now: 1)
        let lost = try store.create(dataSet: "a", now: 2)
        var index = try TokenIndex(store: store, fixed: [])
        #expect(try index.record(of: bytes(lost.token)) != nil)
        let other = try TokenStore(directory: folder.path)
        #expect(try other.revoke(lost.record.identifier, now: 3))
        #expect(try index.record(of: bytes(lost.token)) == nil)
        #expect(try index.record(of: bytes(kept.token)) == kept.record)
        #expect(try !other.revoke(lost.record.identifier, now: 4))
        #expect(try !other.revoke("nothing", now: 4))
        #expect(try other.list().map(\.revoked) == [nil, 3])
        let late = try other.create(dataSet: "b", now: 5)
        #expect(try index.record(of: bytes(late.token)) == late.record)
        #expect(index.dataSets == ["a", "b"])
    }

    @Test("is not looked for at once where another process has the file locked")
    func lockedTokenFile() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        let made = try store.create(dataSet: "a", now: 1)
        var desk = TokenAuthenticator(
            index: try TokenIndex(store: store, fixed: []), signed: nil, now: { 1 })
        #expect(try desk.recordAtOnce(of: bytes(made.token), asked: .now) == made.record)
        #expect(throws: TokenDenial.self) {
            try desk.recordAtOnce(of: bytes("mt_other"), asked: .now)
        }
        let holder = try Self.recovering(folder.path + "/tokens.sqlite-shm")
        // It goes on while whoever may be kept waiting still waits.
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(2)) { holder.release() }
        #expect(try desk.recordAtOnce(of: bytes(made.token), asked: .now) == nil)
        #expect(try desk.record(of: bytes(made.token), asked: .now) == made.record)
        #expect(try desk.recordAtOnce(of: bytes(made.token), asked: .now) == made.record)
    }

    @Test("nobody asks another machine at once, not even for a token that nobody can revoke")
    func remote() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        let made = try store.create(dataSet: "a", now: 1)
        let database = FarSource()
        let index = try TokenIndex(
            store: store, databases: [database], fixed: [try FixedToken("club:other")])
        var desk = TokenAuthenticator(index: index, signed: nil, now: { 1 })
        let asked = database.queries
        #expect(try desk.recordAtOnce(of: bytes("other"), asked: .now)?.dataSet == "club")
        #expect(try desk.recordAtOnce(of: bytes(made.token), asked: .now) == nil)
        #expect(database.queries == asked)
        #expect(try desk.record(of: bytes(made.token), asked: .now) == made.record)
        #expect(database.queries > asked)
    }

    /// Stands for tokens on another machine; counts what it is asked.
    private final class FarSource: TokenSource {
        private(set) var queries = 0
        var isRemote: Bool { true }

        func version() throws -> Int64 {
            queries += 1
            return 1
        }

        func entries() throws -> [TokenStore.Entry] { [] }

        func setPatience(milliseconds: Int32) {}
    }

    /// A process of its own, for the locks of one process do not exclude each other. It stands where
    /// SQLite puts the index of a WAL right: with the locks of the writer and of recovery
    /// (https://sqlite.org/walformat.html), and with two copies of the header that differ.
    private struct Holder: @unchecked Sendable {
        let process: Process
        let input: Pipe

        func release() {
            try? input.fileHandleForWriting.close()
            process.waitUntilExit()
        }
    }

    private static func recovering(_ path: String) throws -> Holder {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c",
            """
            import fcntl, os, sys
            file = os.open(sys.argv[1], os.O_RDWR)
            for byte in 120, 122:
                fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
            os.pwrite(file, b"\\xff", 8)
            os.write(1, b"held")
            sys.stdin.read()
            """, path,
        ]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        #expect(try output.fileHandleForReading.read(upToCount: 4) == Data("held".utf8))
        return Holder(process: process, input: input)
    }

    @Test("given at the start keeps its name over restarts, and the name does not tell the token")
    func fixed() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        #expect(throws: ServerFailure.self) { try FixedToken("league:white space") }
        let fixed = [
            try FixedToken(dataSet: "league", token: "secret"), try FixedToken("club:other"),
        ]
        var index = try TokenIndex(store: store, fixed: fixed)
        let record = try #require(try index.record(of: bytes("secret")))
        #expect(record.dataSet == "league")
        var again = try TokenIndex(store: try TokenStore(directory: folder.path), fixed: fixed)
        #expect(try again.record(of: bytes("secret")) == record)
        let elsewhere = TemporaryFolder()
        var stranger = try TokenIndex(
            store: try TokenStore(directory: elsewhere.path), fixed: fixed)
        #expect(try stranger.record(of: bytes("secret"))?.identifier != record.identifier)
    }

    @Test(
        "is refused for what cannot be the name of a data set",
        arguments: [
            "", ".hidden", "Upper", "a/b", "..", "a b", "tokens", "martlet", "ä",
            String(repeating: "a", count: 65),
        ])
    func namesOfDataSets(name: String) throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        #expect(throws: ServerFailure.self) { try store.create(dataSet: name, now: 1) }
        #expect(throws: ServerFailure.self) { try FixedToken(dataSet: name, token: "t") }
        #expect(try store.list().isEmpty)
    }

    @Test("is refused with users, roles or devices that hold control characters or nothing")
    func textsWithControlCharacters() throws {
        let folder = TemporaryFolder()
        let store = try TokenStore(directory: folder.path)
        #expect(throws: ServerFailure.self) { try store.create(dataSet: "a", user: "", now: 1) }
        #expect(throws: ServerFailure.self) {
            try store.create(dataSet: "a", roles: ["a\nadmin"], now: 1)
        }
        #expect(throws: ServerFailure.self) {
            try store.create(dataSet: "a", device: String(repeating: "x", count: 129), now: 1)
        }
    }

    @Test(
        "is read from a bearer header, and from nothing else",
        arguments: [
            ("Bearer abc", "abc"), ("bearer  a.b~c+/-_=", "a.b~c+/-_="), ("Bearer", nil),
            ("Bearer ", nil), ("Basic abc", nil), ("Bearer a b", nil), ("Bearer a,b", nil),
            ("Bearer é", nil), ("abc", nil), ("", nil),
        ] as [(String, String?)])
    func header(header: String, token: String?) {
        #expect(BearerToken.parse(header) == token.map { [UInt8]($0.utf8) })
    }
}

@Suite("Data directory")
struct DataDirectoryTests {
    @Test("belongs to one server at a time")
    func lock() throws {
        let folder = TemporaryFolder()
        try TokenStore.makeDirectory(folder.path)
        var first: DirectoryLock? = try DirectoryLock(directory: folder.path)
        let refusal = #expect(throws: ServerFailure.self) {
            try DirectoryLock(directory: folder.path)
        }
        #expect(refusal?.message.contains("Another martlet server") == true)
        #expect(first != nil)
        first = nil
        _ = try DirectoryLock(directory: folder.path)
    }

    @Test("is not refused because another server, which gets it neither, tries at the same time")
    func lockedForAMoment() throws {
        let folder = TemporaryFolder()
        try TokenStore.makeDirectory(folder.path)
        let other = try Connection(path: folder.path + "/martlet.lock", busyTimeoutMilliseconds: 0)
        try other.execute("BEGIN; SELECT count(*) FROM sqlite_schema")
        nonisolated(unsafe) let trying = other
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.02)
            try? trying.execute("COMMIT")
            ended.signal()
        }
        defer { ended.wait() }
        _ = try DirectoryLock(directory: folder.path)
    }

    @Test("is made for its owner's eyes only")
    func permissions() throws {
        let folder = TemporaryFolder()
        _ = try TokenStore(directory: folder.path)
        func permissions(_ path: String) throws -> Int? {
            let found = try FileManager.default.attributesOfItem(atPath: path)
            return (found[.posixPermissions] as? NSNumber)?.intValue
        }
        #expect(try permissions(folder.path) == 0o700)
        #expect(try permissions(folder.path + "/tokens.sqlite") == 0o600)
    }
}
