import Foundation
import SQLiteKit
import Testing

@testable import MartletCommand

@Suite("A snapshot of a data folder")
struct SnapshotCommandTests {
    @Test("waits for a server to take in what another program wrote, and says so where none runs")
    func externalWritesInSnapshot() async throws {
        let served = try ServedData()
        try await served.start()
        let file = served.path("data/team.sqlite")
        let out = served.path("shipped.sqlite")
        let words = [
            "snapshot", "--data", served.data, "--dataset", "team", "--out", out, "--json",
        ]
        try Connection(path: file).execute("INSERT INTO teams (name) VALUES ('Ants')")
        let made = await ServedData.run(words)
        #expect(made.code == .done, "\(made.err)")
        #expect(made.out.contains("\"revision\":1") && made.out.contains("\"records\":1"))
        await served.stop()
        try FileManager.default.removeItem(atPath: out)
        try Connection(path: file).execute("INSERT INTO teams (name) VALUES ('Bees')")
        let refused = await ServedData.run(words)
        #expect(refused.code == .failed)
        #expect(refused.err.contains("a server that runs on the file takes it in"))
        #expect(!FileManager.default.fileExists(atPath: out))
    }
}
