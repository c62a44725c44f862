import Foundation
import MartletModel
internal import MartletProtocol
import PostgresKit
import TestDatabases
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("What the slot did not send is found")
struct LogicalCaptureTests {
    /// Fills the tables, and has the device and the log know the rows.
    private static func fill(_ world: ExternalWorld) throws -> PostgresConnection {
        let program = try world.program()
        try program.execute(
            """
            INSERT INTO lists (title) SELECT 'a' FROM generate_series(1, 20);
            INSERT INTO tasks (id, title) VALUES ('00000000-0000-4000-8000-000000000001', 'a')
            """)
        try world.takeAll()
        return program
    }

    /// Empties the entries of the log, as compaction does.
    private static func compact(_ world: ExternalWorld) throws {
        try world.server.execute(
            "UPDATE _martlet.log SET body = ''; UPDATE _martlet.dataset SET floor = revision")
    }

    /// Takes all, and compares the device with the tables; then does so for one more write.
    private static func expectAll(_ world: ExternalWorld, _ program: PostgresConnection) throws {
        try world.takeAll()
        #expect(try differences(world) == [])
        try program.execute(
            "UPDATE lists SET title = 'later' WHERE id = 20; DELETE FROM lists WHERE id = 19")
        try world.takeAll()
        #expect(try differences(world) == [])
        let findings = try SlotFindings(world.server).all().filter(\.isError)
        #expect(findings == [])
    }

    /// Returns the records in which the device and the tables differ, with what each has.
    private static func differences(_ world: ExternalWorld) throws -> [String] {
        let truth = try world.truth()
        return Set(world.replica.keys).union(truth.keys).sorted().flatMap { type in
            let (has, should) = (world.replica[type] ?? [:], truth[type] ?? [:])
            return Set(has.keys).union(should.keys).sorted().filter { has[$0] != should[$0] }.map {
                "\(type) \($0): \(has[$0] ?? [:]), \(should[$0] ?? [:])"
            }
        }
    }

