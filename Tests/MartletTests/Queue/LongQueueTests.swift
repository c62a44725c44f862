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
}
