import MartletModel
import MartletServerCore
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

@testable import Martlet
@testable import MartletDevice

@Suite("Coming back to a server that was restored from a backup")
struct RejoiningTests {
    /// A server with teams 1 to 3, on two devices; then its backup, on which it goes on later.
    private func world(
        _ name: String
    ) throws -> (world: SmallWorld, mine: SmallDevice, other: SmallDevice) {
        let world = try SmallWorld("rejoin-\(name)")
        let mine = try world.device()
        let other = try world.device()
        for number in 1...3 {
            try other.write { try $0.insert("teams", ["name": .text("Team \(number)")]) }
        }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        return (world, mine, other)
    }

    /// All rows of a table, as the device shows them.
    private func rows(_ device: SmallDevice, _ sql: String) throws -> [String] {
        try device.store.local.rows(sql).map { row in
            row.values.map { value in
                switch value {
                case .null: "null"
                case .integer(let number): String(number)
                case .text(let text): text
                default: "?"
                }
            }.joined(separator: " ")
        }
    }

    private func teams(_ device: SmallDevice) throws -> [String] {
        try rows(device, "SELECT id, name FROM teams ORDER BY name")
    }

    @Test("a device ahead of it keeps its work: what was lost is sent again, once")
    func aheadOfBackup() throws {
        let (world, mine, other) = try world("ahead")
        let backup = try world.restoredServer()
        try mine.write { try $0.insert("teams", ["name": "Confirmed and lost"]) }
        try mine.write { try $0.update("teams", .integer(1), ["name": "Renamed and lost"]) }
        try mine.sync(with: world.server)
        try mine.write { try $0.insert("teams", ["name": "Never sent"]) }
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        expectText(
            try mine.text(),
            """
            at 6
            teams 1 @5: name "Renamed and lost", city "Oslo"
            teams 2 @2: name "Team 2", city "Oslo"
            teams 3 @3: name "Team 3", city "Oslo"
            teams 4 @4: name "Confirmed and lost", city "Oslo"
            teams 5 @6: name "Never sent", city "Oslo"
            receipt 1: accepted at 4
            receipt 2: accepted at 5
            receipt 3: accepted at 6
            teams -2 is 4
            teams -3 is 5
            """)
        // The other device was behind the backup, or at it.
        try other.sync(with: backup)
        #expect(try teams(other) == teams(mine))
        #expect(try mine.store.confirmedState() == other.store.confirmedState())
        // Nothing more is sent, and nothing twice.
        #expect(try mine.sync(with: backup) == 1)
        #expect(try mine.store.revision == other.store.revision)
    }

    @Test("a set whose answer was lost is applied once, whichever history has it")
    func lostAnswer() throws {
        for isInBackup in [true, false] {
            let (world, mine, _) = try world("answer-\(isInBackup)")
            var backup = try world.restoredServer()
            try mine.write { try $0.insert("teams", ["name": "Once"]) }
            try mine.sync(with: world.server, lost: 1)
            if isInBackup { backup = try world.restoredServer() }
            let third = try world.device()
            try third.write { try $0.insert("teams", ["name": "Lost by the restoring"]) }
            try third.sync(with: world.server)
            // Mine has not heard of its own set, but of nothing after the backup either.
            try mine.sync(with: backup)
            #expect(try teams(mine).filter { $0.hasSuffix("Once") }.count == 1)
            #expect(try mine.store.outboxCount == 0)
            try third.sync(with: backup)
            #expect(try teams(third).filter { $0.hasSuffix("Once") }.count == 1)
            #expect(try teams(third).contains { $0.hasSuffix("Lost by the restoring") })
        }
    }

