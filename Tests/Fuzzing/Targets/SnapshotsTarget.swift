import Foundation
import SQLiteKit

@testable import SQLiteRecords

/// The file of a snapshot, before anything of it is used.
enum SnapshotsTarget: FuzzTarget {
    static let name = "snapshots"

    /// One file for all inputs, of this process alone.
    private static let file = FileManager.default.temporaryDirectory.appendingPathComponent(
        "martlet-fuzzed-\(ProcessInfo.processInfo.processIdentifier).sqlite")

    static func check(_ input: [UInt8]) throws {
        try Data(input).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        do {
            let reader = try SnapshotReader(path: file.path)
            try reader.verify()
            // It is sound: all it says of itself is so.
            for (position, type) in reader.description.types.enumerated() {
                var count: Int64 = 0
                try reader.forEach(of: position) { id, revision, attributes in
                    count += 1
                    try hold(
                        1...reader.description.revision ~= revision,
                        "a record is no newer than its snapshot")
                }
                try hold(count == type.records, "all records that are listed are there")
            }
        } catch let error as SnapshotError {
            try hold(!error.message.isEmpty, "a refusal says why")
        } catch is SQLiteError {
            // The disk, by its account.
        }
    }
}
