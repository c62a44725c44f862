import MartletModel
import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Migrations of a device's file")
struct SyncedMigrationTests {
    private let file: SyncedFile

    init() throws {
        file = try SyncedFile("migrations")
    }

    private func changes(_ sequence: Int) throws -> [String] {
        try file.rows(
            "SELECT name, id, operation, after FROM martlet_changes"
                + " JOIN martlet_types ON number = type WHERE sequence = \(sequence) ORDER BY 1, 2")
    }

    @Test("a new file is set up by its first version, and captures")
    func new() throws {
        let disk = FaultDisk(name: "synced-new")
        let store = try DeviceStore(
            path: "/new.db", migrations: Migrations(SyncedVersions.all), vfs: disk.vfsName,
            now: 1, randomBits: { 7 })
        // The last version writes a note: an edit like any other.
        #expect(store.migration == .migrated(from: 0, to: 6))
        #expect(try store.outboxCount == 1)
        #expect(
            store.local.schema.types.map(\.name) == ["teams", "players", "notes", "venues"])
        #expect(try store.contradiction() == nil)
    }

    @Test("what other programs wrote is closed into a change set before the tables change")
    func externalNotes() throws {
        try file.open(4)
        #expect(
            try changes(5) == [
                "notes|s|1|{\"body\":\"x\"}", "players|11|2|{\"email\":\"shell\"}",
            ])
        #expect(try file.rows("SELECT count(*) FROM martlet_capture") == ["0"])
        // Capture goes on under the new columns.
        try file.shell("UPDATE players SET shirt = 9 WHERE id = 14; DELETE FROM notes")
        _ = try file.gather()
        #expect(try changes(6) == ["notes|s|3|", "players|14|2|{\"shirt\":9}"])
        #expect(
            try file.rows("SELECT image FROM martlet_base WHERE id = 14")
                == ["{\"team_id\":6,\"name\":\"Eve\"}"])
    }

    @Test("what other programs wrote and what the first version writes are two change sets")
    func externalNotesBesideOwn() throws {
        try file.open([
            SyncedVersions.first,
            Migration(2, "notes") { try $0.execute("INSERT INTO notes VALUES ('v', 'y')") },
        ])
        #expect(
            try changes(5) == [
                "notes|s|1|{\"body\":\"x\"}", "players|11|2|{\"email\":\"shell\"}",
            ])
        #expect(try changes(6) == ["notes|v|1|{\"body\":\"y\"}"])
    }

    @Test("an added column takes what was kept aside, and its default elsewhere, without edits")
    func addedColumn() throws {
        try file.open(1)
        let outbox = try file.rows("SELECT sequence, records FROM martlet_outbox")
        try file.open(2)
        #expect(
            try file.rows("SELECT id, nickname FROM teams ORDER BY id")
                == ["-2|none", "5|Fal", "6|Haw"])
        #expect(
            try file.rows("SELECT image FROM martlet_base WHERE id = 5")
                == ["{\"name\":\"Falcons\",\"city\":\"Oslo\",\"nickname\":\"Fal\"}"])
        #expect(
            try file.rows("SELECT id, attributes FROM martlet_aside WHERE type = 'teams'")
                == ["5|{\"colour\":\"red\"}"])
        #expect(try file.rows("SELECT sequence, records FROM martlet_outbox") == outbox)
        #expect(try changes(2).contains { $0.hasPrefix("teams|-2|1|") && $0.contains("none") })
        #expect(
            try changes(2).filter { $0.hasPrefix("teams|5") }
                == ["teams|5|2|{\"city\":\"Paris\"}"])
        let parked = try file.opened().parked()[0].changes[0]
        #expect(parked.base?["nickname"] == "none")
        #expect(parked.mine == ["city": "Rome"])
        #expect(parked.theirs?["nickname"] == "Haw")
        #expect(try file.opened().contradiction() == nil)
    }

    @Test("a renamed column has its new name in every image and edit; what was sent stays as sent")
    func renamedColumn() throws {
        try file.open(1)
        let frozen = try file.rows("SELECT frozen FROM martlet_outbox WHERE sent = 1")
        #expect(frozen.count == 1 && frozen[0].contains("\"city\":\"Paris\""))
        try file.apply(
            [.entry(4, .updated("teams", 6, at: 4, ["town": "Lund"]))], reaching: 4)
        try file.open(3)
        #expect(try file.rows("SELECT frozen FROM martlet_outbox WHERE sent = 1") == frozen)
        #expect(try changes(2).contains("teams|5|2|{\"town\":\"Paris\"}"))
        #expect(
            try file.rows("SELECT base, after FROM martlet_parked_changes") == [
                "{\"name\":\"Hawks\",\"town\":\"Bonn\",\"nickname\":\"none\"}|{\"town\":\"Rome\"}"
            ])
        // The server has renamed it too, and said so before.
        #expect(
            try file.rows("SELECT id, town FROM teams ORDER BY id")
                == ["-2|Oslo", "5|Paris", "6|Lund"])
        #expect(
            try file.rows("SELECT id, attributes FROM martlet_aside WHERE type = 'teams'")
                == ["5|{\"colour\":\"red\"}"])
    }

    @Test(
        "a dropped column's edits stay queued, its confirmed values are kept aside for when it comes back"
    )
    func droppedColumn() throws {
        let again = Migration(7, "mail again") { context in
            try context.addColumn("email TEXT DEFAULT 'nobody'", to: "players")
        }
        try file.open(4)
        #expect(
            try file.rows("SELECT id, attributes FROM martlet_aside WHERE type = 'players'") == [
                "11|{\"email\":\"ann@x\"}", "12|{\"email\":\"bea@x\"}", "13|{\"email\":null}",
                "14|{\"email\":null}",
            ])
        #expect(try changes(3).contains("players|11|2|{\"name\":\"Anna\",\"email\":\"ann@z\"}"))
        let players = try file.gather().changeSets[1].types.first { $0.name == "players" }
        #expect(players?.entries.first { $0.id == .integer(11) }?.attributes["email"] == "ann@z")
        try file.open(SyncedVersions.all + [again])
        #expect(
            try file.rows("SELECT id, ifnull(email, 'null') FROM players ORDER BY id")
                == ["-3|dan@x", "11|shell", "12|bea@y", "14|null"])
        #expect(
            try file.rows("SELECT count(*) FROM martlet_aside WHERE type = 'players'") == ["0"])
        #expect(try file.opened().contradiction() == nil)
    }

    @Test("a column can be declared anew by dropping and adding it in one version")
    func redeclaredColumn() throws {
        try file.open(
            SyncedVersions.all[..<1] + [
                Migration(2, "shirts as text") { context in
                    try context.dropColumn("shirt", from: "players")
                    try context.addColumn("shirt TEXT", to: "players")
                    try context.renameColumn("shirt", to: "number", in: "players")
                    try context.renameColumn("number", to: "shirt", in: "players")
                }
            ])
        #expect(
            try file.rows("SELECT id, typeof(shirt), shirt FROM players WHERE shirt NOT NULL")
                == ["-3|text|4", "11|text|1"])
        #expect(
            try file.rows("SELECT count(*) FROM martlet_aside WHERE type = 'players'") == ["0"])
    }

    @Test("a new table takes the records of its type that were kept aside")
    func newTable() throws {
        try file.open(5)
        #expect(
            try file.rows("SELECT * FROM venues ORDER BY id") == ["31|Hall|120|5", "32|Yard|7|99"])
        #expect(
            try file.rows(
                "SELECT name, id, revision FROM martlet_records JOIN martlet_types"
                    + " ON number = type WHERE name = 'venues'") == ["venues|31|2", "venues|32|2"])
        #expect(
            try file.rows("SELECT id, attributes FROM martlet_aside WHERE type = 'venues'")
                == ["31|{\"roof\":true}"])
        try file.apply([.entry(4, .updated("venues", 31, at: 4, ["seats": 90]))], reaching: 4)
        #expect(try file.rows("SELECT seats FROM venues ORDER BY id") == ["90", "7"])
        try file.write { try $0.update("venues", .integer(32), ["name": "Big Yard"]) }
        #expect(try file.gather().changeSets.last?.types.first?.entries[0].revision == 2)
    }

    @Test("all a version writes becomes one change set, across its changes of the schema")
    func data() throws {
        try file.open()
        #expect(
            try changes(6) == [
                "notes|m|1|{\"body\":\"moved\"}", "players|-3|2|{\"shirt\":104}",
                "players|11|2|{\"shirt\":101}", "players|12|2|{\"name\":\"BEA\"}",
            ])
        #expect(try file.rows("SELECT max(sequence), count(*) FROM martlet_outbox") == ["6|5"])
        #expect(
            try file.rows("SELECT records FROM martlet_outbox WHERE sequence = 6") == ["4"])
        // What it refers to by temporary ids is still found.
        try file.write { try $0.update("players", .integer(14), ["shirt": 3]) }
        #expect(try file.gather().changeSets.map(\.sequence) == [2, 3, 4, 5, 6, 7])
        #expect(try file.opened().contradiction() == nil)
    }

    @Test("edits of one record in one version are joined as they followed each other")
    func joined() throws {
        try file.open(
            SyncedVersions.all + [
                Migration(7, "joined") { context in
                    let new = "(SELECT id FROM martlet_new_id)"
                    try context.execute(
                        "INSERT INTO notes VALUES ('a', 'a'), ('b', 'b'), ('c', 'c')")
                    try context.execute("INSERT INTO teams(id, name) VALUES (\(new), 'Crows')")
                    try context.execute("DELETE FROM players WHERE id = 14")
                    try context.execute("UPDATE players SET name = 'B' WHERE id = 12")
                    try context.addColumn("more TEXT", to: "notes")
                    try context.execute("DELETE FROM notes WHERE id = 'a'")
                    try context.execute("UPDATE notes SET more = 'm', body = 'z' WHERE id = 'b'")
                    try context.execute("INSERT INTO players(id, name) VALUES (14, 'E')")
                    try context.execute("UPDATE players SET shirt = 1 WHERE id = 12")
                    try context.addColumn("most TEXT", to: "notes")
                    try context.execute("DELETE FROM players WHERE id = 12")
                    try context.execute(
                        "INSERT INTO players(id, name, team_id) SELECT \(new), 'New', id"
                            + " FROM teams WHERE name = 'Crows'")
                }
            ])
        #expect(
            try changes(7) == [
                "notes|b|1|{\"body\":\"z\",\"more\":\"m\"}", "notes|c|1|{\"body\":\"c\"}",
                "players|-5|1|{\"team_id\":-4,\"name\":\"New\"}", "players|12|3|",
                "players|14|2|{\"team_id\":null,\"name\":\"E\"}",
                "teams|-4|1|{\"name\":\"Crows\",\"town\":\"Oslo\",\"nickname\":\"none\"}",
            ])
        #expect(
            try file.rows("SELECT * FROM martlet_references ORDER BY 3") == ["1|-2|3", "1|-4|7"])
        #expect(try file.opened().contradiction() == nil)
        let next = try file.write { try $0.insert("teams", ["name": "Jays"]) }
        #expect(next == .integer(-6))
    }

    @Test("edits that cancel each other out leave no change set")
    func cancelledOutEdits() throws {
        try file.open(
            SyncedVersions.all + [
                Migration(7, "nothing") { context in
                    try context.execute("INSERT INTO notes VALUES ('a', 'a')")
                    try context.addColumn("more TEXT", to: "notes")
                    try context.execute("DELETE FROM notes WHERE id = 'a'")
                    try context.addColumn("most TEXT", to: "notes")
                    try context.execute("INSERT INTO notes(id) VALUES ('z')")
                }
            ])
        #expect(try changes(7) == ["notes|z|1|{}"])
        #expect(try file.rows("SELECT max(sequence), count(*) FROM martlet_outbox") == ["7|6"])
        #expect(try file.rows("SELECT count(*) FROM martlet_base WHERE id = 'a'") == ["0"])
    }

    @Test("an answer to what was sent before the versions ends in the true state")
    func answer() throws {
        try file.open()
        let sent = try file.gather().changeSets
        #expect(
            sent[0].types.first { $0.name == "teams" }?.entries.contains {
                $0.attributes["city"] == "Paris" && $0.attributes["town"] == nil
            } == true)
        #expect(sent[1].types.map(\.name) == ["players"])
        let ids = sent.compactMap(\.identifier)
        try file.apply(
            [
                .entry(4, .updated("teams", 6, at: 4, ["nickname": "H", "colour": "blue"])),
                .entry(
                    5, own: ids[0],
                    TypeChanges(
                        name: "teams", create: [.integer(8)], update: [.integer(5)],
                        entries: [
                            RecordEntry(
                                id: .integer(8), revision: 5, oldID: .integer(-2),
                                attributes: [
                                    "name": "Owls", "town": "Oslo", "nickname": "none",
                                ]),
                            RecordEntry(
                                id: .integer(5), revision: 5,
                                attributes: ["town": "Paris"]),
                        ]),
                    .updated("players", 12, at: 5, ["email": "bea@y"])),
                .refusal(ids[1], .unknownAttribute),
                .refusal(ids[3], .unknownAttribute),
            ], reaching: 5)
        #expect(
            try file.rows("SELECT id, name, town, nickname FROM teams ORDER BY id")
                == ["5|Falcons|Paris|Fal", "6|Hawks|Kiel|H", "8|Owls|Oslo|none"])
        // What stands on a refused set and was sent waits for its own verdict, unapplied.
        #expect(
            try file.rows("SELECT id, name, team_id, shirt FROM players ORDER BY id")
                == ["11|Ann|5|1", "12|Bea|5|", "14|Eve|6|"])
        #expect(try file.opened().parked().map(\.changes.count) == [1, 2, 2])
        #expect(
            try file.rows("SELECT sequence, applied FROM martlet_outbox ORDER BY sequence")
                == ["4|1", "6|0"])
        #expect(try file.opened().contradiction() == nil)
    }

    @Test("a refusal of what was sent before the versions shows the truth under the new schema")
    func refusedBeforeVersions() throws {
        try file.open()
        let identifier = try file.gather().changeSets[0].identifier ?? ""
        try file.apply([.refusal(identifier, .permission)], reaching: 3)
        #expect(
            try file.rows("SELECT id, name, town, nickname FROM teams ORDER BY id")
                == ["5|Falcons|Oslo|Fal", "6|Hawks|Kiel|Haw"])
        let parked = try #require(try file.opened().parked().first { $0.identifier == identifier })
        let team = try #require(parked.changes.first { $0.id == .integer(5) })
        #expect(team.base?["town"] == "Oslo" && team.base?["nickname"] == "Fal")
        #expect(team.mine == ["town": "Paris"])
        try file.opened().retry(identifier, now: 3)
        #expect(
            try file.rows("SELECT id, name, town, nickname FROM teams ORDER BY id")
                == ["-2|Owls|Oslo|none", "5|Falcons|Paris|Fal", "6|Hawks|Kiel|Haw"])
    }
}
