import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Batches of deltas")
struct DeltaBatchTests {
    @Test("a batch changes the tables and the version together")
    func applies() throws {
        let device = try DeviceFixture.withTeams()
        let outcome = try device.take(
            .batch(
                2, 4,
                [
                    .upsert(3, "players", "7", #"{"name":"Ada","team_id":1}"#, isNew: true),
                    .upsert(3, "teams", "1", #"{"name":"Hawks"}"#),
                    .delete(4, "teams", "2"),
                    .upsert(4, "notes", "7", #"{"body":"x"}"#, isNew: true),
                ]))
        #expect(outcome == "applied 4")
        #expect(try device.rows("SELECT id, name, city FROM teams") == [[1, "Hawks", "Bergen"]])
        #expect(try device.rows("SELECT id, team_id, name FROM players") == [[7, 1, "Ada"]])
        #expect(try device.rows("SELECT id, body FROM notes") == [["7", "x"]])
        #expect(try device.store.revision == 4)
        #expect(try device.store.standing.lineage == "l4")
        #expect(try device.gather().changeSets.isEmpty)
    }

    @Test("what is there already is passed over, and the version never goes back")
    func repeated() throws {
        let device = try DeviceFixture.withTeams()
        let batch = DeltaBatch.batch(
            1, 3,
            [
                .upsert(2, "teams", "2", #"{"name":"Owls"}"#),
                .upsert(3, "teams", "1", #"{"name":"Hawks"}"#),
            ])
        #expect(try device.take(batch) == "applied 3")
        #expect(try device.rows("SELECT name FROM teams ORDER BY id") == [["Hawks"], ["Ravens"]])
        #expect(try device.take(batch) == "old")
        #expect(try device.take(.batch(0, 1, [.delete(1, "teams", "1")])) == "old")
        #expect(try device.store.revision == 3)
        #expect(try device.store.standing.lineage == "l3")
        #expect(try device.rows("SELECT count(*) FROM teams") == [[2]])
    }

    @Test("a batch that begins further on is not applied: the gap is fetched first")
    func gap() throws {
        let device = try DeviceFixture.withTeams()
        let late = DeltaBatch.batch(3, 4, [.delete(4, "teams", "1")])
        #expect(try device.take(late) == "needs exchange")
        #expect(try device.store.revision == 2)
        #expect(try device.rows("SELECT count(*) FROM teams") == [[2]])
    }

    @Test("the bare form is taken as complete, unless it ends in a version it has no delta of")
    func bare() throws {
        let device = try DeviceFixture.withTeams()
        #expect(
            try device.take(.batch(nil, 4, [.upsert(4, "teams", "9", #"{"name":"Owls"}"#)]))
                == "applied 4")
        #expect(try device.rows("SELECT name, city FROM teams WHERE id = 9") == [["Owls", "Oslo"]])
        #expect(
            try device.take(.batch(nil, 900, [.delete(5, "teams", "9")])) == "needs exchange")
        #expect(try device.store.revision == 4)
    }

    @Test("a difference over the stream is left to an exchange, which brings own fates with it")
    func difference() throws {
        let device = try DeviceFixture.withTeams()
        var batch = DeltaBatch.batch(2, 9, [.delete(9, "teams", "1")])
        batch.isDifference = true
        #expect(try device.take(batch) == "needs exchange")
        #expect(try device.rows("SELECT count(*) FROM teams") == [[2]])
    }

    @Test("a failure in the middle rolls all back and names the delta")
    func failure() throws {
        let device = try DeviceFixture.withTeams()
        let error = #expect(throws: StoreError.self) {
            try device.take(
                .batch(
                    2, 4,
                    [
                        .upsert(3, "teams", "1", #"{"name":"Hawks"}"#),
                        .upsert(4, "teams", "2", #"{"name":null}"#),
                    ]))
        }
        #expect(error?.kind == .inconsistent)
        #expect(error?.message.contains("teams 2 at revision 4") == true)
        #expect(try device.rows("SELECT name FROM teams ORDER BY id") == [["Falcons"], ["Ravens"]])
        #expect(try device.store.revision == 2)
        #expect(try device.store.contradiction() == nil)
    }

    @Test(
        "what is no record, or changes one that is not there, is refused with its name",
        arguments: [
            Delta.upsert(3, "teams", "one", #"{"name":"x"}"#, isNew: true),
            .upsert(3, "teams", "07", #"{"name":"x"}"#, isNew: true),
            .upsert(3, "teams", "1", "{", isNew: true),
            .upsert(3, "teams", "77", #"{"name":"x"}"#),
        ])
    func unreadable(_ delta: Delta) throws {
        let device = try DeviceFixture.withTeams()
        let error = #expect(throws: StoreError.self) {
            try device.take(.batch(2, 3, [delta]))
        }
        #expect(error?.kind == .inconsistent)
        #expect(try device.store.revision == 2)
        #expect(try device.rows("SELECT count(*) FROM teams") == [[2]])
    }

    @Test("a batch of another data set stops the device")
    func otherDataSet() throws {
        let device = try DeviceFixture.withTeams()
        var batch = DeltaBatch.batch(2, 3, [.delete(3, "teams", "1")])
        batch.dataSet = "other"
        let error = #expect(throws: SyncError.self) { try device.take(batch) }
        #expect(error?.kind == .wrongDataSet)
        #expect(try device.rows("SELECT count(*) FROM teams") == [[2]])
    }

    @Test("unknown types and attributes are kept aside, and the rest is applied")
    func unknown() throws {
        let device = try DeviceFixture.withTeams()
        try device.take(
            .batch(
                2, 3,
                [
                    .upsert(3, "teams", "1", #"{"name":"Hawks","motto":"up"}"#),
                    .upsert(3, "trophies", "4", #"{"year":1999}"#, isNew: true),
                ]))
        #expect(try device.rows("SELECT name FROM teams WHERE id = 1") == [["Hawks"]])
        #expect(
            try device.rows("SELECT type, id, revision FROM martlet_aside ORDER BY type")
                == [["teams", 1, 3], ["trophies", 4, 3]])
    }

    @Test("an own set that comes back over the stream before its receipt settles it, once")
    func ownSet() throws {
        let device = try DeviceFixture.withTeams()
        try device.write { try $0.insert("teams", ["name": "Owls"]) }
        let own = try #require(try device.gather().changeSets[0].identifier)
        try device.write { try $0.update("teams", .integer(-2), ["city": "Rome"]) }
        let batch = DeltaBatch.batch(
            2, 3, [.upsert(3, "teams", "30", #"{"name":"Owls"}"#, isNew: true, own: own, old: -2)])
        #expect(try device.take(batch) == "applied 3")
        #expect(
            try device.rows("SELECT id, city FROM teams WHERE name = 'Owls'") == [[30, "Rome"]])
        #expect(try device.store.receipts(limit: 9).map(\.identifier) == [own])
        // The answer brings the same entry again.
        try device.apply(
            [
                .entry(
                    3, own: own,
                    .created("teams", 30, old: -2, at: 3, ["name": "Owls", "city": .null]))
            ], reaching: 3)
        #expect(
            try device.rows("SELECT id, city FROM teams WHERE name = 'Owls'") == [[30, "Rome"]])
        #expect(try device.gather().changeSets.map { $0.types[0].update } == [[.integer(30)]])
    }
}
