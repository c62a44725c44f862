import Foundation
import MartletModel
internal import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Opening a device's file again")
struct OpeningTests {
    @Test("reads only where nothing is to be changed, while another program writes")
    func readingWhileOthersWrite() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        let other = try Connection(path: device.path, mode: .readWrite)
        try other.execute("BEGIN IMMEDIATE; UPDATE martlet_state SET value = value")
        for script in [nil, DeviceFixture.script] {
            // Opening does not wait: taking the lock would fail at once.
            let store = try LocalStore(
                path: device.path, script: script, busyTimeoutMilliseconds: 0)
            #expect(try store.index(of: "notes") == 2)
            #expect(try store.rows("SELECT name FROM teams").count == 1)
        }
        try other.execute("ROLLBACK")
    }

    @Test(
        "changes what is not as it should be",
        arguments: [
            "DROP TRIGGER martlet_capture_delete_1", "DROP VIEW martlet_new_id",
            "DELETE FROM martlet_state WHERE name = 'layout'",
            "CREATE UNIQUE INDEX u ON teams(lower(name))",
            "INSERT INTO teams(id, name) SELECT id, 'b' FROM martlet_new_id",
        ])
    func settled(sql: String) throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        try device.shell(sql)
        let other = try Connection(path: device.path, mode: .readWrite)
        try other.execute("BEGIN IMMEDIATE")
        #expect(throws: (any Error).self) {
            _ = try LocalStore(path: device.path, script: nil, busyTimeoutMilliseconds: 0)
        }
        try other.execute("ROLLBACK")
        let store = try DeviceStore(
            path: device.path, script: nil, randomBits: { UInt64.random(in: .min ... .max) })
        try device.shell("DELETE FROM teams WHERE id = -2")
        _ = try store.write(now: 1) { try $0.insert("teams", ["name": "c"]) }
        #expect(try store.outboxCount == (sql.hasPrefix("INSERT") ? 4 : 3))
    }

    @Test("a path that is no file's is refused", arguments: ["", ":memory:", "file:x?mode=memory"])
    func noFile(path: String) async throws {
        await #expect {
            _ = try await MartletClient.open(
                path: path, schema: DeviceFixture.script, transport: nil)
        } throws: {
            ($0 as? StoreError)?.kind == .file
        }
    }

    @Test("a file that was taken away while it was open takes no save, and still sends what it has")
    func takenAway() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        let away = device.path + "-away"
        try FileManager.default.moveItem(atPath: device.path, toPath: away)
        for isReplaced in [false, true] {
            if isReplaced { try FileManager.default.copyItem(atPath: away, toPath: device.path) }
            #expect {
                try device.write { try $0.insert("teams", ["name": "b"]) }
            } throws: {
                ($0 as? StoreError)?.kind == .file
            }
        }
        let sent = try #require(try device.gather().changeSets.first?.identifier)
        try device.apply(
            [.entry(1, own: sent, .created("teams", 1, old: -2, at: 1, ["name": "a"]))],
            reaching: 1)
        #expect(try device.rows("SELECT id, name FROM teams") == [[1, "a"]])
        try FileManager.default.removeItem(atPath: device.path)
        try FileManager.default.moveItem(atPath: away, toPath: device.path)
        try device.write { try $0.insert("teams", ["name": "b"]) }
        #expect(try device.store.outboxCount == 1)
    }
}
