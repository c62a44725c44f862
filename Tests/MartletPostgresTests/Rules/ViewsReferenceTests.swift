import Foundation
import PostgresKit
import TestDatabases
import Testing

@Suite("Devices against PostgreSQL's row-level security")
struct ViewsReferenceTests {
    /// MARTLET_REFERENCE_SEED names the first of MARTLET_REFERENCE_WORLDS worlds, each of
    /// MARTLET_REFERENCE_STEPS steps. Every world is lived through on both storages.
    private static let environment = ProcessInfo.processInfo.environment
    private static let seeds: Range<UInt64> = {
        let first = environment["MARTLET_REFERENCE_SEED"].flatMap { UInt64($0) } ?? 1
        return first..<first
            + (environment["MARTLET_REFERENCE_WORLDS"].flatMap { UInt64($0) } ?? 100)
    }()
    private static let steps = environment["MARTLET_REFERENCE_STEPS"].flatMap { Int($0) } ?? 30

    /// Nothing has to outlive a crash of this server.
    private static let servers = Task {
        let servers = try await DatabaseServers.start(["--postgres", "--set", "fsync=off"])
        try await TestDatabase.make(on: servers).connected(ReferenceDatabase.makeRoles)
        return servers
    }

    @Test(
        "devices of a server on a file have what PostgreSQL shows their users, and what it refuses is refused"
    )
    func file() async throws {
        try await live { rules in try RulesServer.file(rules) }
    }

    @Test("devices of a server on PostgreSQL do, too")
    func database() async throws {
        let database = try await TestDatabase.make(on: Self.servers.value).address
        try await live { rules in try RulesServer.database(database, rules) }
    }

    private func live(
        _ make: @escaping @Sendable (RandomRules) throws -> RulesServer
    ) async throws {
        let reference = try await TestDatabase.make(on: Self.servers.value).address
        let counts = try await TestDatabase.blocking {
            var counts: [String: Int] = [:]
            for seed in Self.seeds {
                counts.merge(try Self.counts(seed, reference, make), uniquingKeysWith: +)
            }
            return counts
        }
        // Neither “always” nor “never” would pass.
        let worlds = Self.seeds.count
        for name in ["accepted", "refused", "moved", "changed"] {
            #expect(counts[name] ?? 0 > worlds, "\(name): \(counts)")
        }
        for name in ["cut", "judged", "early", "replaced"] {
            #expect(counts[name] ?? 0 > worlds / 8, "\(name): \(counts)")
        }
        #expect(counts["violating"] ?? 0 >= worlds / 50, "\(counts)")
        #expect((counts["unclear"] ?? 0) * 8 < (counts["accepted"] ?? 0), "\(counts)")
        // Few conditions compare ids by order.
        #expect((counts["temporary"] ?? 0) <= worlds / 50 + 1, "\(counts)")
        let (shown, all) = (counts["shown"] ?? 0, counts["all"] ?? 0)
        #expect(shown * 10 > all && shown * 10 < all * 9, "\(counts)")
        if Self.environment["MARTLET_REFERENCE_WORLDS"] != nil { print("\(Self.seeds): \(counts)") }
    }

    /// Lives through a world.
    private static func counts(
        _ seed: UInt64, _ reference: PostgresAddress, _ make: (RandomRules) throws -> RulesServer
    ) throws -> [String: Int] {
        // Statements are prepared for the tables of one world.
        let connection = try PostgresConnection(reference)
        defer { connection.close() }
        let world = try ViewsReference(seed: seed) { rules in
            (try make(rules), try ReferenceDatabase(connection, rules))
        }
        do {
            for _ in 0..<steps { try world.step() }
            try world.end()
        } catch let error as PostgresError where error.sqlState == "XX000" {
            // PostgreSQL 15 cannot plan some conditions without a column, such as a day that equals
            // itself. The world ends, because the reference does not answer.
        } catch {
            Issue.record(
                """
                MARTLET_REFERENCE_SEED=\(seed) MARTLET_REFERENCE_WORLDS=1 MARTLET_REFERENCE_STEPS=\(steps) \
                repeats this: \(error)
                \(world.description)
                """)
        }
        return world.counts
    }
}
