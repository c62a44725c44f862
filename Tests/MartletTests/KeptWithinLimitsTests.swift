import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("What a device's file keeps, and gives back")
struct KeptWithinLimitsTests {
    /// Saves a change and has the server accept it.
    private func confirm(
        _ device: DeviceFixture, at revision: Revision, _ body: (WriteContext) throws -> Void
    ) throws {
        try device.write(body)
        let sets = try device.gather().changeSets.map { sent in
            var set = sent
            set.revision = revision
            set.conflict = false
            return set
        }
        try device.apply(sets, reaching: revision)
    }

    private func bytes(_ device: DeviceFixture) throws -> Int64 {
        try device.store.applying.connection.integer(
            """
            SELECT (SELECT total(length(frozen)) FROM martlet_confirmed) + (
                SELECT total(ifnull(length(base), 0) + ifnull(length(after), 0))
                FROM martlet_confirmed_changes)
            """) ?? 0
    }

    @Test("accepted sets stay within their bytes, the newest of them")
    func confirmed() throws {
        let device = try DeviceFixture()
        device.store.mostKeptBytes = 20_000
        for number in Int64(1)...60 {
            try confirm(device, at: number) { context in
                try context.insert(
                    "notes", ["body": .text(String(repeating: "x", count: 1_000))],
                    id: "n\(number)")
            }
            #expect(try bytes(device) <= 20_000)
        }
        let kept = try device.rows("SELECT count(*), max(revision) FROM martlet_confirmed")
        #expect(kept[0][1] == 60)
        guard case .integer(let count) = kept[0][0] else { throw FixtureError.changed }
        #expect((10...20).contains(count))
        device.store.mostKeptBytes = 0
        try confirm(device, at: 61) { try $0.insert("notes", ["body": "y"], id: "last") }
        #expect(
            try device.rows("SELECT max(revision) FROM martlet_confirmed") == [[60]])
    }

    @Test("a set's text stands in the file once, and comes back to the byte")
    func onceStoredText() throws {
        let device = try DeviceFixture()
        var sent: [UInt8] = []
        let text = String(repeating: "A long text, said once more. ", count: 200)
        try device.write { try $0.insert("notes", ["body": .text(text)], id: "n") }
        _ = try device.gather()
        let frozen = try device.store.applying.connection.statement(
            "SELECT frozen FROM martlet_outbox")
        #expect(try frozen.step())
        sent = frozen.blob(0)
        frozen.reset()
        var set = try device.gather().changeSets[0]
        (set.revision, set.conflict) = (1, false)
        try device.apply([set], reaching: 1)
        #expect(try bytes(device) < Int64(text.utf8.count) * 5 / 4)
        let kept = ConfirmedSets(store: device.store.applying, mostBytes: 1 << 20)
        #expect(try kept.queueAgain(after: 0) == 1)
        #expect(try frozen.step())
        #expect(frozen.blob(0) == sent)
        frozen.reset()
    }

    @Test("fates are kept of the newest sets, and of those that are parked")
    func receipts() throws {
        let device = try DeviceFixture()
        let parking = Parking(store: device.store.applying)
        try device.store.applying.connection.execute(
            """
            INSERT INTO martlet_parked(sequence, identifier, reason, message, seen, timestamp, at)
            VALUES (3, 'p', 'stale', '', 0, '', 0)
            """)
        let last = Parking.mostReceipts + 1_024
        for sequence in 1...last {
            try parking.keep(
                Receipt(identifier: "s\(sequence)", outcome: .accepted, revision: sequence),
                sequence: sequence, now: 0)
        }
        let kept = try device.rows("SELECT min(sequence), count(*) FROM martlet_receipts")[0]
        guard case .integer(let count) = kept[1] else { throw FixtureError.changed }
        #expect(kept[0] == 3)
        #expect((Parking.mostReceipts...Parking.mostReceipts + 257).contains(count))
        #expect(try device.store.receipts(limit: 1).map(\.revision) == [last])
    }

    @Test("free pages go back to the disk in steps, while the device is idle")
    func freePages() throws {
        let world = NodeFixture(try DeviceFixture()) {
            ($0.freePages, $0.pagesOfStep) = (8, 16)
        }
        let connection = world.device.store.applying.connection
        try connection.execute(
            """
            CREATE TABLE big(n INTEGER PRIMARY KEY, bytes BLOB);
            WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200)
            INSERT INTO big SELECT n, zeroblob(4000) FROM numbers;
            DROP TABLE big;
            """)
        let before = try #require(try connection.integer("PRAGMA page_count"))
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        var told = try world.answer(sent.exchange, 0)
        var steps = 0
        while told.actions.contains(where: { if case .tidy = $0 { true } else { false } }) {
            let pages = try #require(try connection.integer("PRAGMA page_count"))
            told = world.handle(.tidy)
            let left = try #require(try connection.integer("PRAGMA page_count"))
            #expect(pages - left <= 18)
            steps += 1
        }
        #expect(steps > 5)
        #expect(try connection.integer("PRAGMA freelist_count") ?? 99 <= 8)
        #expect(try #require(try connection.integer("PRAGMA page_count")) < before - 150)
        // Nothing is given back during an exchange.
        _ = world.handle(.wake(isUrgent: true))
        #expect(world.handle(.tidy).isEmpty)
    }
}
