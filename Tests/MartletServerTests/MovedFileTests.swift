import Foundation
import Testing
import Waiting

@testable import MartletServer

@Suite("A data set's file that is removed or replaced while its server runs")
struct MovedFileTests {
    private static let second = ServerTests.create.replacing("set-1", with: "set-2")
        .replacing("device-1", with: "device-2").replacing("Eagles", with: "Hawks")

    @Test(
        "puts devices' sets off, tells the log and readiness, and serves the file again once it is back",
        arguments: [false, true])
    func moved(isReplaced: Bool) async throws {
        let live = try await LiveServer()
        #expect(try await live.sync(ServerTests.create).status == 200)
        let files = FileManager.default
        let path = live.folder.path + "/league.sqlite"
        try files.moveItem(atPath: path, toPath: path + ".away")
        if isReplaced { try files.copyItem(atPath: path + ".away", toPath: path) }
        let refused = try await live.sync(Self.second)
        #expect(refused.status == 503)
        #expect(refused.kind == "storage")
        #expect(refused.body.contains("removed or replaced"))
        try await live.untilLogged("removed or replaced")
        #expect(try await live.request("GET", "/readyz").status == 503)
        #expect(try await live.request("GET", "/healthz").status == 200)
        #expect(files.fileExists(atPath: path) == isReplaced)
        if isReplaced { try files.removeItem(atPath: path) }
        try files.moveItem(atPath: path + ".away", toPath: path)
        #expect(try await live.sync(Self.second).member("maxRevision") == 2)
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
        await live.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}
