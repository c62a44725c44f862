import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Edits of records that their tables would refuse without them")
struct UnfitImageTests {
    private static let script = "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, city TEXT);"
    private static let unique = script + "CREATE UNIQUE INDEX one_each ON teams(name);"

    private let teams = "SELECT id, name, city FROM teams ORDER BY id"

    /// A device whose two teams had one name, on which an edit of the second and a deletion wait, and
    /// whose app has made names unique since.
    private func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: Self.script)
        try device.apply(
            [
                .entry(1, .created("teams", 1, at: 1, ["name": "Owls"])),
                .entry(2, .created("teams", 2, at: 2, ["name": "Owls"])),
                .entry(3, .created("teams", 3, at: 3, ["name": "Owls", "city": "Rome"])),
            ], reaching: 3)
        try device.write { try $0.update("teams", .integer(2), ["name": "Larks"]) }
        try device.write { try $0.delete("teams", .integer(3)) }
        try device.reopen(script: Self.unique)
        return device
    }

    @Test("others' changes come in under them, and they stay as they were")
    func stay() throws {
        let device = try device()
        // Somebody gives a name that makes all edits move.
        try device.apply(
            [
                .entry(4, .updated("teams", 1, at: 4, ["name": "Hawks"])),
                .entry(5, .created("teams", 4, at: 5, ["name": "Larks"])),
            ], reaching: 5)
        // The name is taken now, so that edit is refused; the deletion stands.
        #expect(
            try device.rows(teams)
                == [[1, "Hawks", .null], [2, "Owls", .null], [4, "Larks", .null]])
        let parked = try device.store.parked()
        #expect(parked.map(\.changes.first?.id) == [.integer(2)])
        let sets = try device.gather().changeSets
        #expect(sets.map { $0.types[0].delete } == [[.integer(3)]])
        try device.apply(
            [.entry(6, own: sets[0].identifier, TypeChanges(name: "teams", delete: [.integer(3)]))],
            reaching: 6)
        #expect(try device.store.quarantined().isEmpty)
        #expect(try device.rows("SELECT count(*) FROM martlet_records") == [[3]])
    }

    @Test("what is refused leaves what the server has in quarantine, and can be tried again")
    func refusedToQuarantine() throws {
        let device = try device()
        let sets = try device.gather().changeSets
        let report = try device.apply(
            sets.compactMap(\.identifier).map { .refusal($0, .constraint) }, reaching: 3)
        #expect(report.quarantined == 2)
        #expect(try device.rows(teams) == [[1, "Owls", .null]])
        #expect(
            try device.store.quarantined().map { [$0.id, .integer($0.revision)] }
                == [[.integer(2), .integer(2)], [.integer(3), .integer(3)]])
        // Both can be made again on top of what no table shows.
        for set in try device.store.parked() {
            _ = try device.store.retry(set.identifier, now: 3_000)
        }
        #expect(try device.rows(teams) == [[1, "Owls", .null], [2, "Larks", .null]])
        #expect(try device.store.quarantined().isEmpty)
        let again = try device.gather().changeSets
        #expect(again.map { $0.types[0].entries.first?.revision } == [2, 3])
        try device.apply(
            [
                .entry(
                    4, own: again[0].identifier, .updated("teams", 2, at: 4, ["name": "Larks"])),
                .entry(
                    5, own: again[1].identifier,
                    TypeChanges(name: "teams", delete: [.integer(3)])),
            ], reaching: 5)
        #expect(try device.rows(teams) == [[1, "Owls", .null], [2, "Larks", .null]])
        #expect(try device.store.quarantined().isEmpty)
    }

    @Test("what others change of one meanwhile makes the edit stale, and is taken in when it fits")
    func changed() throws {
        let device = try device()
        try device.apply(
            [.entry(4, .updated("teams", 2, at: 4, ["city": "Bern"]))], reaching: 4)
        #expect(try device.store.parked().map(\.reason) == [.stale])
        #expect(try device.rows(teams) == [[1, "Owls", .null]])
        #expect(
            try device.store.quarantined().map(\.attributes)
                == [["name": "Owls", "city": "Bern"]])
        try device.apply(
            [.entry(5, .updated("teams", 2, at: 5, ["name": "Doves"]))], reaching: 5)
        #expect(try device.rows(teams) == [[1, "Owls", .null], [2, "Doves", "Bern"]])
        #expect(try device.store.quarantined().isEmpty)
    }
}
