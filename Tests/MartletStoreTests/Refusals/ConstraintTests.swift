import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import Testing

/// Each kind of constraint: named, with the record's key, and nothing is changed.
@Suite("Violated constraints", .timeLimit(.minutes(5)))
struct ConstraintTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id), name TEXT,
            shirt INTEGER CONSTRAINT shirt_is_small CHECK (shirt < 100), city TEXT, street TEXT,
            UNIQUE (city, street));
        CREATE UNIQUE INDEX players_by_lower ON players(lower(name));
        CREATE TABLE guests(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams DEFERRABLE INITIALLY DEFERRED);
        CREATE TABLE coaches(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE RESTRICT);
        CREATE TABLE strict(id INTEGER PRIMARY KEY, n INTEGER) STRICT;
        INSERT INTO teams VALUES (1, 'Falcons'), (2, 'Owls');
        INSERT INTO players VALUES (1, 1, 'Ana', 7, 'Oslo', 'A');
        INSERT INTO coaches VALUES (1, 2);

        """

    private func expect(
        _ wanted: StoreError.Constraint.Kind, columns: [String] = [], name: String? = nil,
        key: RecordID?, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: @escaping @Sendable (WriteContext) throws -> Void
    ) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let before = try await pool.read { try $0.rows("SELECT * FROM players, teams") }
        let error = await refusal {
            try await pool.write { context throws in
                _ = try context.rows("INSERT INTO teams(name) VALUES ('first')")
                try body(context)
            }
        }
        #expect(error?.kind == .constraint, sourceLocation: sourceLocation)
        #expect(error?.remedy == .correctTheValues, sourceLocation: sourceLocation)
        #expect(error?.constraint?.kind == wanted, sourceLocation: sourceLocation)
        #expect(error?.constraint?.columns == columns, sourceLocation: sourceLocation)
        #expect(error?.constraint?.name == name, sourceLocation: sourceLocation)
        #expect(error?.key == key, sourceLocation: sourceLocation)
        #expect(error?.code != nil, sourceLocation: sourceLocation)
        #expect(error?.sql != nil, sourceLocation: sourceLocation)
        let after = try await pool.read { try $0.rows("SELECT * FROM players, teams") }
        #expect(before == after, sourceLocation: sourceLocation)
        #expect(try await pool.integrity() == "ok", sourceLocation: sourceLocation)
    }

    @Test("UNIQUE")
    func uniqueConstraint() async throws {
        let teams = PlainTable("teams")
        let players = PlainTable("players")
        try await expect(.unique, columns: ["teams.name"], key: .integer(2)) {
            try teams.update(["id": 2, "name": "Falcons"] as RecordValues, in: $0)
        }
        try await expect(.unique, columns: ["teams.id"], key: .integer(2)) {
            try teams.insert(["id": 2, "name": "x"] as RecordValues, in: $0)
        }
        try await expect(.unique, columns: ["players.city", "players.street"], key: nil) {
            try players.insert(["city": "Oslo", "street": "A"] as RecordValues, in: $0)
        }
        try await expect(.unique, name: "players_by_lower", key: .integer(9)) {
            try players.insert(["id": 9, "name": "ANA"] as RecordValues, in: $0)
        }
    }

    @Test("NOT NULL and CHECK")
    func notNullAndCheck() async throws {
        let teams = PlainTable("teams")
        let players = PlainTable("players")
        try await expect(.notNull, columns: ["teams.name"], key: .integer(1)) {
            try teams.update(["id": 1, "name": .null] as RecordValues, in: $0)
        }
        try await expect(.check, name: "shirt_is_small", key: .integer(1)) {
            try players.update(["id": 1, "shirt": 100] as RecordValues, in: $0)
        }
    }

    @Test("FOREIGN KEY: no parent, children in the way, at the statement and at the commit")
    func foreignKey() async throws {
        let teams = PlainTable("teams")
        let players = PlainTable("players")
        try await expect(.foreignKey, columns: ["players.team_id"], key: nil) {
            try players.insert(["team_id": 99] as RecordValues, in: $0)
        }
        try await expect(.foreignKey, columns: ["players.team_id"], key: .integer(1)) {
            try players.update(["id": 1, "team_id": 99] as RecordValues, in: $0)
        }
        try await expect(.foreignKey, columns: ["players.team_id"], key: .integer(1)) {
            try teams.delete(1, in: $0)
        }
        // To SQLite that is a trigger; nobody has written one.
        try await expect(.foreignKey, columns: ["coaches.team_id"], key: .integer(2)) {
            try teams.delete(2, in: $0)
        }
        try await expect(.foreignKey, columns: ["guests.team_id"], key: nil) {
            try PlainTable("guests").insert(["team_id": 99] as RecordValues, in: $0)
        }
    }

    @Test("a trigger's RAISE")
    func trigger() async throws {
        try await expect(.trigger, name: "no more teams", key: .integer(5)) { context in
            _ = try context.rows(
                """
                CREATE TRIGGER enough BEFORE INSERT ON teams
                BEGIN SELECT RAISE(ABORT, 'no more teams'); END
                """)
            try PlainTable("teams").insert(["id": 5, "name": "x"] as RecordValues, in: context)
        }
    }

    @Test("a STRICT table's types are a matter of values")
    func strict() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let errors = [
            await refusal {
                try await pool.write { _ = try $0.rows("INSERT INTO strict(n) VALUES ('a')") }
            },
            await refusal {
                try await pool.write {
                    try PlainTable("strict").insert(["n": "a"] as RecordValues, in: $0)
                }
            },
        ]
        #expect(errors.map(\.?.kind) == [.value, .value])
    }

    @Test("the description hides values and keys, the debug description shows them")
    func hiding() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let error = try #require(
            await refusal {
                try await pool.write {
                    try PlainTable("players").update(
                        ["id": 1, "name": "secret", "shirt": 4711] as RecordValues, in: $0)
                }
            })
        for text in ["\(error)", error.localizedDescription] {
            #expect(!text.contains("secret"))
            #expect(!text.contains("4711"))
            #expect(text.contains("shirt_is_small"))
        }
        let full = String(reflecting: error)
        for part in ["secret", "4711", "players", "UPDATE", "275"] { #expect(full.contains(part)) }
        #expect(error.sql?.contains("secret") == false)
    }
}
