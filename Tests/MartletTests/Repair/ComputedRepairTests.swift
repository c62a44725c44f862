import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Self-check of records with computed values")
struct ComputedRepairTests {
    @Test("a record that is missing comes back, although no device can be sent its computed value")
    func unsendableComputedValue() throws {
        let script = """
            CREATE TABLE files(
                id TEXT PRIMARY KEY, head BLOB, kept TEXT AS (head || '.') STORED, line TEXT AS (head || '!'))
            """
        let world = try SmallWorld("computed", script: script)
        let device = try world.device(script: script)
        try device.write { context in
            _ = try context.rows("INSERT INTO files VALUES ('a', x'ff'), ('b', x'61')")
        }
        try device.sync(with: world.server)
        try device.connection().execute(
            """
            UPDATE martlet_control SET capture = 0; DELETE FROM files;
            UPDATE martlet_control SET capture = 1
            """)
        var run = CheckRun(repairing: .revert)
        while let body = try run.request(device.store, now: 1_000) {
            try run.take(world.server.answer(body).body, device.store, now: 1_000)
        }
        #expect(run.report.findings.map(\.id) == [.text("a"), .text("b")])
        #expect(
            try device.connection().text("SELECT group_concat(hex(head)) FROM files") == "FF,61")
    }
}
