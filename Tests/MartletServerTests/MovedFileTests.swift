import Foundation
import Testing
import Waiting

@testable import MartletServer

@Suite("A data set's file that is removed or replaced while its server runs")
struct MovedFileTests {
    private static func set(_ number: Int) -> String {
        ServerTests.create.replacing("set-1", with: "set-\(number)")
            .replacing("device-1", with: "device-\(number)")
            .replacing("Eagles", with: "Hawks \(number)")
    }

    @Test(
        "puts devices' sets off, tells the log and readiness, and serves the file again once it is back",
        arguments: [false, true])
    func moved(isReplaced: Bool) async throws {
        // Only the newest entry is in memory.
        let live = try await LiveServer { $0.cacheBytes = 1 }
        for number in 1...2 { #expect(try await live.sync(Self.set(number)).status == 200) }
        let files = FileManager.default
        let path = live.folder.path + "/league.sqlite"
        try files.moveItem(atPath: path, toPath: path + ".away")
        if isReplaced { try files.copyItem(atPath: path + ".away", toPath: path) }
        let refused = try await live.sync(Self.set(3))
        #expect(refused.status == 503)
        #expect(refused.kind == "storage")
        #expect(refused.body.contains("removed or replaced"))
        try await live.untilLogged("removed or replaced")
        #expect(try await live.request("GET", "/readyz").status == 503)
        #expect(try await live.request("GET", "/healthz").status == 200)
        let pull = #"{"maxRevision": 0, "changeSets": []}"#
        #expect(try await live.sync(pull).status == 503)
        let newest = #"{"maxRevision": 1, "changeSets": []}"#
        #expect(try await live.sync(newest).changeSets.count == 1)
        #expect(files.fileExists(atPath: path) == isReplaced)
        if isReplaced { try files.removeItem(atPath: path) }
        try files.moveItem(atPath: path + ".away", toPath: path)
        #expect(try await live.sync(Self.set(3)).member("maxRevision") == 3)
        #expect(try await live.sync(pull).changeSets.count == 3)
        try await waitUntil("the server is ready") {
            try await live.request("GET", "/readyz").status == 200
        }
        await live.stop()
    }

    @Test("is noticed although nobody writes")
    func unwritten() async throws {
        let live = try await LiveServer()
        #expect(try await live.sync(ServerTests.create).status == 200)
        let path = live.folder.path + "/league.sqlite"
        for suffix in ["", "-wal", "-shm"] {
            try FileManager.default.removeItem(atPath: path + suffix)
        }
        try await live.untilLogged("removed or replaced")
        try await waitUntil("readiness says so") {
            try await live.request("GET", "/readyz").status == 503
        }
        #expect(try await live.sync(ServerTests.create).status == 503)
        await live.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}
