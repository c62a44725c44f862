import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

/// Tests sets in which others exchange unique values of records that the device has in quarantine.
@Suite("Quarantined records among exchanged values")
struct QuarantinedSwapTests {
    private static let script = """
        CREATE TABLE teams(
            id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE, size INTEGER CHECK (size < 100));
        """

    private static func whole(
        _ id: Int64, _ revision: Revision, _ attributes: Attributes
    ) -> TypeChanges {
        TypeChanges(
            name: "teams", update: [.integer(id)],
            entries: [
                RecordEntry(id: .integer(id), revision: revision, attributes: attributes)
            ])
    }

    /// Makes teams with the codes a, b and c; the third is in quarantine in a newer form.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["code": "a"]),
                    .created("teams", 2, at: 1, ["code": "b"]),
                    .created("teams", 3, at: 1, ["name": "C", "code": "c", "size": 1]))
            ], reaching: 1)
        _ = try device.gather()
        try device.apply(
            [DeviceFixture.difference(2, whole(3, 2, ["name": "CC", "code": "cc", "size": 500]))],
            reaching: 2)
        expectText(
            try device.text(),
            """
            at 2, lineage l2
            teams 1 @1: code "a"
            teams 2 @1: code "b"
            teams 3 @1: name "C", code "c", size 1
            quarantine teams 3 @2: name "CC", code "cc", size 500
            """)
        return device
    }

    private static func swap(_ third: Attributes) -> ChangeSet {
        .entry(
            3,
            TypeChanges(
                name: "teams", update: [.integer(1), .integer(2), .integer(3)],
                entries: [
                    RecordEntry(
                        id: .integer(1), revision: 3, attributes: ["code": "b"]),
                    RecordEntry(
                        id: .integer(2), revision: 3, attributes: ["code": "a"]),
                    RecordEntry(id: .integer(3), revision: 3, attributes: third),
                ]))
    }

    @Test("what the quarantine has of it comes with the change that makes it fit")
    func mended() throws {
        let device = try Self.device()
        try device.apply([Self.swap(["size": 5])], reaching: 3)
        expectText(
            try device.text(),
            """
            at 3, lineage l3
            teams 1 @3: code "b"
            teams 2 @3: code "a"
            teams 3 @3: name "CC", code "cc", size 5
            """)
    }

    @Test("what still does not fit stays in quarantine, and the table keeps what it shows")
    func keptInQuarantine() throws {
        let device = try Self.device()
        try device.apply([Self.swap(["name": "CCC"])], reaching: 3)
        expectText(
            try device.text(),
            """
            at 3, lineage l3
            teams 1 @3: code "b"
            teams 2 @3: code "a"
            teams 3 @1: name "C", code "c", size 1
            quarantine teams 3 @3: name "CCC", code "cc", size 500
            """)
    }

    @Test(
        "a change to a record that is neither here nor in quarantine is not taken for a whole one")
    func missingRecordOfSwap() throws {
        let device = try Self.device()
        try device.store.inApplyingTransaction {
            try device.store.applying.setCapture(false)
            try device.store.applying.connection.execute(
                "DELETE FROM teams WHERE id = 3; DELETE FROM martlet_quarantine")
            try device.store.applying.setCapture(true)
        }
        let before = try device.text()
        #expect(throws: StoreError.self) {
            try device.apply([Self.swap(["size": 5])], reaching: 3)
        }
        expectText(try device.text(), before)
    }
}
