import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Counts the work for many waiting saves of one record.
@Suite("Long queues")
struct LongQueueTests {
    /// Applies the answer to a queue of edits of one record in slices, as the device does.
    /// - Returns: The number of sets moved, and the steps of SQLite's machine.
    private static func cost(_ count: Int, records: Int = 1) throws -> (moved: Int, steps: Int) {
        let device = try DeviceFixture()
        var teams = TypeChanges(name: "teams")
        for id in 1...Int64(records) {
            teams.create.append(.integer(id))
            teams.entries.append(
                RecordEntry(
                    id: .integer(id), revision: 1, attributes: ["name": "first"]))
        }
        try device.apply([.entry(1, teams)], reaching: 1)
        for number in 0..<count {
            try device.write {
                try $0.update(
                    "teams", .integer(Int64(number % records + 1)),
                    ["name": .text("name \(number)")])
            }
        }
        let world = NodeFixture(device) { options in
            options.isLive = false
            options.sliceRecords = 40
        }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let sets = sent.request.changeSets.enumerated().map { number, set in
            ChangeSet.entry(
                Int64(number) + 2, own: set.identifier,
                .updated(
                    "teams", Int64(number % records + 1), at: Int64(number) + 2,
                    ["name": .text("name \(number)")]))
        }
        #expect(sets.count == count)
        _ = device.store.takeApplyingCounts()
        var told = try world.answer(sent.exchange, Int64(count) + 1, sets)
        var moved = 0
        while true {
            for case .notify(.applied(let report, _)) in told.actions { moved += report.movedSets }
            guard
                let next = told.actions.compactMap({ action -> Int? in
                    if case .applyNext(let exchange) = action { exchange } else { nil }
                }).first
            else { break }
            told = world.handle(.applyNext(exchange: next))
        }
        #expect(try device.store.outboxCount == 0)
        #expect(
            try device.rows("SELECT name FROM teams WHERE id = \((count - 1) % records + 1)")
                == [[.text("name \(count - 1)")]])
        return (moved, device.store.takeApplyingCounts().steps)
    }

    @Test("twice as many edits of one record cost twice as much", arguments: [1, 8])
    func linearEdits(records: Int) throws {
        let (single, double) = (
            try Self.cost(400, records: records), try Self.cost(800, records: records)
        )
        #expect(Double(double.moved) < 2.3 * Double(single.moved))
        #expect(Double(double.steps) < 2.3 * Double(single.steps), "\(single) \(double)")
    }

    @Test("a verdict moves the sets that share a record with its own, through others as well")
    func chain() throws {
        let device = try DeviceFixture()
        let teams = (1...5).map { TypeChanges.created("teams", $0, at: 1, ["name": "first"]) }
        try device.apply(teams.map { .entry(1, $0) }, reaching: 1)
        // Each of the first four shares a record with the one before it.
        for (name, records) in [
            ("a", [1]), ("b", [1, 2]), ("c", [2, 3]), ("d", [3, 4]), ("e", [5]),
        ] {
            try device.write { context in
                for id in records {
                    try context.update("teams", .integer(Int64(id)), ["name": .text(name)])
                }
            }
        }
        let first = try device.gather().changeSets[0]
        let report = try device.apply(
            [.entry(2, own: first.identifier, .updated("teams", 1, at: 2, ["name": "a"]))],
            reaching: 2)
        #expect(report.movedSets == 3)
        #expect(
            try device.rows(
                "SELECT group_concat(name, '') FROM (SELECT name FROM teams ORDER BY id)")
                == [[.text("bcdde")]])
    }
}
