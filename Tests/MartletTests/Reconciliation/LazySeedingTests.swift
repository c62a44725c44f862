import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import RandomKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Synchronization
import Testing

@testable import Martlet
@testable import MartletDevice

/// A server with teams, players and notes, one device that others' changes come from, and one that
/// begins with the first of three parts.
final class LazyWorld {
    static let plan = SeedingPlan(classes: [
        .init(name: "first", types: ["teams": .all]),
        .init(name: "second", types: ["players": .all]),
    ])

    let world: SmallWorld
    let other: SmallDevice
    let mine: SmallDevice

    init(
        _ name: String, _ plan: SeedingPlan = LazyWorld.plan, script: String = SmallWorld.script,
        pace: SmallPace = SmallPace()
    ) throws {
        world = try SmallWorld(name, pace: pace)
        other = try world.device()
        mine = try world.device(script: script)
        for number in Int64(1)...5 {
            try other.write { context in
                let team = try context.insert("teams", ["name": .text("Team \(number)")])
                try context.insert(
                    "players",
                    ["team_id": team.sqlValue, "name": "Player", "shirt": .integer(number)])
                try context.insert("notes", ["body": "Note"], id: "n\(number)")
            }
        }
        try other.sync(with: world.server)
        mine.snapshot = try world.server.snapshot(plan)
        mine.heldBack = ["second", "rest"]
        mine.close()
        try mine.open(script: script)
    }

    /// The device exchanges; parts come that are not held back.
    func sync() throws {
        try mine.sync(with: world.server)
        #expect(mine.errors.isEmpty)
        #expect(try mine.store.contradiction() == nil)
    }

    /// Someone else saves.
    func others(_ body: (WriteContext) throws -> Void) throws {
        try other.write(body)
        try other.sync(with: world.server)
    }

    func shown(_ sql: String) throws -> [[SQLValue]] {
        try mine.store.local.rows(sql).map(\.values)
    }

    var passed: Int {
        get throws { try mine.store.passedCount }
    }

    /// What the device has is what a device has that came with the change log.
    func expectWhole() throws {
        try other.sync(with: world.server)
        #expect(try mine.store.pendingSnapshot == nil)
        #expect(try mine.store.confirmedState() == other.store.confirmedState())
        #expect(try passed == 0)
        #expect(try mine.store.confirmedRevisions() == other.store.confirmedRevisions())
    }
}

