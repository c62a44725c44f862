import Foundation
import PostgresKit
import TestDatabases
import Testing

@Suite("Devices against PostgreSQL's row-level security")
struct ViewsReferenceTests {
    /// MARTLET_REFERENCE_SEED names the first of MARTLET_REFERENCE_WORLDS worlds.
    private static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["MARTLET_REFERENCE_SEED"].flatMap { UInt64($0) } ?? 1
        return first..<first
            + (environment["MARTLET_REFERENCE_WORLDS"].flatMap { UInt64($0) } ?? 4)
    }()
    private static let steps = 150

    @Test("every device has what PostgreSQL shows its user, and what PostgreSQL refuses is refused")
    func devices() async throws {
        let servers = try await DatabaseServers.start(["--postgres"])
        let reference = try await TestDatabase.make(on: servers).address
        let database = try await TestDatabase.make(on: servers).address
        let counts = try await TestDatabase.blocking {
            let connection = try PostgresConnection(reference)
            try ReferenceDatabase.makeRoles(connection)
            connection.close()
            var counts: [String: Int] = [:]
            for seed in Self.seeds {
                for server in [nil, database] {
                    counts.merge(try Self.counts(seed, reference, server), uniquingKeysWith: +)
                }
            }
            return counts
        }
        // Neither “always” nor “never” would pass.
        let worlds = Self.seeds.count
        for name in ["accepted", "refused", "moved", "cut", "judged", "early"] {
            #expect(counts[name] ?? 0 > worlds, "\(name): \(counts)")
        }
        let (shown, all) = (counts["shown"] ?? 0, counts["all"] ?? 0)
        #expect(shown * 10 > all && shown * 10 < all * 9, "\(counts)")
    }

    /// Lives through a world.
    ///
    /// - Parameter database: The database of Martlet's server; nil for a file.
    private static func counts(
        _ seed: UInt64, _ reference: PostgresAddress, _ database: PostgresAddress?
    ) throws -> [String: Int] {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("data.sqlite").path
        // Statements are prepared for the tables of one world.
        let connection = try PostgresConnection(reference)
        defer { connection.close() }
        let world = try ViewsReference(seed: seed) { rules in
            let server =
                try database.map { try RulesServer.database($0, rules) }
                ?? RulesServer.file(file, rules)
            return (server, try ReferenceDatabase(connection, rules))
        }
        do {
            for _ in 0..<steps { try world.step() }
            try world.end()
        } catch let error as PostgresError where error.sqlState == "XX000" {
            // PostgreSQL 15 cannot plan some conditions without a column, such as a day that equals
            // itself. The world ends, because the reference does not answer.
        } catch {
            Issue.record("seed \(seed): \(error)\n\(world.description)")
        }
        return world.counts
    }
}
