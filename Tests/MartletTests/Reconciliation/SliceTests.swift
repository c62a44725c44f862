import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

@Suite("What is applied in slices")
struct SliceTests {
    /// Makes the players 1 to 9 with different shirts.
    private func players(_ shirts: (Int64) -> Int64) -> TypeChanges {
        var changes = TypeChanges(name: "players")
        for number in Int64(1)...9 {
            changes.update.append(.integer(number))
            changes.entries.append(
                RecordEntry(
                    id: .integer(number), revision: 9,
                    attributes: [
                        "name": .text("P\(number)"), "shirt": .integer(shirts(number)),
                    ]))
        }
        return changes
    }

    /// Applies all slices.
    /// - Parameter between: Called after each transaction except the last.
    private func run(
        _ world: NodeFixture, _ exchange: Int, _ told: NodeFixture.Told,
        between: () throws -> Void = {}
    ) throws -> NodeFixture.Told {
        var told = told
        while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } }) {
            try between()
            told = world.handle(.applyNext(exchange: exchange))
        }
        return told
    }

    @Test("a difference goes in three rows at a time, and a save goes in between")
    func differenceInSlices() throws {
        let world = NodeFixture(try .withTeams()) { $0.sliceRecords = 3 }
        let store = world.device.store
        // Another person has changed this record, which the last transaction shows.
        try world.device.write { try $0.update("teams", .integer(1), ["city": "Mine"]) }
        let own = try store.queuedIdentifiers()
        let counter = RowCounter(store)
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        var teams = TypeChanges.updated("teams", 1, at: 8, ["name": "Theirs"])
        teams.delete = [.integer(2)]
        var refused = ChangeSet()
        (refused.identifier, refused.conflict, refused.reason) = (own[0], true, .stale)
        refused.message = "Someone else was first."
        let first = try world.answer(
            sent.exchange, 9, [DeviceFixture.difference(9, teams, players { $0 }), refused])
        var saves = 0
        let last = try run(world, sent.exchange, first) {
            #expect(try store.revision == 2)
            #expect(try store.slicedUpTo == 9)
            #expect(try store.contradiction() == nil)
            try world.device.write { try $0.insert("notes", ["body": .text("\(saves)")]) }
            saves += 1
        }
        #expect(last.error == nil)
        #expect(saves > 3)
        // The transaction that brings the revision also redoes the waiting sets.
        #expect(counter.rows.sorted().dropLast().max() ?? 0 <= 3)
        #expect(counter.rows.max() ?? 0 <= saves + 2)
        #expect(try store.revision == 9)
        #expect(try store.slicedUpTo == nil)
        #expect(try store.standing.staged == nil)
        #expect(try store.contradiction() == nil)
        #expect(try store.parked().map(\.reason) == [.stale])
        #expect(try world.device.rows("SELECT id, name FROM teams") == [[1, "Theirs"]])
        #expect(try world.device.rows("SELECT count(*), sum(shirt) FROM players") == [[9, 45]])
        #expect(try store.outboxCount == saves)
    }

    @Test("unique values change places across slices")
    func swaps() throws {
        let world = NodeFixture(try .withTeams()) { $0.sliceRecords = 2 }
        var revision: Revision = 2
        for number in Int64(1)...9 {
            revision += 1
            try world.device.apply(
                [
                    .entry(
                        revision,
                        .created(
                            "players", number, at: revision,
                            ["name": "P", "shirt": .integer(number)]))
                ], reaching: revision)
        }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        var changes = players { 10 - $0 }
        for index in changes.entries.indices { changes.entries[index].revision = 15 }
        let first = try world.answer(
            sent.exchange, 15, [DeviceFixture.difference(15, changes)])
        let last = try run(world, sent.exchange, first)
        #expect(last.error == nil)
        expectText(
            try world.device.text(),
            """
            at 15, lineage l15
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            players 1 @15: name "P1", shirt 9
            players 2 @15: name "P2", shirt 8
            players 3 @15: name "P3", shirt 7
            players 4 @15: name "P4", shirt 6
            players 5 @15: name "P5", shirt 5
            players 6 @15: name "P6", shirt 4
            players 7 @15: name "P7", shirt 3
            players 8 @15: name "P8", shirt 2
            players 9 @15: name "P9", shirt 1
            """)
    }

    @Test("a row waits for the last slice if an own edit has given its unique value up")
    func givenUpUniqueValue() throws {
        let world = NodeFixture(try .withTeams()) { $0.sliceRecords = 2 }
        let store = world.device.store
        try world.device.apply(
            [.entry(3, .created("players", 9, at: 3, ["name": "P", "shirt": 1]))], reaching: 3)
        // The row under the edit still holds the shirt, which another row of the first slice has.
        try world.device.write { try $0.update("players", .integer(9), ["shirt": .null]) }
        let own = try store.queuedIdentifiers()
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        var refused = ChangeSet()
        (refused.identifier, refused.conflict, refused.reason) = (own[0], true, .stale)
        refused.message = "Someone else was first."
        let first = try world.answer(
            sent.exchange, 9, [DeviceFixture.difference(9, players { $0 }), refused])
        let last = try run(world, sent.exchange, first) {
            let contradiction = try store.contradiction()
            #expect(contradiction == nil)
        }
        #expect(last.error == nil)
        expectText(
            try world.device.text(),
            """
            at 9, lineage l9
            teams 1 @1: name "Falcons", city "Bergen"
            teams 2 @2: name "Ravens"
            players 1 @9: name "P1", shirt 1
            players 2 @9: name "P2", shirt 2
            players 3 @9: name "P3", shirt 3
            players 4 @9: name "P4", shirt 4
            players 5 @9: name "P5", shirt 5
            players 6 @9: name "P6", shirt 6
            players 7 @9: name "P7", shirt 7
            players 8 @9: name "P8", shirt 8
            players 9 @9: name "P9", shirt 9
            parked 1: stale
            parked 1: update players 9 @3: shirt null
            parked 1: base of players 9: name "P", shirt 1
            parked 1: theirs of players 9: name "P9", shirt 9
            receipt 1: refused, stale
            """)
    }

    @Test("a row waits for the last slice if its record is withheld, and comes in under that edit")
    func withheldUntilLastSlice() throws {
        let world = NodeFixture(try .withTeams()) { $0.sliceRecords = 3 }
        let store = world.device.store
        try world.device.shell("UPDATE teams SET city = x'00' WHERE id = 1")
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        let withheld = try store.withheld()
        #expect(withheld.count == 1)
        let teams = TypeChanges.updated("teams", 1, at: 8, ["name": "Theirs"])
        let first = try world.answer(
            sent.exchange, 9, [DeviceFixture.difference(9, teams, players { $0 })])
        let last = try run(world, sent.exchange, first) {
            let rows = try world.device.rows("SELECT name, hex(city) FROM teams WHERE id = 1")
            #expect(rows == [["Falcons", "00"]])
        }
        #expect(last.error == nil)
        expectText(
            try world.device.text(),
            """
            at 9, lineage l9
            teams 1 @8: name "Theirs", city x'00'
            teams 2 @2: name "Ravens"
            players 1 @9: name "P1", shirt 1
            players 2 @9: name "P2", shirt 2
            players 3 @9: name "P3", shirt 3
            players 4 @9: name "P4", shirt 4
            players 5 @9: name "P5", shirt 5
            players 6 @9: name "P6", shirt 6
            players 7 @9: name "P7", shirt 7
            players 8 @9: name "P8", shirt 8
            players 9 @9: name "P9", shirt 9
            base teams 1 @8: name "Theirs"
            withheld teams 1
            """)
        #expect(try store.contradiction() == nil)
        // Given up, it leaves what the server has.
        for record in withheld { try world.device.write { _ in try store.drop(record) } }
        expectText(
            try world.device.text(),
            """
            at 9, lineage l9
            teams 1 @8: name "Theirs"
            teams 2 @2: name "Ravens"
            players 1 @9: name "P1", shirt 1
            players 2 @9: name "P2", shirt 2
            players 3 @9: name "P3", shirt 3
            players 4 @9: name "P4", shirt 4
            players 5 @9: name "P5", shirt 5
            players 6 @9: name "P6", shirt 6
            players 7 @9: name "P7", shirt 7
            players 8 @9: name "P8", shirt 8
            players 9 @9: name "P9", shirt 9
            """)
        #expect(try store.contradiction() == nil)
    }

    @Test("what a device is stopped in the middle of goes on, and nothing older goes over it")
    func restartBetweenSlices() throws {
        let world = NodeFixture(try .withTeams()) { $0.sliceRecords = 2 }
        let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
        _ = try world.answer(
            sent.exchange, 9, [DeviceFixture.difference(9, players { $0 })])
        _ = world.handle(.applyNext(exchange: sent.exchange))
        _ = world.node.stop()
        #expect(try world.device.rows("SELECT count(*) FROM players") == [[4]])
        try world.device.reopen()
        // If fetching does not continue from there, only rows are asked for.
        try world.device.store.discardStaged()
        let again = NodeFixture(world.device) { $0.sliceRecords = 2 }
        let stream = DeltaBatch.batch(2, 3, [.upsert(3, "players", "1", #"{"name":"Old"}"#)])
        if case .needsExchange = try world.device.store.apply(stream, now: 1) {
        } else {
            Issue.record("the stream was applied between two revisions")
        }
        let next = try #require(try again.handle(.wake(isUrgent: true)).sent)
        #expect(next.request.maxRevision == 2)
        #expect(next.request.wantsRows)
        var changes = players { $0 }
        changes.update.removeFirst()
        changes.entries.removeFirst()
        changes.delete = [.integer(1)]
        let told = try again.answer(
            next.exchange, 10, [DeviceFixture.difference(10, changes)])
        _ = try run(again, next.exchange, told)
        #expect(try world.device.rows("SELECT count(*), min(id) FROM players") == [[8, 2]])
        #expect(try world.device.store.slicedUpTo == nil)
        #expect(try world.device.store.revision == 10)
    }

    @Test("parts of a snapshot go in two rows at a time, the first one too")
    func partsInSlices() throws {
        let lazy = try LazyWorld("sliced-parts")
        try lazy.mine.write { try $0.insert("teams", ["name": "Mine"]) }
        lazy.mine.heldBack = []
        let counter = RowCounter(try lazy.mine.store)
        try lazy.sync()
        #expect(try lazy.mine.store.pendingSnapshot == nil)
        // There are two rows, and the own one that is undone and redone.
        #expect(counter.rows.max() ?? 0 <= 3)
        #expect(counter.rows.count { $0 >= 2 } >= 6)
        try lazy.expectWhole()
    }

    @Test("a record that was made under a key of the snapshot's makes way for the snapshot's")
    func sameKey() throws {
        let lazy = try LazyWorld("sliced-same-key", SeedingPlan(classes: []))
        lazy.mine.heldBack = []
        // A set that is saved while the answer is on its way waits while the parts are applied.
        var isSaved = false
        lazy.mine.whileAnswered = {
            guard !isSaved else { return }
            isSaved = true
            try lazy.mine.write { try $0.insert("notes", ["body": "Mine"], id: "n3") }
        }
        try lazy.sync()
        #expect(isSaved)
        #expect(try lazy.shown("SELECT body FROM notes WHERE id = 'n3'") == [["Note"]])
        #expect(try lazy.mine.store.parked().count == 1)
        try lazy.expectWhole()
    }

    @Test("a part that was left in the middle goes on, over what changed meanwhile")
    func partLeft() throws {
        let lazy = try LazyWorld("sliced-left")
        try lazy.sync()
        lazy.mine.heldBack = []
        var slices = 0
        struct Stop: Error {}
        do {
            try lazy.mine.sync(with: lazy.world.server) { store in
                guard try store.local.rows("SELECT 1 FROM players").isEmpty == false else { return }
                slices += 1
                throw Stop()
            }
        } catch is Stop {}
        #expect(slices == 1)
        let here = try lazy.shown("SELECT id FROM players")
        #expect(!here.isEmpty && here.count < 5)
        lazy.mine.close()
        try lazy.mine.open()
        try lazy.others { context in
            try context.delete("players", .integer(1))
            try context.update("players", .integer(5), ["name": "Newer"])
        }
        try lazy.sync()
        try lazy.expectWhole()
        #expect(try lazy.shown("SELECT name FROM players WHERE id = 5") == [["Newer"]])
    }
}