    @Test(
        "a copy of a database has its tables compared by values, as far as the log has them",
        arguments: [false, true])
    func copy(isCompacted: Bool) async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try Self.fill(world)
            if isCompacted { try Self.compact(world) }
            world.reader.close()
            let state = try #require(try LogicalState.read(world.server))
            try program.execute("UPDATE lists SET title = 'before' WHERE id = 3")
            // The copy has no slot, and the identifier of the database that it was copied from.
            try LogicalSlot(on: world.server).drop(state.slot)
            try program.execute("UPDATE _martlet.dataset SET home = '1/1'")
            try program.execute(
                "UPDATE lists SET title = 'after' WHERE id = 4; DELETE FROM lists WHERE id = 5")
            // A server that starts looks at the tables first.
            try MartletTables.upgrade(on: world.server)
            let before = world.entries.count
            try Self.expectAll(world, program)
            let told = world.entries[before].types.flatMap(\.update).map(\.description)
            #expect(isCompacted || told == ["3", "4"])
        }
    }

    @Test("rows of the copy are in doubt until it is compared")
    func doubt() {
        #expect(!LogicalState.isRead(7, horizon: 0))
        #expect(!LogicalState.isRead(4_000_000_000, horizon: 0))
    }

    @Test(
        "a table that the publication lost is put back, and what it missed is found",
        arguments: [false, true])
    func table(isPutBack: Bool) async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try Self.fill(world)
            let state = try #require(try LogicalState.read(world.server))
            let tables = try TableState.read(world.server)
            let name = PostgresConnection.quoted(state.publication)
            try program.execute("ALTER PUBLICATION \(name) DROP TABLE lists")
            #expect(try TableState.read(world.server) != tables)
            try program.execute(
                """
                UPDATE lists SET title = 'b' WHERE id = 3; DELETE FROM lists WHERE id = 7;
                INSERT INTO lists (title) VALUES ('new')
                """)
            // The log is told of one later.
            try world.takeAll()
            try world.server.execute(
                "UPDATE _martlet.records SET revision = revision WHERE type = 1 AND id = '3'")
            #expect(
                try SlotFindings(world.server).all().contains {
                    $0.isError && $0.what.contains("“lists”")
                })
            if isPutBack {
                try program.execute("ALTER PUBLICATION \(name) ADD TABLE lists")
                #expect(try TableState.read(world.server) != tables)
            }
            // The server opens the data set again, because the tables have another state.
            world.reader.close()
            try Self.expectAll(world, program)
        }
    }

    @Test("a publication that sends some rows or operations alone is made whole")
    func part() async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try Self.fill(world)
            let state = try #require(try LogicalState.read(world.server))
            let name = PostgresConnection.quoted(state.publication)
            for change in ["SET (publish = 'insert')", "SET TABLE lists WHERE (id > 10), tasks"] {
                try program.execute("ALTER PUBLICATION \(name) \(change)")
                try program.execute(
                    "UPDATE lists SET title = title || 'b' WHERE id = 3; DELETE FROM lists WHERE id = 8"
                )
                try world.takeAll()
                #expect(try world.replica != world.truth())
                world.reader.close()
                try Self.expectAll(world, program)
            }
        }
    }

    @Test("a publication that is gone is made anew, with the slot")
    func publication() async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try Self.fill(world)
            let state = try #require(try LogicalState.read(world.server))
            try program.execute(
                "DROP PUBLICATION \(PostgresConnection.quoted(state.publication))")
            try program.execute(
                "UPDATE lists SET title = 'b' WHERE id = 3; DELETE FROM lists WHERE id = 7")
            #expect(
                try SlotFindings(world.server).all().contains {
                    $0.isError && $0.what.contains("publication")
                })
            // The stream fails once PostgreSQL has read the change, which takes a moment.
            var fault: StorageFault?
            for _ in 0..<1_200 where fault == nil {
                do throws(StorageFault) {
                    _ = try world.reader.step(within: .milliseconds(100))
                } catch { fault = error }
            }
            #expect(fault?.description.contains("42704") == true)
            try Self.expectAll(world, program)
        }
    }

    @Test("without the publication, and without deletions, --cdc triggers takes what is left")
    func triggersForCapture() async throws {
        for statement in ["DROP PUBLICATION", "ALTER TABLE lists REPLICA IDENTITY USING INDEX of"] {
            try await ExternalWorld.with(.logical) { world in
                let program = try Self.fill(world)
                let state = try #require(try LogicalState.read(world.server))
                try program.execute("CREATE UNIQUE INDEX of ON lists (title, id)")
                try program.execute("DROP INDEX of; UPDATE lists SET title = id")
                try program.execute("CREATE UNIQUE INDEX of ON lists (title)")
                try program.execute(
                    statement
                        + (statement.hasPrefix("DROP")
                            ? " " + PostgresConnection.quoted(state.publication) : ""))
                try program.execute(
                    "UPDATE lists SET title = 'b' WHERE id = 3; DELETE FROM lists WHERE id = 7")
                world.reader.close()
                #expect(
                    try CaptureSwitch(on: world.server).change(to: .triggers).steps.isEmpty
                        == false)
                #expect(try LogicalSlot(on: world.server).state(of: state.slot) == nil)
                try Self.expectAll(world, program)
            }
        }
    }

    @Test(
        "deletions that a replica identity without the key does not name are found afterwards",
        arguments: [true, false])
    func identity(isSeen: Bool) async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try Self.fill(world)
            try program.execute("UPDATE lists SET title = id")
            try program.execute("CREATE UNIQUE INDEX of ON lists (title)")
            try world.takeAll()
            let tables = try TableState.read(world.server)
            try program.execute("ALTER TABLE lists REPLICA IDENTITY USING INDEX of")
            #expect(try TableState.read(world.server) != tables)
            let request = PostgresAdoption.Request(name: "team", tables: ["lists"])
            if isSeen {
                world.reader.close()
                let finding = try SlotFindings(world.server).all().last { $0.isError }
                #expect(finding?.what.contains("“lists”") == true)
                #expect(throws: AdoptionError.self) {
                    try PostgresAdoption(on: world.server, now: 1).adopt(request)
                }
                #expect(throws: AdoptionError.self) {
                    try CaptureSwitch(on: world.server).change(to: .logical)
                }
            }
            try program.execute(
                """
                DELETE FROM lists WHERE id = 7; UPDATE lists SET id = 77 WHERE id = 3;
                UPDATE lists SET title = 'other' WHERE id = 4
                """)
            if isSeen {
                try world.takeAll()
                #expect(world.replica["lists"]?["4"]?["title"] == .text("other"))
            }
            try program.execute("ALTER TABLE lists REPLICA IDENTITY DEFAULT")
            try world.takeAll()
            if isSeen { world.reader.close() }
            try Self.expectAll(world, program)
        }
    }
}
