internal import Foundation
package import MartletServerCore
internal import SQLiteRecords

/// Reads a seeding file, which says in which classes a device fetches a data set, in order.
///
/// ```json
/// {"classes": [{"name": "first", "types": {"teams": "*", "events": "year >= 2025"}}]}
/// ```
///
/// "*" takes all records of a type. Any other text is an SQL expression over the type's columns.
/// Records that no class takes are in a last class of their own, “rest”.
package enum SeedingFile {
    /// Returns the plan of a seeding file. It does not check the types and expressions (see
    /// `SeedingPlan.check`).
    ///
    /// - Throws: `ServerFailure`, which says what is expected, if the bytes are not a seeding file.
    package static func parse(_ bytes: [UInt8]) throws(ServerFailure) -> SeedingPlan {
        try SoundJSON.check(bytes, of: "The seeding file")
        let file: File
        do {
            file = try JSONDecoder().decode(File.self, from: Data(bytes))
        } catch {
            throw ServerFailure(
                """
                The seeding file is not understood; expected {"classes": [{"name": "first", \
                "types": {"TYPE": "*" or an SQL expression}}]}.
                """)
        }
        let names = file.classes.map(\.name)
        guard (1...SeedingPlan.mostClasses).contains(names.count) else {
            throw ServerFailure(
                "The seeding file has \(names.count) classes; give it 1 to"
                    + " \(SeedingPlan.mostClasses).")
        }
        let isSound =
            names.allSatisfy(SnapshotFormat.isPartName) && Set(names).count == names.count
            && !names.contains(SeedingPlan.restName)
        guard isSound else {
            throw ServerFailure(
                """
                A seeding class has a name of 1 to \(SnapshotFormat.longestPartName) of a-z, 0-9, \
                “_” and “-”, its own, and not “\(SeedingPlan.restName)”.
                """)
        }
        return SeedingPlan(
            classes: file.classes.map { part in
                .init(
                    name: part.name,
                    types: part.types.mapValues { $0 == "*" ? .all : .matching($0) })
            })
    }

    private struct File: Decodable {
        struct Class: Decodable {
            var name: String
            var types: [String: String]
        }

        var classes: [Class]
    }
}