    @Test("a device that stopped between two entries of an answer overwrites nothing unseen")
    func betweenEntries() throws {
        let (world, mine, other) = try world("entries")
        let backup = try world.restoredServer()
        for number in 1...3 {
            try other.write { try $0.update("teams", .integer(Int64(number)), ["city": "Lost"]) }
        }
        try other.sync(with: world.server)
        mine.pace.sliceRecords = 1
        mine.isAlone = true
        mine.close()
        try mine.open()
        // The device stops after the first of three entries.
        #expect(throws: Stopped.self) {
            try mine.sync(with: world.server) {
                if try $0.revision == 4 { throw Stopped() }
            }
        }
        #expect(try mine.store.standing.lineage == nil)
        mine.close()
        try mine.open()
        try mine.write { try $0.update("teams", .integer(1), ["name": "Mine 1"]) }

        let third = try world.device()
        try third.sync(with: backup)
        try third.write { try $0.update("teams", .integer(1), ["name": "Theirs 1"]) }
        for _ in 0..<4 { try third.write { try $0.insert("teams", ["name": "New"]) } }
        try third.sync(with: backup)
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        try third.sync(with: backup)
        #expect(try mine.store.confirmedState() == third.store.confirmedState())
        #expect(try teams(third).contains("1 Theirs 1"))
        #expect(try mine.store.parked().map(\.reason) == [.stale])
    }

    @Test("a set that was made between two entries of an answer is not lost if the backup has it")
    func madeBetweenEntries() throws {
        let (world, mine, other) = try world("made-between")
        for number in 1...3 {
            try other.write { try $0.update("teams", .integer(Int64(number)), ["city": "Rome"]) }
        }
        try other.sync(with: world.server)
        // Each answer has all entries.
        world.server.pace.answerBytes = 64 << 10
        world.server.close()
        try world.server.open()
        mine.pace.sliceRecords = 1
        mine.isAlone = true
        mine.close()
        try mine.open()
        #expect(throws: Stopped.self) {
            try mine.sync(with: world.server) {
                if try $0.revision == 4 { throw Stopped() }
            }
        }
        mine.close()
        try mine.open()
        try mine.write { try $0.update("teams", .integer(1), ["name": "Mine 1"]) }
        try mine.sync(with: world.server, lost: 1)
        let backup = try world.restoredServer()
        try other.write { try $0.insert("teams", ["name": "Lost"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        // On the backup, somebody changes the record on top of the set.
        let third = try world.device()
        try third.sync(with: backup)
        try third.write { try $0.update("teams", .integer(1), ["city": "Bergen"]) }
        try third.sync(with: backup)
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        #expect(try mine.store.parked().isEmpty && mine.store.outboxCount == 0)
        #expect(try mine.store.confirmedState() == third.store.confirmedState())
        #expect(try teams(mine) == ["1 Mine 1", "2 Team 2", "3 Team 3"])
    }

    private struct Stopped: Error {}

    @Test("a history that was overwritten since: edits of what others changed wait for a person")
    func overwritten() throws {
        let (world, mine, other) = try world("overwritten")
        let backup = try world.restoredServer()
        try mine.write { try $0.update("teams", .integer(1), ["name": "Mine 1"]) }
        try mine.write { try $0.update("teams", .integer(2), ["name": "Mine 2"]) }
        try mine.sync(with: world.server)
        // On the restored server, others go on, past the device's revision.
        try other.write { try $0.update("teams", .integer(1), ["name": "Theirs 1"]) }
        for _ in 0..<6 { try other.write { try $0.insert("teams", ["name": "New"]) } }
        try other.sync(with: backup)
        try mine.write { try $0.update("teams", .integer(1), ["city": "Rome"]) }
        try mine.write { try $0.update("teams", .integer(3), ["name": "Mine 3"]) }
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        expectText(
            try mine.text(),
            """
            at 12
            teams 1 @4: name "Theirs 1", city "Oslo"
            teams 2 @11: name "Mine 2", city "Oslo"
            teams 3 @12: name "Mine 3", city "Oslo"
            teams 4 @5: name "New", city "Oslo"
            teams 5 @6: name "New", city "Oslo"
            teams 6 @7: name "New", city "Oslo"
            teams 7 @8: name "New", city "Oslo"
            teams 8 @9: name "New", city "Oslo"
            teams 9 @10: name "New", city "Oslo"
            parked 1: stale
            parked 1: update teams 1 @1: name "Mine 1"
            parked 1: base of teams 1: name "Team 1", city "Oslo"
            parked 1: theirs of teams 1: name "Theirs 1", city "Oslo"
            parked 3: dependency
            parked 3: update teams 1 @4: city "Rome"
            parked 3: base of teams 1: name "Mine 1", city "Oslo"
            parked 3: theirs of teams 1: name "Theirs 1", city "Oslo"
            receipt 1: refused, stale
            receipt 2: accepted at 11
            receipt 3: refused, dependency
            receipt 4: accepted at 12
            """)
        let parked = try mine.store.parked()
        try other.sync(with: backup)
        #expect(try mine.store.confirmedState() == other.store.confirmedState())
        // A person decides: mine once more.
        try mine.store.retry(parked[0].identifier, now: 3)
        try mine.sync(with: backup)
        #expect(try teams(mine).contains("1 Mine 1"))
    }

    @Test(
        "a device that refetches everything comes back as others do", arguments: [false, true])
    func refetchAfterRestore(isFetching: Bool) throws {
        let (world, mine, other) = try world("anew-\(isFetching)")
        let backup = try world.restoredServer()
        try mine.write { try $0.insert("teams", ["name": "Confirmed and lost"]) }
        try mine.write { try $0.update("teams", .integer(1), ["name": "Mine 1"]) }
        try mine.sync(with: world.server)
        try mine.write { try $0.update("teams", .integer(2), ["name": "Mine 2"]) }
        try mine.write { try $0.insert("players", ["team_id": 3, "name": "Never sent"]) }
        try mine.beginRefetching()
        if isFetching {
            // It has asked whether the history is its own, and has part of it again.
            try mine.sync(with: world.server, lost: 2)
            try mine.store.endLeases()
            #expect(try mine.store.standing.refetching != nil)
        }
        try other.write { try $0.update("teams", .integer(2), ["name": "Theirs 2"]) }
        for _ in 0..<9 { try other.write { try $0.insert("teams", ["name": "New"]) } }
        try other.sync(with: backup)
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        expectText(
            try mine.text(),
            """
            at 16
            teams 1 @15: name "Mine 1", city "Oslo"
            teams 2 @4: name "Theirs 2", city "Oslo"
            teams 3 @3: name "Team 3", city "Oslo"
            teams 4 @5: name "New", city "Oslo"
            teams 5 @6: name "New", city "Oslo"
            teams 6 @7: name "New", city "Oslo"
            teams 7 @8: name "New", city "Oslo"
            teams 8 @9: name "New", city "Oslo"
            teams 9 @10: name "New", city "Oslo"
            teams 10 @11: name "New", city "Oslo"
            teams 11 @12: name "New", city "Oslo"
            teams 12 @13: name "New", city "Oslo"
            teams 13 @14: name "Confirmed and lost", city "Oslo"
            players 1 @16: team_id 3, name "Never sent"
            parked 3: stale
            parked 3: update teams 2 @2: name "Mine 2"
            parked 3: base of teams 2: name "Team 2", city "Oslo"
            parked 3: theirs of teams 2: name "Theirs 2", city "Oslo"
            receipt 1: accepted at 14
            receipt 2: accepted at 15
            receipt 3: refused, stale
            receipt 4: accepted at 16
            teams -2 is 13
            players -3 is 1
            """)
        try other.sync(with: backup)
        #expect(try mine.store.confirmedState() == other.store.confirmedState())
        #expect(try mine.sync(with: backup) == 1)
    }

    @Test("ids that were given to others since lead nowhere wrong")
    func givenAgain() throws {
        let (world, mine, other) = try world("ids")
        let backup = try world.restoredServer()
        let team = try mine.write { try $0.insert("teams", ["name": "Falcons"]) }
        try mine.write {
            try $0.insert("players", ["team_id": team.sqlValue, "name": "Ann", "shirt": 1])
        }
        try mine.sync(with: world.server)
        #expect(try rows(mine, "SELECT team_id FROM players") == ["4"])
        // On the restored server number 4 is somebody else's.
        try other.write { try $0.insert("teams", ["name": "Bears"]) }
        try other.sync(with: backup)
        // Confirmed ids are used in a set that was never sent, too.
        try mine.write {
            try $0.insert("players", ["team_id": 4, "name": "Bob", "shirt": 2])
        }
        try mine.write { try $0.update("teams", .integer(4), ["city": "Rome"]) }
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        expectText(
            try mine.text(),
            """
            at 8
            teams 1 @1: name "Team 1", city "Oslo"
            teams 2 @2: name "Team 2", city "Oslo"
            teams 3 @3: name "Team 3", city "Oslo"
            teams 4 @4: name "Bears", city "Oslo"
            teams 5 @8: name "Falcons", city "Rome"
            players 1 @6: team_id 5, name "Ann", shirt 1
            players 2 @7: team_id 5, name "Bob", shirt 2
            receipt 1: accepted at 5
            receipt 2: accepted at 6
            receipt 3: accepted at 7
            receipt 4: accepted at 8
            teams -2 is 5
            players -3 is 1
            players -4 is 2
            """)
        try other.sync(with: backup)
        for device in [mine, other] {
            #expect(
                try rows(
                    device,
                    """
                    SELECT players.name, teams.name FROM players JOIN teams
                    ON teams.id = players.team_id ORDER BY 1
                    """) == ["Ann Falcons", "Bob Falcons"])
            #expect(try teams(device).contains("4 Bears"))
        }
    }

    @Test("what refers to records of others that were lost waits, and goes once they are back")
    func lostRecordsOfOthers() throws {
        let (world, mine, other) = try world("others")
        let backup = try world.restoredServer()
        try other.write { try $0.insert("teams", ["name": "Theirs"]) }
        try other.write { try $0.update("teams", .integer(2), ["name": "Theirs 2"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        try mine.write { try $0.insert("players", ["team_id": 4, "name": "Ann", "shirt": 1]) }
        try mine.write { try $0.update("teams", .integer(2), ["city": "Rome"]) }
        try mine.sync(with: world.server)
        // Somebody took the number in the meantime.
        let third = try world.device()
        try third.sync(with: backup)
        try third.write { try $0.insert("teams", ["name": "Somebody's"]) }
        try third.sync(with: backup)
        try mine.sync(with: backup)
        // The player is not moved to a team nobody meant. The city goes: its author had seen the
        // team as it is now.
        expectText(
            try mine.text(),
            """
            at 5
            teams 1 @1: name "Team 1", city "Oslo"
            teams 2 @5: name "Team 2", city "Rome"
            teams 3 @3: name "Team 3", city "Oslo"
            teams 4 @4: name "Somebody's", city "Oslo"
            parked 1: dependency
            parked 1: create players -2 @0: team_id -3, name "Ann", shirt 1
            receipt 1: refused, dependency
            receipt 2: accepted at 5
            """)
        // The other one comes back later: its edit of team 2 is refused, its team is made.
        try other.sync(with: backup)
        expectText(
            try other.text(),
            """
            at 6
            teams 1 @1: name "Team 1", city "Oslo"
            teams 2 @5: name "Team 2", city "Rome"
            teams 3 @3: name "Team 3", city "Oslo"
            teams 4 @4: name "Somebody's", city "Oslo"
            teams 5 @6: name "Theirs", city "Oslo"
            parked 5: stale
            parked 5: update teams 2 @2: name "Theirs 2"
            parked 5: base of teams 2: name "Team 2", city "Oslo"
            parked 5: theirs of teams 2: name "Team 2", city "Rome"
            receipt 1: accepted at 1
            receipt 2: accepted at 2
            receipt 3: accepted at 3
            receipt 4: accepted at 6
            receipt 5: refused, stale
            teams -2 is 1
            teams -3 is 2
            teams -4 is 3
            teams -5 is 5
            """)
    }

    @Test("edits on top of others' lost edits go where those came back first")
    func othersFirst() throws {
        let (world, mine, other) = try world("first")
        let backup = try world.restoredServer()
        try other.write { try $0.update("teams", .integer(2), ["name": "Theirs 2"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        try mine.write { try $0.update("teams", .integer(2), ["city": "Rome"]) }
        try mine.sync(with: world.server)
        try other.sync(with: backup)
        try mine.sync(with: backup)
        expectText(
            try mine.text(),
            """
            at 5
            teams 1 @1: name "Team 1", city "Oslo"
            teams 2 @5: name "Theirs 2", city "Rome"
            teams 3 @3: name "Team 3", city "Oslo"
            receipt 1: accepted at 5
            """)
    }

    @Test("another data set gets nothing, and changes nothing")
    func otherDataSet() throws {
        let (world, mine, _) = try world("foreign")
        try mine.write { try $0.insert("teams", ["name": "Private"]) }
        let foreign = try SmallServer(
            .init(name: "rejoin-foreign-other"), identity: "another")
        try mine.sync(with: foreign)
        #expect(mine.errors.map(\.kind) == [.wrongDataSet])
        #expect(foreign.node?.feed.head.revision == 0)
        expectText(
            try mine.text(),
            """
            at 3
            teams -2: name "Private", city "Oslo"
            teams 1 @1: name "Team 1", city "Oslo"
            teams 2 @2: name "Team 2", city "Oslo"
            teams 3 @3: name "Team 3", city "Oslo"
            base teams -2 @0
            queued 1 (sent) create teams -2 @0: name "Private", city "Oslo"
            """)
        try mine.sync(with: world.server)
        #expect(try teams(mine).contains("4 Private"))
    }

    @Test("answers lost on the way, and restarts, at every request of the way back")
    func interrupted() throws {
        var isDone = false
        var lost = 0
        while !isDone {
            lost += 1
            let (world, mine, other) = try world("interrupted-\(lost)")
            let backup = try world.restoredServer()
            for number in 0..<5 {
                try mine.write { try $0.insert("teams", ["name": .text("Mine \(number)")]) }
                try mine.sync(with: world.server)
            }
            try other.write { try $0.insert("teams", ["name": "Theirs"]) }
            try other.sync(with: backup)
            let requests = try mine.sync(with: backup, lost: lost)
            isDone = requests < lost
            mine.close()
            try mine.open()
            // Meanwhile the lease of the life before ends.
            try mine.store.endLeases()
            try mine.sync(with: backup)
            #expect(try mine.store.parked().isEmpty)
            try other.sync(with: backup)
            #expect(try teams(mine).map { $0.drop { $0 != " " } }.count == 9)
            #expect(try mine.store.confirmedState() == other.store.confirmedState())
        }
        #expect(lost > 4)
    }

    @Test(
        "the server is switched back to its own history: all is as it was, and nothing is doubled")
    func switchedBack() throws {
        let (world, mine, _) = try world("back")
        let backup = try world.restoredServer()
        try mine.write { try $0.insert("teams", ["name": "Confirmed"]) }
        try mine.sync(with: world.server)
        // Found out, and cut.
        try mine.sync(with: backup, lost: 3)
        try mine.sync(with: world.server)
        let confirmed = try mine.text()
        expectText(
            confirmed,
            """
            at 4
            teams 1 @1: name "Team 1", city "Oslo"
            teams 2 @2: name "Team 2", city "Oslo"
            teams 3 @3: name "Team 3", city "Oslo"
            teams 4 @4: name "Confirmed", city "Oslo"
            receipt 1: accepted at 4
            teams -2 is 4
            """)
        // And after the whole way back, there and back again.
        try mine.sync(with: backup)
        try mine.sync(with: world.server)
        expectText(try mine.text(), confirmed)
    }
}
