import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Full-text search on a device")
struct DeviceFullTextTests {
    private struct Notes: Table {
        let tableName = "notes"
        let body = Column<String?>("body")
    }

    private struct Players: Table {
        let tableName = "players"
        let name = Column<String?>("name")
    }

    private func found<Base: Table>(
        _ search: FullTextTable<Base>, _ word: String, _ device: DeviceFixture
    ) throws -> Int {
        let pattern = try #require(FullTextPattern(allOf: word))
        return try making(device) { context in
            try search.query(matching: pattern).count(in: context)
        }
    }

    /// As the client does, where a table is made on first use.
    private func making<Result>(
        _ device: DeviceFixture, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        do {
            return try device.write(body)
        } catch let missing as MissingTable {
            try device.store.make(missing)
            return try device.write(body)
        }
    }

    @Test("the index follows what comes from the server, what is refused, and assigned ids")
    func remote() throws {
        let device = try DeviceFixture()
        let search = FullTextTable(on: Players(), columns: Players().name)
        #expect(try found(search, "ada", device) == 0)
        try device.write { context in
            _ = try Players().insert(
                RecordValues(names: ["name"], values: ["Ada Own"]), in: context)
        }
        #expect(try found(search, "ada", device) == 1)
        let own = try #require(device.gather().changeSets.first)
        try device.apply(
            [
                .entry(1, .created("players", 9, at: 1, ["name": "Ada Remote"])),
                .entry(
                    2, own: own.identifier,
                    .created("players", 10, old: -2, at: 2, ["name": "Ada Own"])),
                .entry(3, .updated("players", 9, at: 3, ["name": "Bo Remote"])),
            ], reaching: 3)
        #expect(try found(search, "ada", device) == 1)
        #expect(try found(search, "remote", device) == 1)
        try device.write { context in
            _ = try context.update("players", .integer(10), ["name": "Cleo"])
        }
        #expect(try found(search, "cleo", device) == 1)
        let edit = try #require(device.gather().changeSets.first)
        try device.apply([.refusal(edit.identifier ?? "", .permission)], reaching: 3)
        #expect(try found(search, "cleo", device) == 0)
        #expect(try found(search, "ada", device) == 1)
        try device.write { context in try search.check(in: context) }
    }

    @Test("tables with text keys are searched too; the index outlives a new opening")
    func textKeysAreSearched() throws {
        let device = try DeviceFixture()
        let search = FullTextTable(on: Notes(), columns: Notes().body)
        try device.write { context in
            _ = try context.insert("notes", ["body": "buy shoes"], id: "n1")
        }
        #expect(try found(search, "shoes", device) == 1)
        try device.reopen()
        try device.apply(
            [
                .entry(
                    1,
                    TypeChanges(
                        name: "notes", create: [.text("n2")],
                        entries: [
                            RecordEntry(
                                id: .text("n2"), revision: 1,
                                attributes: ["body": "old shoes"])
                        ]))
            ], reaching: 1)
        #expect(try found(search, "shoes", device) == 2)
        try device.apply(
            [.entry(2, TypeChanges(name: "notes", delete: [.text("n2")]))], reaching: 2)
        #expect(try found(search, "shoes", device) == 1)
        // It never became a type of its own.
        #expect(device.store.local.schema.types.map(\.name) == ["teams", "players", "notes"])
        // A table made on first use later leaves it alone.
        let extras = PlainTable("extras", declaration: "CREATE TABLE extras(id TEXT PRIMARY KEY)")
        let count = try making(device) { context in try extras.count(in: context) }
        #expect(count == 0)
        let script = DeviceFixture.script + (extras.declaration ?? "") + ";" + search.script
        try device.reopen(script: script)
        #expect(try found(search, "shoes", device) == 1)
        try device.write { context in try search.check(in: context) }
    }

    @Test("a schema script may declare it")
    func script() throws {
        let search = FullTextTable(on: Notes(), columns: Notes().body)
        let device = try DeviceFixture(script: DeviceFixture.script + search.script)
        try device.write { context in
            _ = try context.insert("notes", ["body": "buy shoes"], id: "n1")
        }
        #expect(try found(search, "shoes", device) == 1)
        #expect(try device.gather().changeSets.count == 1)
    }
}
