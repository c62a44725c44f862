internal import Foundation
internal import MartletStore

/// Counts what operations of the store, and what devices and servers do with remote change, cost and
/// compares with a file of thresholds.
///
///     StoreThresholds FILE             fails where a count is above its threshold
///     StoreThresholds FILE --update    writes what was counted
@main
enum StoreThresholds {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let path = arguments.first else {
            print("Name the file of thresholds.")
            exit(2)
        }
        let file = URL(fileURLWithPath: path)
        let counted = try await counts()
        if arguments.contains("--update") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
            try (encoder.encode(counted) + Data("\n".utf8)).write(to: file)
            print("Wrote \(counted.count) operations; look at the difference before it is kept.")
            return
        }
        let expected = try JSONDecoder().decode(
            [String: Counts].self, from: Data(contentsOf: file))
        exit(compare(counted, with: expected) ? 0 : 1)
    }

    private static func counts() async throws -> [String: Counts] {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-thresholds-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var options = DatabaseOptions()
        options.readers = 1
        // Looking for other processes' writes would count as well.
        options.externalWritesPeriod = .seconds(86_400)
        let pool = try await DatabasePool.open(
            path: folder.appendingPathComponent("a.sqlite").path, options: options)
        try await pool.write { _ = try Score.table.count(in: $0) }
        var counted: [String: Counts] = [:]
        for operation in Operation.all {
            counted[operation.name] = try await operation.counts(on: pool)
        }
        counted[ObservedCommit.name] = try await ObservedCommit.counts(on: pool)
        await pool.close()
        counted[AppliedSets.name] = try AppliedSets.counts(in: folder)
        counted[RepairedRows.name] = try await RepairedRows.counts(in: folder)
        counted[SharedBatch.name] = try SharedBatch.counts(in: folder)
        return counted
    }

    /// Prints what differs. Returns whether nothing is above.
    private static func compare(
        _ counted: [String: Counts], with expected: [String: Counts]
    ) -> Bool {
        var (above, below) = (0, 0)
        for (name, found) in counted.sorted(by: { $0.key < $1.key }) {
            guard let threshold = expected[name] else {
                print("“\(name)” has no threshold.")
                above += 1
                continue
            }
            for (count, limit) in zip(found.named, threshold.named) where count != limit {
                print("“\(name)”: \(count.value) \(count.name), threshold \(limit.value)")
                if count.value > limit.value { above += 1 } else { below += 1 }
            }
        }
        for name in expected.keys where counted[name] == nil {
            print("“\(name)” was not counted.")
            above += 1
        }
        if above > 0 {
            print("\(above) above: more is done than was. Find out why. Only where it")
            print("has to be so: scripts/thresholds --update, and say why in the commit.")
        } else if below > 0 {
            print("\(below) below: better. Keep it so: scripts/thresholds --update")
        } else {
            print("\(counted.count) operations cost what they did.")
        }
        return above == 0
    }
}
