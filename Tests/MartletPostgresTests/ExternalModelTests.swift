import Foundation
import MartletModel
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("What other programs write: whatever they do")
struct ExternalModelTests {
    private static let seeds = ExternalWorld.seeds(usual: 4)

    /// A statement that may do nothing, or be refused.
    private static func statement(_ chance: inout Chance) -> String {
        func list() -> Int { .random(in: 1...12, using: &chance) }
        let uuid = "'00000000-0000-4000-8000-0000000000\(Int.random(in: 10...29, using: &chance))'"
        switch Int.random(in: 0..<12, using: &chance) {
        case 0, 1:
            return "INSERT INTO lists (id, title, parent) VALUES (\(list()), 'l', \(list()))"
        case 2: return "INSERT INTO lists (id, title) VALUES (\(list()), 'r')"
        case 3, 4: return "INSERT INTO tasks (id, title, list) VALUES (\(uuid), 't', \(list()))"
        case 5: return "UPDATE lists SET title = title || 'x' WHERE id = \(list())"
        case 6: return "UPDATE lists SET parent = \(list()) WHERE id = \(list())"
        case 7: return "UPDATE tasks SET list = \(list()) WHERE id = \(uuid)"
        case 8 where Bool.random(using: &chance):
            let weight =
                ["'NaN'", "'-Infinity'", "'Infinity'", "1.5"].randomElement(using: &chance) ?? ""
            return "UPDATE tasks SET title = title || 'z', weight = \(weight) WHERE id >= \(uuid)"
        case 8: return "UPDATE tasks SET done = NOT coalesce(done, true)"
        case 9: return "UPDATE lists SET id = \(list()) WHERE id = \(list())"
        case 10: return "DELETE FROM lists WHERE id = \(list())"
        default: return "DELETE FROM tasks WHERE id = \(uuid)"
        }
    }

    /// A trigger that fires before rows are written, and makes some of them others, or none.
    private static func trigger(_ chance: inout Chance) -> String {
        let deeds = [
            "NEW.id := NEW.id + 12", "NEW.id := NEW.id + 12", "NEW.title := NEW.title || 'y'",
            "RETURN NULL", "NEW.parent := NULL",
        ]
        let deed = deeds.randomElement(using: &chance) ?? ""
        return """
            CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF length(NEW.title) % \(Int.random(in: 2...4, using: &chance)) = 0 THEN \(deed); END IF;
                RETURN NEW; END $$;
            CREATE TRIGGER change BEFORE INSERT OR UPDATE ON lists FOR EACH ROW EXECUTE FUNCTION change()
            """
    }

    /// Has one of the programs do something, or the server take what was written.
    private static func step(
        _ world: ExternalWorld, _ programs: [PostgresConnection], _ chance: inout Chance
    ) throws {
        let program = programs[Int.random(in: 0..<3, using: &chance)]
        switch Int.random(in: 0..<10, using: &chance) {
        case 0 where !program.isInTransaction: try program.begin()
        case 1 where program.isInTransaction:
            // A failed one is rolled back by it.
            if program.hasFailedTransaction {
                try program.rollback()
            } else {
                try program.commit()
            }
        case 2 where program.isInTransaction: try program.rollback()
        case 3:
            let isWhole = Bool.random(using: &chance)
            try world.take(maxBytes: isWhole ? 1 << 20 : 10, inParts: !isWhole)
        default:
            let statement = statement(&chance)
            _ =
                try? program.isInTransaction
                ? program.savepoint { try program.execute(statement) }
                : program.execute(statement)
        }
    }

    @Test(
        "a device that follows the log has what the tables hold, in parts or as wholes",
        arguments: ExternalCapture.allCases, seeds)
    func model(_ capture: ExternalCapture, seed: UInt64) async throws {
        try await ExternalWorld.with(capture) { world in
            var chance = Chance(seed: seed)
            let programs = [try world.program(), try world.program(), try world.program()]
            for program in programs { try program.execute("SET lock_timeout = 5") }
            if seed > 2 { try programs[0].execute(Self.trigger(&chance)) }
            // Triggers and locks keep some worlds from writing much: they go on.
            var rounds = 0
            repeat {
                for _ in 0..<250 { try Self.step(world, programs, &chance) }
                for program in programs where program.isInTransaction { try program.rollback() }
                try world.takeAll()
                rounds += 1
            } while world.head.revision <= 10 && rounds < 8
            try Self.judge(world)
            #expect(world.head.revision > 10)
            let left = try world.server.query("SELECT count(*) FROM _martlet.foreign_changes")
            #expect(try left.integer(0, 0) == 0)
        }
    }

    /// Compares what the device has with the tables. Rows that no device can be sent are left out; if the device
    /// has such a record, the record is marked, so that no set overrides what nobody has seen.
    private static func judge(_ world: ExternalWorld) throws {
        let rows = try world.server.query(
            "SELECT id::text FROM tasks WHERE weight IN ('NaN', 'Infinity', '-Infinity')")
        var odd: Set<String> = []
        for row in 0..<rows.count { odd.insert(try rows.text(row, 0)) }
        var truth = try world.truth(leavingOut: odd)
        for (type, records) in world.replica {
            let typeIndex = world.schema.index(of: type) ?? 0
            for (id, record) in records {
                let facts = try world.facts(typeIndex, id)
                let isOdd = type == "tasks" && odd.contains(id)
                #expect(facts?.isLeftOut == isOdd, "\(type) \(id)")
                if isOdd { truth[type]?[id] = record }
            }
        }
        #expect(world.replica == truth)
    }

    /// Statements, each in a transaction of its own with a new row, so many times.
    private static func burst(_ statements: [String], times: Int) -> String {
        let list = statements.map { "$s$\($0)$s$" }.joined(separator: ", ")
        return """
            DO $$ DECLARE all_of_them text[] := ARRAY[\(list)]; BEGIN
                FOR n IN 1..\(times) LOOP
                    INSERT INTO lists (id, title) SELECT greatest(max(id), 1000) + 1, 'b' FROM lists;
                    BEGIN EXECUTE all_of_them[1 + n % \(statements.count)];
                    EXCEPTION WHEN OTHERS THEN NULL; END;
                    COMMIT;
                END LOOP;
            END $$
            """
    }

    @Test(
        "a thousand transactions that wait become few sets, however they are mixed",
        arguments: ExternalCapture.allCases, [5, 6])
    func backlog(_ capture: ExternalCapture, seed: UInt64) async throws {
        try await ExternalWorld.with(capture) { world in
            var chance = Chance(seed: seed)
            let program = try world.program()
            let statements = (0..<61).map { _ in Self.statement(&chance) }
                .filter { !$0.contains("coalesce(done") }
            for _ in 0..<Int.random(in: 0...2, using: &chance) {
                _ = try? program.execute(Self.burst(statements, times: 20))
                try world.takeAll()
            }
            let pending = "SELECT count(*) FROM _martlet.foreign_transactions"
            while try world.server.query(pending).integer(0, 0) < 1_000 {
                try program.execute(Self.burst(statements.shuffled(using: &chance), times: 500))
                try world.read()
            }
            let count = Int(try world.server.query(pending).integer(0, 0))
            let before = world.entries.count
            while try world.server.query(pending).integer(0, 0) > 0 {
                try world.take(inParts: true)
            }
            // What is left of the last thousand goes one by one.
            let most = count / 20 + count % 1_000
            #expect(
                world.entries.count - before <= most,
                "\(count) transactions, \(world.entries.count - before) sets")
            try Self.judge(world)
        }
    }
}
