import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

@Suite("Handlers of entity types")
struct EntityHandlerTests {
    /// Notes what it is told in a table of its own.
    private struct Noting: EntityHandler {
        func take(_ change: RemoteChange, in context: RemoteContext) throws {
            try context.rows(
                "INSERT INTO log VALUES (?, ?, ?)",
                [
                    .text(change.type), .text("\(change.id)"), .text(change.kind.rawValue),
                ])
            if change.attributes["name"] == .text("bad") { throw FixtureError.changed }
        }
    }

    private func device() throws -> DeviceFixture {
        let device = try DeviceFixture.withTeams()
        try device.shell("CREATE TABLE log(type TEXT, id TEXT, kind TEXT)")
        device.store.registry["teams"] = Noting()
        device.store.registry["weather"] = Noting()
        return device
    }

    @Test("hear of every change in its transaction, with and without a table")
    func told() throws {
        let device = try device()
        try device.take(
            .batch(
                2, 3,
                [
                    .upsert(3, "teams", "9", #"{"name":"Owls"}"#, isNew: true),
                    .upsert(3, "teams", "1", #"{"name":"Hawks"}"#),
                    .upsert(3, "weather", "oslo", #"{"sky":"clear"}"#, isNew: true),
                    .delete(3, "teams", "2"),
                ]))
        #expect(
            try device.rows("SELECT * FROM log ORDER BY type, id")
                == [
                    ["teams", "1", "part"], ["teams", "2", "deleted"], ["teams", "9", "whole"],
                    ["weather", "oslo", "whole"],
                ])
        expectText(
            try device.text(),
            """
            at 3, lineage l3
            teams 1 @3: name "Hawks", city "Bergen"
            teams 9 @3: name "Owls"
            """)
    }

    @Test("hear of the record alone that has the key of a deleted one, if a difference has both")
    func remade() throws {
        let device = try device()
        device.store.asked.cursor = 2
        var gone = TypeChanges(name: "teams", delete: [.integer(1)])
        gone.hidden = gone.delete
        let owls = RecordEntry(
            id: .integer(1), revision: 4,
            attributes: Attributes(names: ["name"], values: [.text("Owls")]))
        try device.apply(
            [
                DeviceFixture.difference(4, gone),
                DeviceFixture.difference(
                    4, TypeChanges(name: "teams", update: [owls.id], entries: [owls])),
            ], reaching: 4)
        #expect(try device.rows("SELECT id, kind FROM log") == [["1", "whole"]])
        #expect(try device.rows("SELECT name FROM teams ORDER BY id") == [["Owls"], ["Ravens"]])
    }

    @Test("one that fails rolls the batch back, and is named")
    func fails() throws {
        let device = try device()
        let before = try device.text()
        let error = #expect(throws: StoreError.self) {
            try device.take(.batch(2, 3, [.upsert(3, "teams", "1", #"{"name":"bad"}"#)]))
        }
        #expect(error?.message.contains("handler of teams") == true)
        #expect(try device.rows("SELECT count(*) FROM log") == [[0]])
        expectText(try device.text(), before)
    }
}
