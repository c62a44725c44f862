import Foundation
import Martlet
import Testing

@testable import YouthSports

@Suite("Versions of the file")
struct VersionTests {
    private let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("youth-\(UUID().uuidString)")

    private func path() throws -> String {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder.appendingPathComponent("organisation.sqlite").path
    }

    private func client(_ path: String, upTo version: Int) async throws -> MartletClient {
        try await MartletClient.open(
            path: path, migrations: try OrganisationSchema.versions(upTo: version))
    }

    @Test("a file of the first app comes to the newest version with what was not sent")
    func fromTheFirst() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try path()
        let old = try await client(path, upTo: 1)
        try await old.write { context in
            let team = try context.insert("teams", ["name": "Falcons", "age_group": "U12"])
            try context.insert(
                "players",
                ["name": "Ann", "birthday": "2014-05-31", "team_id": team.sqlValue])
        }
        await old.close()

        let organisation = try await Organisation.open(path: path)
        #expect(organisation.client.migration == .migrated(from: 1, to: 3))
        #expect(try await organisation.client.status().outbox == 1)
        let ann = try #require(try await organisation.roster.roster(of: "Falcons").first)
        #expect(ann.name == "Ann")
        #expect(!ann.hasConsent)
        #expect(ann.notes.isEmpty)
        // What came with later versions works on the old record.
        let id = try #require(ann.id)
        try await organisation.roster.setConsent(true, of: id)
        try await organisation.roster.note("Left knee is sore.", of: id)
        try await organisation.screenings.record(
            Screening(player: id, heldOn: "2026-03-01"), by: "Olga",
            [Measurement(kind: "height", value: 150, unit: "cm")])
        #expect(try await organisation.roster.search("knee").map(\.name) == ["Ann"])
        await organisation.close()

        let again = try await Organisation.open(path: path)
        #expect(again.client.migration == .upToDate)
        await again.close()
    }

    @Test("the versions lead to the tables the server is given")
    func server() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try path()
        let schema = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../schema.sql"), encoding: .utf8)
        let served = try await MartletClient.open(
            path: path + "-served", schema: schema)
        let led = try await client(path, upTo: .max)
        let tables = [
            "teams", "players", "staff", "duties", "screenings", "measurements", "events",
            "attendances",
        ]
        for table in tables {
            let there = try await served.read { try $0.description(of: table) }
            let here = try await led.read { try $0.description(of: table) }
            #expect(there == here)
        }
        await served.close()
        await led.close()
    }

    @Test("a file of a newer app is refused and left as it is")
    func newer() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try path()
        await (try await client(path, upTo: 3)).close()
        let error = await #expect(throws: StoreError.self) {
            _ = try await client(path, upTo: 2)
        }
        #expect(error?.kind == .newer)
        await (try await client(path, upTo: 3)).close()
    }
}
