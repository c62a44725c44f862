internal import AllocationCounter
internal import Foundation
internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Change sets that come into a device's tables.
enum AppliedSets {
    static let name = "apply 100 change sets of 10 records on a device"

    static func counts(in folder: URL) throws -> Counts {
        let store = try DeviceStore(
            path: folder.appendingPathComponent("device.sqlite").path,
            script: Score.table.declaration, randomBits: { 4 })
        var counts: [Counts] = []
        for round in 0..<2 {
            let sets = Self.sets(round)
            let before = store.takeApplyingCounts()
            let allocations = allocations_of_thread()
            let report = try store.apply(
                sets[...], reaching: Int64((round + 1) * 100), lineage: nil, dataSet: nil,
                owner: "counter", now: 1)
            guard report?.remoteRecords == 1_000 else {
                throw StoreError(.inconsistent, "Not all records were applied.")
            }
            let cost = store.takeApplyingCounts()
            counts.append(
                Counts(
                    prepared: cost.prepared - before.prepared, steps: cost.steps,
                    allocations: Int(allocations_of_thread() - allocations)))
        }
        counts[1].prepared = counts[0].prepared
        return counts[1]
    }

    private static let names = ["team", "name", "points", "shirt", "active"]

    private static func sets(_ round: Int) -> [ChangeSet] {
        (0..<100).map { number in
            let revision = Int64(round * 100 + number + 1)
            let entries = (0..<10).map { record in
                let score = Score((Int(revision) * 10) + record)
                return RecordEntry(
                    id: .text(score.id), revision: revision,
                    attributes: Attributes(
                        names: names,
                        values: [
                            .integer(Int64(score.team)), .text(score.name), .real(score.points),
                            score.shirt.map { .integer(Int64($0)) } ?? .null,
                            .boolean(score.active),
                        ]))
            }
            var set = ChangeSet(types: [
                TypeChanges(name: "scores", create: entries.map(\.id), entries: entries)
            ])
            set.revision = revision
            return set
        }
    }
}
