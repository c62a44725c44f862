import Foundation
import MartletModel
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What other programs write, read from the write-ahead log")
struct LogicalTests {
    @Test("bytes that are no message are refused, whatever is missing")
    func messages() {
        let name = Array("id".utf8) + [0]
        let relation: [UInt8] =
            [UInt8(ascii: "R"), 0, 0, 0, 7] + name + name + [0, 0, 1, 1] + name
            + [0, 0, 0, 20, 0xff, 0xff, 0xff, 0xff]
        #expect(
            OutputMessage(relation)
                == .relation(7, identity: 0, columns: [.init(name: "id", isKey: true)]))
        let update: [UInt8] =
            [UInt8(ascii: "U"), 0, 0, 0, 7, UInt8(ascii: "K"), 0, 1, UInt8(ascii: "t"), 0, 0, 0, 1]
            + [49, UInt8(ascii: "N"), 0, 2, UInt8(ascii: "t"), 0, 0, 0, 1, 50, UInt8(ascii: "u")]
        #expect(OutputMessage(update) == .update(7, old: ["1"], ["2", nil]))
        for bytes in [relation, update] {
            for count in 1..<bytes.count {
                #expect(OutputMessage(Array(bytes.prefix(count))) == nil, "\(count)")
            }
        }
        #expect(OutputMessage([]) == nil)
        #expect(OutputMessage([UInt8(ascii: "T"), 0xff, 0xff, 0xff, 0xff, 0]) == nil)
        #expect(OutputMessage([UInt8(ascii: "Y")]) == .other)
    }

    @Test(
        "a transaction says who wrote it; Martlet's own are passed over; TRUNCATE deletes all rows")
    func marks() async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try world.program()
            try program.execute(
                """
                BEGIN; SELECT pg_logical_emit_message(true, 'martlet.author', 'anna');
                INSERT INTO lists (title) VALUES ('a'), ('b'); COMMIT
                """)
            try program.execute("INSERT INTO lists (title) VALUES ('c')")
            #expect(try world.take().count == 2)
            #expect(try world.author(1) == "anna")
            #expect(try world.author(2) == nil)
            try program.execute(
                "BEGIN; SELECT \(LogicalState.ownMark); UPDATE lists SET title = 'own'; COMMIT")
            #expect(try world.take().isEmpty)
            try program.execute("UPDATE lists SET title = 'theirs'")
            try world.take()
            #expect(try world.replica == world.truth())

            for table in world.tables {
                try ExternalTriggers.install(
                    on: world.server, table: table, truncation: .deletes, capture: .logical)
                #expect(
                    try ExternalTriggers.verify(on: world.server, table: table, capture: .logical)
                        == [])
            }
            try program.execute(
                "BEGIN; TRUNCATE lists, tasks; INSERT INTO lists (id, title) VALUES (2, 'new'); COMMIT"
            )
            try world.takeAll()
            #expect(try world.replica == world.truth())
            #expect(world.replica["lists"]?.keys.sorted() == ["2"])
        }
    }

    @Test("what was read is not read again by the next reader, and nothing between is missed")
    func readers() async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try world.program()
            try program.execute(
                "INSERT INTO lists (title) SELECT 'a' FROM generate_series(1, 2500)")
            try world.read()
            let noted = "SELECT count(*) FROM _martlet.foreign_changes"
            #expect(try world.server.query(noted).integer(0, 0) == 2_500)
            // While one reads, nobody else does.
            let second = LogicalReader(world.address)
            #expect(try second.step(within: .zero) == .elsewhere)
            world.reader.close()
            try program.execute("UPDATE lists SET title = 'b' WHERE id = 7")
            try world.read()
            #expect(try world.server.query(noted).integer(0, 0) == 2_501)
            try world.takeAll()
            #expect(try world.replica == world.truth())
            let state = try #require(try LogicalState.read(world.server))
            #expect(state.entered == 2)
            #expect(LogicalState.isRead(3, horizon: state.horizon))
            #expect(
                !LogicalState.isRead(Int64(state.horizon & 0xffff_ffff), horizon: state.horizon))
        }
    }

    @Test("a slot that is gone is made anew, and what was missed is found in the tables")
    func lostSlot() async throws {
        try await ExternalWorld.with(.logical) { world in
            let program = try world.program()
            try program.execute(
                """
                INSERT INTO lists (title) SELECT 'a' FROM generate_series(1, 50);
                INSERT INTO tasks (id, list) VALUES ('00000000-0000-4000-8000-000000000001', 7)
                """)
            try world.takeAll()
            let before = world.head.revision
            // Quiet, it says how far it has come: what was read is not taken for missed.
            var isKnown = false
            for _ in 1...40 where !isKnown {
                _ = try world.reader.step(within: .milliseconds(50))
                let row = try program.query("SELECT xmin::text::bigint FROM lists WHERE id = 1")
                let horizon = try LogicalState.read(program)?.horizon ?? 0
                isKnown = LogicalState.isRead(try row.integer(0, 0), horizon: horizon)
            }
            let state = try #require(try LogicalState.read(world.server))
            world.reader.close()
            try LogicalSlot(on: world.server).drop(state.slot)
            // A copy of the data set in another database has taken the name.
            let copy = try PostgresConnection(
                world.address.setting("dbname", "martlet"),
                PostgresOptions(statement: nil, lock: nil))
            _ = try LogicalSlot(on: copy).make(state.slot)
            try program.execute(
                "UPDATE lists SET title = 'b', parent = 4 WHERE id = 3")
            try program.execute("INSERT INTO lists (title) VALUES ('new')")
            try program.execute("DELETE FROM lists WHERE id = 7")
            #expect(
                try SlotFindings(world.server).all().map(\.what)
                    == ["The replication slot “\(state.slot)” is gone."])
            try world.takeAll()
            let notes = world.reader.takeNotes()
            #expect(notes.count == 2)
            // Other tests' open transactions hold the horizon: then more is sent again than need be.
            let words =
                isKnown ? ": 2 records changed or new, 2 gone" : " records changed or new, 2 gone"
            #expect(notes.last?.hasSuffix(words) == true, "\(notes)")
            #expect(world.head.revision == before + 1)
            #expect(try world.author(before + 1) == "martlet compare")
            #expect(try world.replica == world.truth())
            // It goes on as ever.
            try program.execute("UPDATE lists SET title = 'c' WHERE id = 3")
            try world.takeAll()
            #expect(try world.replica == world.truth())
            #expect(try SlotFindings(world.server).all().isEmpty)
            try LogicalSlot(on: copy).drop(state.slot)
        }
    }

    @Test(
        "rows that were written past the triggers are found, and devices go on",
        arguments: [true, false])
    func compare(large: Bool) async throws {
        try await ExternalWorld.with { world in
            let program = try world.program()
            try program.execute("INSERT INTO lists (title) SELECT 'a' FROM generate_series(1, 50)")
            try world.takeAll()
            let rows = large ? 12_000 : 1
            try program.execute(
                """
                BEGIN; ALTER TABLE lists DISABLE TRIGGER USER;
                UPDATE lists SET title = 'b' WHERE id = 3; DELETE FROM lists WHERE id IN (7, 8);
                INSERT INTO lists (title, parent) SELECT 'c', 3 FROM generate_series(1, \(rows));
                ALTER TABLE lists ENABLE TRIGGER USER; COMMIT
                """)
            // What the triggers noted is none of it.
            try program.execute("UPDATE lists SET title = 'd' WHERE id = 9")
            let found = try PostgresComparison.run(on: program, repairs: false)
            #expect(found.changed == Int64(rows + 1))
            #expect(found.deleted == 2)
            #expect(found.records.count == min(20, rows + 3))
            #expect(found.records.contains { $0.id == "3" && !$0.isDeleted } || large)
            #expect(try PostgresComparison.run(on: program, repairs: true) == found)
            try world.takeAll()
            #expect(try world.replica == world.truth())
            #expect(try PostgresComparison.run(on: program, repairs: true).isEmpty)
            #expect(try world.take().isEmpty)
        }
    }

    @Test("changing over and back under programs that write loses nothing")
    func change() async throws {
        try await ExternalWorld.with(.logical) { world in
            let address = world.address
            world.reader.close()
            let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let count = 200
            Thread.detachNewThread {
                let program = try? PostgresConnection(address)
                for number in 1...count {
                    try? program?.execute("INSERT INTO lists (title) VALUES ('\(number)')")
                    if number == 20 { begun.signal() }
                }
                ended.signal()
            }
            begun.wait()
            let change = CaptureSwitch(on: world.server)
            for capture in [ExternalCapture.triggers, .logical, .triggers] {
                #expect(try change.change(to: capture).steps.count == 2)
                #expect(try change.change(to: capture).steps.isEmpty)
                #expect(try PostgresSchema.read(world.server).capture == capture)
            }
            ended.wait()
            try world.takeAll()
            #expect(world.replica["lists"]?.count == count)
            #expect(try world.replica == world.truth())
            #expect(try SlotFindings(world.server).all().isEmpty)
            for table in world.tables {
                #expect(try ExternalTriggers.verify(on: world.server, table: table) == [])
            }
        }
    }

    @Test("what stands in the way is said, with what to do")
    func obstacles() async throws {
        try await ExternalWorld.with(.logical) { world in
            _ = try CaptureSwitch(on: world.server).change(to: .triggers)
            let role = "weak_\(world.address["dbname"] ?? "")"
            try world.server.execute(
                """
                ALTER TABLE lists REPLICA IDENTITY NOTHING;
                CREATE ROLE \(role) LOGIN PASSWORD 'weak'; GRANT USAGE ON SCHEMA _martlet TO \(role);
                GRANT ALL ON ALL TABLES IN SCHEMA _martlet TO \(role)
                """)
            let weak = try PostgresConnection(
                world.address.setting("user", role).setting("password", "weak"))
            do {
                _ = try CaptureSwitch(on: weak).plan(.logical)
                Issue.record("nothing stands in the way")
            } catch let refusal as AdoptionError {
                #expect(refusal.problems.count == 2)
                #expect(refusal.problems[0].remedy == "ALTER ROLE \"\(role)\" REPLICATION")
                #expect(
                    refusal.problems[1].remedy
                        == "ALTER TABLE \"public\".\"lists\" REPLICA IDENTITY USING INDEX \"lists_pkey\""
                )
            }
            try world.server.execute(
                "ALTER TABLE lists REPLICA IDENTITY USING INDEX lists_pkey")
            #expect(try CaptureSwitch(on: world.server).plan(.logical).steps.count == 2)
        }
    }

    @Test("releasing drops slot and publication; a slot that is left over is told of")
    func release() async throws {
        try await ExternalWorld.with(.logical) { world in
            let state = try #require(try LogicalState.read(world.server))
            #expect(
                try SlotFindings(world.server).all().map(\.what).first?.hasPrefix("Nobody reads")
                    == true)
            // A session still reads the slot.
            #expect(try world.reader.step(within: .zero) == .reading)
            let steps = try PostgresRelease(on: world.server).release(
                name: nil, dropsSurrogates: false)
            #expect(steps.contains { $0.contains(state.slot) })
            #expect(try LogicalSlot(on: world.server).state(of: state.slot) == nil)
            let left = try world.server.query("SELECT count(*) FROM pg_publication")
            #expect(try left.integer(0, 0) == 0)
            _ = try LogicalSlot(on: world.server).make(state.slot)
            #expect(
                try SlotFindings(world.server).all().map(\.what)
                    == ["The replication slot “\(state.slot)” is no data set's any more."])
            let doctor = try PostgresDoctor(on: world.server, now: 0).findings()
            #expect(doctor.contains { $0.check == "slots" && $0.what.contains(state.slot) })
            let release = PostgresRelease(on: world.server)
            let plan = try release.plan(name: nil, dropsSurrogates: false)
            #expect(plan.count == 1)
            #expect(try release.release(name: nil, dropsSurrogates: false) == plan)
            #expect(try LogicalSlot(on: world.server).state(of: state.slot) == nil)
            #expect(throws: AdoptionError.self) {
                try release.plan(name: nil, dropsSurrogates: false)
            }
        }
    }

    @Test("an identity without the key is told beside what a publication lacks")
    func findingsOfPublications() async throws {
        try await ExternalWorld.with(.logical) { world in
            let name = try #require(try LogicalState.read(world.server)).publication
            try world.server.execute("ALTER TABLE lists REPLICA IDENTITY NOTHING")
            for (change, words) in [
                ("ALTER PUBLICATION \(name) DROP TABLE lists", "does not send all of “lists”"),
                ("DROP PUBLICATION \(name)", "is gone"),
            ] {
                try world.server.execute(change)
                let found = try SlotFindings(world.server).all().map(\.what)
                #expect(found.contains { $0.contains(words) }, "\(found)")
                #expect(
                    found.contains("The replica identity of the table “lists” lacks its key."),
                    "\(found)")
            }
        }
    }
}
