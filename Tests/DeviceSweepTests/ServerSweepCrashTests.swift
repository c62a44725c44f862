import MartletModel
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletEmbedded
@testable import MartletServerCore

/// What a server does on a SQLite file, each time with another operation of its disk failing.
///
/// `scripts/long sweep` tries all points; by default a share is tried.
@Suite("A server's work on a failing disk", .serialized)
struct ServerSweepCrashTests {
    private func sweep(
        _ name: String, _ images: DiskImages, script: String = SmallWorld.script, limit: Int,
        transactions: Int, _ deed: @escaping (SweptServer) throws -> Void
    ) throws {
        let scenario = SweptScenario(name, images) { images, life in
            try SweptServer(images, life: life, script: script, deed)
        }
        try FaultSweep(scenario).run(limit: limit, transactions: transactions)
    }

    @Test("two devices exchange with a server that was killed before: sets, refusals, cascades")
    func commit() throws {
        try FaultSweep(.serverCommit()).run(limit: 16, transactions: 4)
    }

    @Test("old entries are emptied, a few in each transaction")
    func compaction() throws {
        let team = try SweptTeam("compaction")
        try team.overtake()
        try team.queue()
        try team.mine.sync(with: team.world.server)
        // What was not acknowledged is kept: both say what they have.
        for (number, device) in [team.mine, team.other, team.mine, team.other].enumerated() {
            try device.write { try $0.insert("notes", ["body": "Long"], id: "c\(number)") }
            try device.sync(with: team.world.server)
        }
        try sweep("compaction", team.serverImages, limit: 16, transactions: 5) { work in
            var isDone = false
            while !isDone {
                isDone = try work.node.compact(keeping: 1, entries: 2).isDone
                try work.checkFault()
                work.acknowledge()
            }
        }
    }

    /// Another program's writes to the server's file.
    private func writeExternal(_ team: SweptTeam) throws {
        try team.world.server.look().execute(
            """
            BEGIN;
            INSERT INTO teams (id, name) VALUES (50, 'Outside');
            INSERT INTO players (id, team_id, name, shirt) VALUES (60, 50, 'Zoe', 60);
            UPDATE teams SET city = 'Kiel' WHERE id = 1;
            DELETE FROM players WHERE id = 4;
            COMMIT;
            UPDATE notes SET body = 'By hand';
            """)
    }

    @Test("what another program wrote is made entries of the log")
    func externalWritesInLog() throws {
        let team = try SweptTeam("outside")
        try writeExternal(team)
        try sweep("external writes", team.serverImages, limit: 16, transactions: 1) { work in
            while try work.node.takeExternalWrites(now: 5) { try work.checkFault() }
            try work.checkFault()
            work.acknowledge()
        }
    }

    @Test("a file of the first format, and a column more, on opening")
    func format() throws {
        let team = try SweptTeam("format")
        team.world.server.close()
        try ExternalTriggers.remove(from: team.world.server.look())
        try team.world.server.look().execute(
            """
            DROP TABLE martlet_outside; ALTER TABLE martlet_dataset DROP COLUMN applying;
            DROP INDEX martlet_records_revision; DROP TABLE martlet_announced;
            DROP TABLE martlet_type_views; DROP TABLE martlet_members; DROP TABLE martlet_views;
            DROP TABLE martlet_given; DROP TABLE martlet_purges;
            DROP TABLE martlet_columns;
            UPDATE martlet_meta SET value = 1 WHERE key = 'format'
            """)
        let grown = SmallWorld.script.replacing(
            "city TEXT", with: "colour TEXT DEFAULT 'red', city TEXT")
        try sweep(
            "server format", [team.world.server.disk.files], script: grown, limit: 16,
            transactions: 1
        ) { $0.acknowledge() }
    }
}
