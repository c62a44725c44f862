import MartletModel
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests text keys that one save replaces by keys which the column's collation takes for equal.
@Suite("Keys replaced by equal ones")
struct ReplacedKeyTests {
    private static let script = """
        CREATE TABLE people(id TEXT PRIMARY KEY COLLATE NOCASE, name TEXT);
        CREATE TABLE badges(
            id INTEGER PRIMARY KEY, person TEXT REFERENCES people(id) ACTION DEFERRABLE INITIALLY DEFERRED)
        """

    private static func people(_ device: SmallDevice) throws -> [[SQLValue]] {
        try device.store.local.rows("SELECT id, name FROM people ORDER BY id").map(\.values)
    }

    @Test(
        "server and devices take a key of another case",
        arguments: ["ON DELETE CASCADE", "ON UPDATE CASCADE", ""])
    func replacedKeyOfAnotherCase(action: String) throws {
        let name = "replaced-key-\(action.filter(\.isLetter))"
        let script = Self.script.replacing("ACTION", with: action)
        let server = SmallServer(switchedOff: FaultDisk(name: "\(name)-server"), script: script)
        try server.open()
        let device = try SmallDevice(FaultDisk(name: "\(name)-1"), number: 1, script: script)
        let other = try SmallDevice(FaultDisk(name: "\(name)-2"), number: 2, script: script)
        try device.write { context in
            try context.insert("people", ["name": "first"], id: "Anna")
            try context.insert("badges", ["person": "Anna"])
        }
        try device.sync(with: server)
        try other.sync(with: server)
        // Another program moves the reference along; its foreign keys are off.
        try Connection(path: "device.sqlite", mode: .readWrite, vfs: device.disk.vfsName).execute(
            """
            BEGIN; UPDATE badges SET person = 'anna'; DELETE FROM people;
            INSERT INTO people VALUES ('anna', 'second'); COMMIT;
            """)
        try device.sync(with: server)
        #expect(try device.store.parked().map(\.message) == [])
        try other.sync(with: server)
        for device in [device, other] {
            #expect(try device.errors.isEmpty && device.store.outboxCount == 0)
            #expect(try Self.people(device) == [["anna", "second"]])
            #expect(
                try device.store.local.rows("SELECT person FROM badges").map(\.values) == [["anna"]]
            )
        }
        // A device that was away has both in one answer.
        let third = try SmallDevice(FaultDisk(name: "\(name)-3"), number: 3, script: script)
        try third.sync(with: server)
        #expect(try Self.people(third) == [["anna", "second"]])
    }

    @Test("a reference in the case that the key had stands on what comes in")
    func referredTo() throws {
        let script = Self.script.replacing("ACTION", with: "")
        let server = SmallServer(switchedOff: FaultDisk(name: "referred-server"), script: script)
        try server.open()
        let device = try SmallDevice(FaultDisk(name: "referred-1"), number: 1, script: script)
        let other = try SmallDevice(FaultDisk(name: "referred-2"), number: 2, script: script)
        try device.write { context in try context.insert("people", ["name": "first"], id: "Anna") }
        try device.sync(with: server)
        try Connection(path: "device.sqlite", mode: .readWrite, vfs: device.disk.vfsName).execute(
            """
            BEGIN; DELETE FROM people; INSERT INTO people VALUES ('anna', 'second');
            INSERT INTO badges SELECT id, 'Anna' FROM martlet_new_id; COMMIT;
            """)
        try other.write { context in try context.insert("people", ["name": "other"], id: "Ben") }
        try other.sync(with: server)
        try device.sync(with: server)
        #expect(try device.store.parked().map(\.message) == [])
        try other.sync(with: server)
        for device in [device, other] {
            #expect(try device.errors.isEmpty && device.store.outboxCount == 0)
            #expect(try Self.people(device) == [["anna", "second"], ["Ben", "other"]])
            #expect(
                try device.store.local.rows("SELECT person FROM badges").map(\.values) == [["Anna"]]
            )
        }
    }

    @Test("a key is not changed in place, and the refusal says what to do")
    func changedKey() throws {
        let device = try DeviceFixture(script: Self.script.replacing("ACTION", with: ""))
        try device.shell("INSERT INTO people VALUES ('Anna', 'first')")
        let error = #expect(throws: SQLiteError.self) {
            try device.shell("UPDATE people SET id = 'anna'")
        }
        #expect(error?.message.contains("the key of a record cannot be changed") == true)
    }
}
