import MartletModel
import MartletProtocol
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice
@testable import MartletStore

/// What a device tells of its commits, without tasks or timers.
@Suite("Device changes", .timeLimit(.minutes(5)))
struct DeviceChangesTests {
    private let device: DeviceFixture
    private let hub = ChangeHub()
    private let changes: DeviceChanges
    private let listener: Int

    init() throws {
        device = try DeviceFixture()
        changes = DeviceChanges(store: device.store, hub: hub, generation: SchemaGeneration())
        listener = hub.subscribe()
    }

    private func save(_ body: (WriteContext) throws -> Void) throws {
        do {
            try device.write(body)
        } catch {
            changes.rolledBack()
            throw error
        }
        changes.saved()
    }

    private func apply(_ sets: [ChangeSet], reaching revision: Revision) throws {
        changes.applied(try device.apply(sets, reaching: revision))
    }

    @Test("own commits of either connection, leases included, are not taken for another process's")
    func ownCommits() throws {
        for round in 1...3 {
            let revision = Revision(round)
            try save { try $0.insert("teams", ["name": "Falcons"]) }
            _ = try device.gather()
            try apply(
                [.entry(revision, .created("players", revision + 100, at: revision, [:]))],
                reaching: revision)
            try device.store.releaseLease(owner: "test")
            _ = try device.gather()
            changes.lookForExternalWrites()
        }
        let told = try #require(hub.take(listener))
        #expect(told.causes == [.local, .remote])
        #expect(!told.isUnbounded)
    }

    @Test(
        "another process's commit is noticed wherever it falls between own ones",
        arguments: 0..<5)
    func externalCommits(step: Int) throws {
        let steps: [() throws -> Void] = [
            { try save { try $0.insert("teams", ["name": "Falcons"]) } },
            { _ = try device.gather() },
            {
                try apply(
                    [.entry(1, .created("players", 100, at: 1, ["name": "Ann"]))], reaching: 1)
            },
            { try device.store.releaseLease(owner: "test") },
            { try save { try $0.insert("teams", ["name": "Owls"]) } },
        ]
        for (index, run) in steps.enumerated() {
            if index == step { try device.shell("INSERT INTO notes VALUES ('a', 'shell')") }
            try run()
        }
        changes.lookForExternalWrites()
        let told = try #require(hub.take(listener))
        #expect(told.causes.contains(.elsewhere))
        #expect(told.isUnbounded)
        changes.lookForExternalWrites()
        #expect(hub.take(listener) == nil)
    }

    @Test("an answer that cannot be applied leaves nothing to tell")
    func failedAnswer() throws {
        #expect(throws: (any Error).self) {
            try apply(
                [
                    .entry(1, .created("players", 100, at: 1, ["name": "Ann"])),
                    .entry(2, .updated("players", 999, at: 2, ["name": "Nobody"])),
                ], reaching: 2)
        }
        try save { try $0.insert("teams", ["name": "Falcons"]) }
        let told = try #require(hub.take(listener))
        #expect(Set(told.tables.keys) == ["teams"])
    }

    @Test("deleted records with text keys are named, whoever deleted them")
    func deletedTextKeys() throws {
        let created = TypeChanges(
            name: "notes", create: [.text("a"), .text("b"), .text("c")],
            entries: ["a", "b", "c"].map {
                RecordEntry(id: .text($0), revision: 1, attributes: ["body": "x"])
            })
        try apply([.entry(1, created)], reaching: 1)
        #expect(
            hub.take(listener)?.tables["notes"]?.inserted
                == [.text("a"), .text("b"), .text("c")])
        try save { try $0.delete("notes", .text("a")) }
        let own = try #require(hub.take(listener)?.tables["notes"])
        #expect(own.deleted == [.text("a")])
        #expect(own.isComplete)
        try apply(
            [.entry(2, TypeChanges(name: "notes", delete: [.text("b")], entries: []))],
            reaching: 2)
        let others = try #require(hub.take(listener)?.tables["notes"])
        #expect(others.deleted == [.text("b")])
        #expect(others.isComplete)
    }
}
