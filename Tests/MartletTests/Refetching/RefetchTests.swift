import MartletModel
import MartletServerCore
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Refetching")
struct RefetchTests {
    /// A team of two: `other` made some history, and `mine` has every kind of edit unconfirmed.
    private func world(_ name: String) throws -> (SmallWorld, mine: SmallDevice, SmallDevice) {
        let world = try SmallWorld(name)
        let (mine, other) = (try world.device(), try world.device())
        try other.write { context in
            for number in 1...6 {
                let team = try context.insert("teams", ["name": .text("Team \(number)")])
                try context.insert(
                    "players",
                    ["team_id": team.sqlValue, "name": "P", "shirt": .integer(Int64(number))])
            }
        }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        // History that changes what it made: names, unique values handed on, deletions.
        for round in 0..<4 {
            try other.write { context in
                let team = RecordID.integer(Int64(1 + round))
                try context.update("teams", team, ["name": .text("Round \(round)")])
                try context.update("players", .integer(1), ["shirt": .integer(Int64(20 + round))])
                try context.insert("notes", ["body": "n"], id: "note \(round)")
            }
        }
        try other.write { try $0.delete("notes", .text("note 0")) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        return (world, mine, other)
    }

    /// One set of each kind, none of them sent.
    private func edit(_ mine: SmallDevice) throws {
        try mine.write { try $0.update("teams", .integer(4), ["city": "Rome"]) }
        try mine.write { context in
            let team = try context.insert("teams", ["name": "Mine"])
            try context.insert("players", ["team_id": team.sqlValue, "name": "New", "shirt": 1])
            try context.insert("players", ["team_id": 4, "name": "To an old team"])
        }
        try mine.write { try $0.delete("teams", .integer(6)) }
        try mine.write { try $0.update("notes", .text("note 3"), ["body": "mine"]) }
        try mine.write { context in
            try context.insert("notes", ["body": "again"], id: "note 0")
            try context.update("teams", .integer(4), ["city": "Bonn"])
        }
    }

    @Test("once all is fetched, the file is what it was")
    func same() throws {
        let (world, mine, _) = try world("anew-same")
        try edit(mine)
        // The moment all is there, the queue is sent: that much has changed when one can look.
        let sending: Set<String> = [
            "martlet_outbox.sent", "martlet_outbox.frozen", "martlet_outbox.bytes",
        ]
        // The time of the last exchange is one of the state's values, and the same.
        let before = try mine.dump(leavingOut: sending)
        let revision = try mine.store.revision
        try mine.beginRefetching()
        #expect(try mine.store.revision == 0)
        #expect(try mine.store.standing.refetching?.goal == revision)
        #expect(try mine.store.shownState().isEmpty)
        #expect(try mine.store.outboxCount == 5)
        var slices = 0
        var after: [String] = []
        try mine.sync(with: world.server) { store in
            slices += 1
            #expect(try store.parkedCount == 0)
            guard try store.standing.refetching == nil, after.isEmpty else { return }
            after = try mine.dump(leavingOut: sending)
        }
        #expect(slices > 5)
        let mark = "martlet_state: name=text(\"anew"
        #expect(after.filter { !$0.hasPrefix(mark) } == before)
        #expect(try mine.store.outboxCount == 0)
        #expect(try mine.store.parkedCount == 0)
        #expect(mine.errors.isEmpty)
    }

    @Test("an edit that needs nothing shows again with the first that comes")
    func shownSoon() throws {
        let (world, mine, _) = try world("anew-soon")
        try mine.write { try $0.insert("teams", ["name": "Mine"]) }
        try mine.beginRefetching()
        var shown: [Bool] = []
        try mine.sync(with: world.server) { store in
            guard try store.standing.refetching != nil else { return }
            shown.append(try store.record("teams", -2) != nil)
        }
        #expect(shown.count > 2)
        #expect(!shown.contains(false))
    }

    @Test("devices that refetched and devices that did not end up the same")
    func equal() throws {
        let (world, mine, other) = try world("anew-equal")
        try edit(mine)
        try other.write { try $0.update("teams", .integer(5), ["name": "Meanwhile"]) }
        try other.write { try $0.update("teams", .integer(4), ["name": "In the way"]) }
        try other.sync(with: world.server)
        try mine.beginRefetching()
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(try mine.store.shownState() == other.store.shownState())
        // The edits of team 4, and what was made with the second of them.
        let parked = try mine.store.parked()
        #expect(parked.map(\.reason) == [.stale, .dependency])
        #expect(parked[1].changes.map(\.type) == ["teams", "notes"])
        #expect(try mine.store.record("teams", 4)?["name"] == "In the way")
        #expect(try mine.store.receipts(limit: 9).count { $0.outcome == .accepted } == 3)
    }

    @Test("what was sent and accepted, its answer lost, is applied once and keeps its ids")
    func lostAnswer() throws {
        let (world, mine, other) = try world("anew-lost")
        try edit(mine)
        try mine.sync(with: world.server, lost: 1)
        #expect(try mine.store.outboxCount == 5)
        let head = world.server.node?.head.revision
        try mine.write { try $0.update("teams", .integer(-2), ["city": "Nice"]) }
        #expect(try mine.store.outboxCount == 6)
        try mine.beginRefetching()
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(world.server.node?.head.revision == head.map { $0 + 1 })
        #expect(try mine.store.outboxCount == 0 && mine.store.parkedCount == 0)
        #expect(try mine.store.shownState() == other.store.shownState())
        #expect(try mine.store.record("teams", -2)?["city"] == "Nice")
        #expect(try mine.store.receipts(limit: 9).count { $0.outcome == .accepted } == 6)
    }

    @Test("refused sets, receipts and the id map stay")
    func keptThroughRefetching() throws {
        let (world, mine, other) = try world("anew-kept")
        try mine.write { try $0.insert("teams", ["name": "Mine"]) }
        try mine.sync(with: world.server)
        try mine.write { try $0.update("teams", .integer(4), ["city": "Rome"]) }
        try other.write { try $0.update("teams", .integer(4), ["city": "Oslo!"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        let parked = try mine.store.parked()
        #expect(parked.count == 1)
        let (client, receipts) = (try mine.store.clientID, try mine.store.receipts(limit: 9))
        try mine.beginRefetching()
        #expect(try mine.store.clientID == client)
        #expect(try mine.store.parked().map(\.identifier) == parked.map(\.identifier))
        #expect(throws: StoreError.self) {
            try mine.store.retry(parked[0].identifier, now: 1)
        }
        try mine.sync(with: world.server)
        #expect(try mine.store.receipts(limit: 9) == receipts)
        #expect(try mine.store.record("teams", -2)?["name"] == "Mine")
        #expect(try mine.store.parked()[0].changes[0].theirs?["city"] == "Oslo!")
        try mine.store.retry(parked[0].identifier, now: 1)
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(try other.store.record("teams", 4)?["city"] == "Rome")
    }

    @Test("people write while it fetches; beginning once more on the way changes nothing")
    func writesMeanwhile() throws {
        let (world, mine, other) = try world("anew-writes")
        try edit(mine)
        try mine.beginRefetching()
        try mine.write { try $0.insert("teams", ["name": "Before anything came"]) }
        let goal = try mine.store.standing.refetching?.goal
        var slices = 0
        try mine.sync(with: world.server, lost: 5) { _ in
            slices += 1
            // Team 5 is as it will be from its first entry on; team 2 is going to change.
            if slices == 2 {
                try mine.write { context in
                    try context.update("teams", .integer(5), ["city": "Written meanwhile"])
                    try context.insert("players", ["team_id": 5, "name": "Meanwhile"])
                }
            }
        }
        #expect(slices >= 2)
        #expect(try mine.store.revision < goal ?? 0)
        #expect(try mine.store.record("teams", 5)?["city"] == "Written meanwhile")
        try mine.beginRefetching()
        #expect(try mine.store.standing.refetching?.goal == goal)
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(try mine.store.parkedCount == 0 && mine.store.outboxCount == 0)
        #expect(try other.store.record("teams", 5)?["city"] == "Written meanwhile")
        #expect(try mine.store.shownState() == other.store.shownState())
    }

    @Test("an edit of what was seen on the way, and changes again, is refused as stale")
    func seenOnTheWay() throws {
        let (world, mine, other) = try world("anew-way")
        try mine.beginRefetching()
        var slices = 0
        try mine.sync(with: world.server) { store in
            slices += 1
            guard try store.record("teams", 3)?["name"] == "Team 3" else { return }
            guard try store.outboxCount == 0, try store.parkedCount == 0 else { return }
            try mine.write { try $0.update("teams", .integer(3), ["name": "Mine"]) }
        }
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(try mine.store.parked().map(\.reason) == [.stale])
        #expect(try mine.store.record("teams", 3)?["name"] == "Round 2")
        #expect(try mine.store.shownState() == other.store.shownState())
    }

    @Test("what other programs wrote before is queued, not lost")
    func externalWritesBeforeRefetching() throws {
        let (world, mine, other) = try world("anew-foreign")
        let shell = try Connection(
            path: "device.sqlite", mode: .readWrite, vfs: mine.disk.vfsName)
        try shell.execute("UPDATE teams SET city = 'Shell' WHERE id = 5")
        try mine.beginRefetching()
        #expect(try mine.store.outboxCount == 1)
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(try other.store.record("teams", 5)?["city"] == "Shell")
    }

    @Test("the new tables may have other columns; what is aside moves with them")
    func otherSchema() throws {
        let (world, mine, other) = try world("anew-schema")
        try other.write { try $0.update("teams", .integer(4), ["city": "Oslo!"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        try mine.write { try $0.update("teams", .integer(2), ["name": "X", "city": "Rome"]) }
        try mine.write { try $0.update("notes", .text("note 3"), ["body": "mine"]) }
        // No column for the city, no table for notes.
        let narrow = """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, colour TEXT);
            CREATE TABLE players(
                id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
                name TEXT, shirt INTEGER UNIQUE);
            """
        try mine.beginRefetching(script: narrow)
        try mine.sync(with: world.server)
        try other.sync(with: world.server)
        #expect(try mine.store.parkedCount == 0 && mine.store.outboxCount == 0)
        #expect(try other.store.record("teams", 2)?["city"] == "Rome")
        #expect(try other.store.record("notes", text: "note 3")?["body"] == "mine")
        let aside = try mine.store.applying.connection.integer("SELECT count(*) FROM martlet_aside")
        // Every team's city (those left at the default, too), and three notes.
        #expect(aside == 9)
        // Back again: all of it is in the tables, nothing aside.
        try mine.beginRefetching()
        try mine.sync(with: world.server)
        #expect(try mine.store.shownState() == other.store.shownState())
        #expect(
            try mine.store.applying.connection.integer("SELECT count(*) FROM martlet_aside") == 0)
    }
}

extension DeviceStore {
    func record(_ type: String, _ id: Int64) throws -> Attributes? {
        try applying.record(type, .integer(id))
    }

    func record(_ type: String, text id: String) throws -> Attributes? {
        try applying.record(type, .text(id))
    }
}