@Suite("A device with the first of several parts")
struct LazySeedingTests {
    @Test("the first class is there, others' changes come as rows, then the other classes")
    func partsOfSnapshotInOrder() throws {
        let lazy = try LazyWorld("lazy")
        try lazy.sync()
        #expect(try lazy.shown("SELECT count(*) FROM teams") == [[5]])
        #expect(try lazy.shown("SELECT count(*) FROM players") == [[0]])
        #expect(try lazy.mine.store.pendingSnapshot?.names == ["second", "rest"])
        #expect(lazy.mine.parts == ["offline"])
        #expect(lazy.mine.disk.contents(of: try lazy.mine.store.snapshotPath) == nil)
        try lazy.others { context in
            try context.update("players", .integer(2), ["name": "Changed"])
            try context.delete("players", .integer(3))
            try context.delete("notes", .text("n1"))
            try context.update("teams", .integer(1), ["city": "Rome"])
            try context.insert("players", ["name": "New", "shirt": 3])
        }
        try lazy.others { try $0.insert("notes", ["body": "Again"], id: "n1") }
        try lazy.sync()
        #expect(
            try lazy.shown("SELECT id, name, shirt FROM players ORDER BY id") == [
                [2, "Changed", 2], [6, "New", 3],
            ])
        #expect(try lazy.shown("SELECT id, body FROM notes") == [["n1", "Again"]])
        #expect(try lazy.passed == 1)
        lazy.mine.heldBack = ["rest"]
        try lazy.sync()
        #expect(lazy.mine.parts == ["second", "offline"])
        #expect(try lazy.shown("SELECT count(*) FROM players") == [[5]])
        #expect(try lazy.shown("SELECT count(*) FROM notes") == [[1]])
        lazy.mine.heldBack = []
        try lazy.sync()
        #expect(lazy.mine.parts == ["rest, the last"])
        try lazy.expectWhole()
        #expect(try !lazy.mine.store.standing.needsRows)
    }

    @Test("an own deletion of before the snapshot takes nothing from what is to come")
    func deletedBefore() throws {
        let world = try SmallWorld("lazy-before")
        let (other, mine) = (try world.device(), try world.device())
        try other.write { try $0.insert("notes", ["body": "First"], id: "n") }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        // The server takes the deletion, and the device does not hear of it.
        try mine.write { try $0.delete("notes", .text("n")) }
        try mine.sync(with: world.server, lost: 1)
        try other.sync(with: world.server)
        try other.write { try $0.insert("notes", ["body": "Again"], id: "n") }
        try other.sync(with: world.server)
        mine.snapshot = try world.server.snapshot(LazyWorld.plan)
        try mine.beginRefetching()
        try mine.sync(with: world.server)
        #expect(mine.parts == ["second", "rest, the last"])
        #expect(try mine.store.outboxCount == 0)
        #expect(try mine.store.pendingSnapshot == nil)
        #expect(try mine.store.confirmedState() == other.store.confirmedState())
    }

    @Test(
        "what was deleted before its part comes stays gone, also if an answer ends among the deletions"
    )
    func cutDeletions() throws {
        var pace = SmallPace()
        pace.partBytes = 600
        let lazy = try LazyWorld("lazy-cut", pace: pace)
        let ids = (0..<40).map { "m\($0)" }
        try lazy.others { context in
            for id in ids { try context.insert("notes", ["body": "Note"], id: id) }
        }
        lazy.mine.snapshot = try lazy.world.server.snapshot(LazyWorld.plan)
        try lazy.sync()
        // In one set, and more than one answer holds.
        try lazy.others { context in
            for id in ids { try context.delete("notes", .text(id)) }
        }
        let before = try lazy.mine.store.revision
        var isCut = false
        lazy.world.server.checkAnswer = { body in
            let answer = try SyncCoder.decodeAnswer(body)
            if answer.more, answer.maxRevision == before { isCut = true }
        }
        try lazy.sync()
        #expect(isCut)
        #expect(try lazy.passed == 40)
        lazy.mine.heldBack = []
        try lazy.sync()
        #expect(try lazy.shown("SELECT count(*) FROM notes") == [[5]])
        try lazy.expectWhole()
    }

    @Test("what is to come is remembered across a restart")
    func restartWithPartsToCome() throws {
        let lazy = try LazyWorld("lazy-restart")
        try lazy.sync()
        try lazy.others { try $0.delete("notes", .text("n2")) }
        try lazy.sync()
        lazy.mine.close()
        lazy.mine.heldBack = []
        try lazy.mine.open()
        try lazy.sync()
        #expect(lazy.mine.parts == ["second", "rest, the last"])
        try lazy.expectWhole()
    }

    @Test("own edits stand on top of a part; what does not fit it waits, and is then refused")
    func ownEdits() throws {
        let lazy = try LazyWorld("lazy-own")
        try lazy.sync()
        lazy.mine.heldBack = []
        lazy.mine.beforePart = { [unowned lazy] part in
            guard part == "second" else { return }
            try lazy.mine.write { try $0.insert("players", ["name": "Twin", "shirt": 4]) }
            try lazy.mine.write { try $0.insert("players", ["name": "Free", "shirt": 40]) }
            try lazy.mine.write { try $0.update("teams", .integer(2), ["city": "Bonn"]) }
            try lazy.mine.write { try $0.delete("teams", .integer(5)) }
        }
        var seen: [Int] = []
        lazy.mine.afterPart = { [unowned lazy] in
            seen.append(try lazy.mine.store.parkedCount)
            #expect(
                try lazy.shown("SELECT name FROM players WHERE shirt IN (4, 40) ORDER BY shirt")
                    == [["Player"], ["Free"]])
            #expect(try lazy.shown("SELECT city FROM teams WHERE id = 2") == [["Bonn"]])
            #expect(try lazy.shown("SELECT count(*) FROM teams") == [[5]])
        }
        try lazy.sync()
        // Something that is still to come may make them fit; in the end nothing will.
        #expect(seen == [0, 2])
        #expect(try lazy.mine.store.parked().map(\.reason) == [.constraint, .stale])
        try lazy.sync()
        #expect(try lazy.mine.store.outboxCount == 0)
        try lazy.expectWhole()
    }

    @Test("a delete vouches for nothing that is still to come")
    func unseenChildren() throws {
        let lazy = try LazyWorld("lazy-children")
        try lazy.others { try $0.delete("players", .integer(5)) }
        try lazy.sync()
        try lazy.mine.write { try $0.delete("teams", .integer(4)) }
        try lazy.mine.write { try $0.delete("teams", .integer(5)) }
        try lazy.sync()
        #expect(try lazy.mine.store.parked().map(\.reason) == [.stale])
        #expect(try lazy.shown("SELECT id FROM teams") == [[1], [2], [3], [4]])
        lazy.mine.heldBack = []
        try lazy.sync()
        try lazy.mine.write { try $0.delete("teams", .integer(3)) }
        try lazy.sync()
        #expect(try lazy.mine.store.parkedCount == 1)
        #expect(try lazy.shown("SELECT id FROM players") == [[1], [2], [4]])
        try lazy.expectWhole()
    }

    @Test("parts the server no longer has give way to those of its newest snapshot")
    func goneParts() throws {
        let lazy = try LazyWorld("lazy-gone")
        try lazy.sync()
        try lazy.others { try $0.update("players", .integer(1), ["name": "Early"]) }
        lazy.mine.heldBack = []
        lazy.mine.beforePart = { [unowned lazy] _ in
            lazy.mine.beforePart = { _ in }
            // Newer than the device.
            try lazy.others { context in
                try context.update("players", .integer(1), ["shirt": 9])
                try context.update("players", .integer(2), ["name": "Late", "shirt": 1])
                try context.delete("notes", .text("n3"))
            }
            let plan = SeedingPlan(classes: [.init(name: "other", types: ["notes": .all])])
            lazy.mine.snapshot = try lazy.world.server.snapshot(plan)
        }
        try lazy.sync()
        #expect(lazy.mine.parts == ["other", "rest, the last"])
        try lazy.expectWhole()
    }

    @Test("a crash at any operation of a part's installation: after it, the same end")
    func crashesOfPart() throws {
        let lazy = try LazyWorld("lazy-crash")
        try lazy.sync()
        try lazy.others { context in
            try context.delete("players", .integer(3))
            try context.update("notes", .text("n1"), ["body": "Changed"])
        }
        try lazy.sync()
        try lazy.mine.write { try $0.insert("players", ["name": "Twin", "shirt": 4]) }
        lazy.mine.close()
        var random = SplitMix64(seed: 7)
        var operation = 0
        var isDone = false
        while !isDone {
            operation += 1
            let server = try lazy.world.restoredServer()
            let disk = FaultDisk(name: "lazy-crashed-\(operation)", seed: 1)
            for path in lazy.mine.disk.paths {
                if let bytes = lazy.mine.disk.contents(of: path) { disk.install(bytes, at: path) }
            }
            let device = try SmallDevice(disk, number: 9)
            device.snapshot = lazy.mine.snapshot
            device.close()
            try device.open()
            device.beforePart = { part in
                guard part == "second" else { return }
                disk.failAfter(operations: operation, kind: .crash)
            }
            let count = disk.operationCount
            _ = try? device.sync(with: server)
            isDone = !disk.isDown
            #expect(disk.operationCount > count)
            device.beforePart = { _ in }
            device.close()
            disk.heal()
            if disk.isDown { disk.restart(using: &random) }
            try device.open()
            try device.sync(with: server)
            #expect(try device.store.pendingSnapshot == nil, "operation \(operation)")
            #expect(try device.store.contradiction() == nil, "operation \(operation)")
            let state = try device.store.confirmedState()
            #expect(
                try state == lazy.other.store.confirmedState(), "operation \(operation)")
            #expect(try device.store.parkedCount == 1, "operation \(operation)")
        }
        #expect(operation > 20)
    }

    @Test("refetching waits for no part any more")
    func refetchWithPartsToCome() throws {
        let lazy = try LazyWorld("lazy-anew")
        try lazy.sync()
        try lazy.others { try $0.delete("notes", .text("n2")) }
        try lazy.sync()
        lazy.mine.snapshot = nil
        try lazy.mine.beginRefetching()
        #expect(try lazy.mine.store.pendingSnapshot == nil)
        #expect(try lazy.passed == 0)
        try lazy.sync()
        try lazy.expectWhole()
    }

    @Test("the stream and the check wait until all is here")
    func meanwhile() throws {
        let lazy = try LazyWorld("lazy-stream")
        try lazy.sync()
        let revision = try lazy.mine.store.revision
        let batch = DeltaBatch(from: revision, deltas: [], nextVersion: revision + 1)
        guard case .needsExchange = try lazy.mine.store.apply(batch, now: 1) else {
            Issue.record("the batch was taken")
            return
        }
        let error = #expect(throws: SyncError.self) {
            _ = try lazy.mine.store.hashConfirmed(
                from: CheckCursor(), without: [:], limit: 10, now: 1)
        }
        #expect(error?.kind == .busy)
    }

    @Test("a row whose parent is still to come can be changed, but for its references")
    func missingParent() throws {
        let plan = SeedingPlan(classes: [.init(name: "first", types: ["players": .all])])
        let lazy = try LazyWorld("lazy-parent", plan)
        try lazy.sync()
        #expect(try lazy.shown("SELECT count(*) FROM teams") == [[0]])
        try lazy.mine.write { try $0.update("players", .integer(2), ["name": "Named"]) }
        try lazy.mine.write { context in
            // All columns, the reference as it is.
            let player = SeededPlayer(id: .integer(3), team_id: 3, name: "Whole", shirt: 30)
            let isThere = try PlainTable("players", of: SeededPlayer.self).update(
                player, in: context)
            #expect(isThere)
        }
        let error = #expect(throws: StoreError.self) {
            try lazy.mine.write { try $0.update("players", .integer(4), ["team_id": 1]) }
        }
        #expect(error?.constraint?.kind == .foreignKey)
        lazy.mine.heldBack = []
        try lazy.sync()
        #expect(try lazy.mine.store.parkedCount == 0)
        #expect(
            try lazy.shown("SELECT name FROM players WHERE id IN (2, 3)") == [["Named"], ["Whole"]])
        try lazy.expectWhole()
    }

    @Test("what the app has no place for is kept aside, what it refuses is quarantined")
    func otherTables() throws {
        let script = """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
            CREATE TABLE players(id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'Odd'));
            """
        let lazy = try LazyWorld("lazy-other", script: script)
        try lazy.others { try $0.update("players", .integer(4), ["name": "Odd"]) }
        lazy.mine.snapshot = try lazy.world.server.snapshot(LazyWorld.plan)
        try lazy.sync()
        try lazy.others { context in
            try context.delete("notes", .text("n1"))
            try context.update("notes", .text("n2"), ["body": "Changed"])
            try context.update("players", .integer(2), ["shirt": 20])
        }
        lazy.mine.heldBack = []
        try lazy.sync()
        #expect(try lazy.shown("SELECT id FROM players") == [[1], [2], [3], [5]])
        #expect(try lazy.mine.store.quarantined().map(\.id) == [.integer(4)])
        lazy.mine.close()
        try lazy.mine.open(script: script + "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);")
        #expect(
            try lazy.shown("SELECT id, body FROM notes ORDER BY id") == [
                ["n2", "Changed"], ["n3", "Note"], ["n4", "Note"], ["n5", "Note"],
            ])
    }

    @Test(
        "a conflict clause of the app's makes no row of a part go, or stay away, without a word",
        arguments: ["REPLACE", "IGNORE", "ROLLBACK"])
    func conflictClauses(clause: String) throws {
        let script = """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
            CREATE TABLE players(
                id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT \(clause), shirt INTEGER);
            """
        let lazy = try LazyWorld("lazy-clause-\(clause)", script: script)
        lazy.mine.heldBack = []
        try lazy.sync()
        #expect(try lazy.shown("SELECT id FROM players") == [[1]])
        #expect(try lazy.mine.store.quarantined().map(\.id) == [2, 3, 4, 5].map(RecordID.integer))
    }

    @Test("a handler without a table is told of each record once, in its newest form")
    func handler() throws {
        let script = "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);"
        let lazy = try LazyWorld("lazy-handler", script: script)
        let heard = HeardChanges()
        try lazy.mine.store.registry["notes"] = heard
        try lazy.sync()
        try lazy.others { context in
            try context.delete("notes", .text("n1"))
            try context.update("notes", .text("n2"), ["body": "Changed"])
        }
        lazy.mine.heldBack = []
        try lazy.sync()
        #expect(
            heard.heard == [
                "n2 whole Changed", "n1 deleted", "n3 whole Note", "n4 whole Note",
                "n5 whole Note",
            ])
    }
}

private struct SeededPlayer: Codable, ReadableRecord {
    var id: RecordID?
    var team_id: Int64?
    var name: String?
    var shirt: Int64?
}

/// Remembers what it is told.
private final class HeardChanges: EntityHandler {
    private let told = Mutex<[String]>([])

    var heard: [String] { told.withLock { $0 } }

    func take(_ change: RemoteChange, in context: RemoteContext) {
        var words = ["\(change.id)", change.kind.rawValue]
        if case .text(let body)? = change.attributes["body"] { words.append(body) }
        told.withLock { $0.append(words.joined(separator: " ")) }
    }
}
