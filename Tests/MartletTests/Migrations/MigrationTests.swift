import MartletModel
import SQLiteFaults
import SQLiteKit
import Synchronization
import Testing

@testable import MartletStore

/// Versions of a small database.
enum Versions {
    static let teams = Migration(1, "teams") { context in
        try context.create(
            """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
            CREATE TABLE players(
                id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id), shirt INTEGER);
            """)
        try context.execute("INSERT INTO teams VALUES (1, ?, 'Oslo')", ["Falcons"])
        try context.execute("INSERT INTO players VALUES (1, 1, 7), (2, 1, 8)")
    }
    static let nicknames = Migration(2, "nicknames") { context in
        try context.addColumn("nickname TEXT NOT NULL DEFAULT 'none'", to: "players")
        try context.renameColumn("city", to: "town", in: "teams")
    }
    static let search = Migration(5, "search") { context in
        try context.create(
            """
            CREATE VIRTUAL TABLE words USING fts5(body);
            CREATE UNIQUE INDEX by_shirt ON players(team_id, shirt);
            CREATE VIEW names AS SELECT name FROM teams;
            CREATE TRIGGER spell AFTER INSERT ON teams BEGIN
                INSERT INTO words VALUES (NEW.name); END;
            """)
        for row in try context.rows("SELECT name FROM teams") {
            try context.execute("INSERT INTO words VALUES (?)", [row["name"] ?? .null])
        }
    }
    static let all = [teams, nicknames, search]
}

@Suite("Migrations of a plain file")
struct MigrationTests {
    @Test("a new file is led through all versions, with progress, and then through none")
    func new() throws {
        let file = try PlainFile("new")
        let told = Mutex<[MigrationProgress]>([])
        let outcome = try file.migrate(Versions.all) { step in told.withLock { $0.append(step) } }
        #expect(outcome == .migrated(from: 0, to: 5))
        #expect(
            told.withLock { $0 }.map { "\($0.version) \($0.name) \($0.done)/\($0.total)" } == [
                "1 teams 0/3", "1 teams 1/3", "2 nicknames 1/3", "2 nicknames 2/3",
                "5 search 2/3", "5 search 3/3",
            ])
        #expect(
            try file.strings("SELECT version || name || at FROM martlet_migrations")
                == ["1teams5", "2nicknames5", "5search5"])
        #expect(try file.strings("SELECT town FROM teams") == ["Oslo"])
        #expect(try file.strings("SELECT DISTINCT nickname FROM players") == ["none"])
        #expect(
            try file.strings("SELECT body FROM words WHERE words MATCH 'falcons'") == ["Falcons"])
        #expect(try file.connection.integer("PRAGMA foreign_keys") == 1)
        let operations = file.disk.operationCount
        #expect(
            try file.migrate(Versions.all) { _ in Issue.record("nothing to tell") } == .upToDate)
        #expect(file.disk.operationCount == operations)
        #expect(!file.disk.paths.contains { $0.contains("copy") })
    }

    @Test("any number of versions is caught up with, from wherever the file stands")
    func catchingUp() throws {
        let whole = try PlainFile("whole")
        try whole.migrate(Versions.all)
        for start in 0...3 {
            let file = try PlainFile("from-\(start)")
            try file.migrate(Array(Versions.all[..<start]))
            try file.reopen()
            try file.migrate(Versions.all)
            #expect(try file.content() == whole.content())
        }
    }

    @Test("a failing version leaves the file at the one before; a later opening goes on there")
    func failing() throws {
        let file = try PlainFile("failing")
        let broken = Migration(2, "broken") { context in
            try context.addColumn("a TEXT", to: "teams")
            try context.execute("UPDATE teams SET name = 'x'")
            try context.addColumn("b TEXT", to: "clubs")
        }
        let error = #expect(throws: StoreError.self) {
            try file.migrate([Versions.teams, broken])
        }
        #expect(error?.kind == .unknown)
        #expect(
            error?.message.hasPrefix(
                "Version 2 (broken) was not run, and the file is as the version before left it."
                    + " There is no table “clubs”") == true)
        let first = try PlainFile("failing-first")
        try first.migrate([Versions.teams])
        #expect(try file.content() == first.content())
        #expect(try file.migrate(Versions.all) == .migrated(from: 1, to: 5))
    }

    @Test("an error of the app's own stops the version, and its values stay out of the message")
    func ownError() throws {
        struct Private: Error { let secret = "s3cret" }
        let file = try PlainFile("own-error")
        try file.migrate([Versions.teams])
        let error = try file.refusal { _ in throw Private() }
        #expect(error?.kind == .migration)
        #expect(error?.message.contains("Private") == true)
        #expect(error?.message.contains("s3cret") == false)
    }

    @Test(
        "numbers must ascend from 1",
        arguments: [([0], "below 1"), ([-3], "below 1"), ([1, 1], "twice"), ([2, 1], "behind")])
    func orderOfVersions(numbers: [Int], sentence: String) throws {
        let error = #expect(throws: StoreError.self) {
            try Migrations(numbers.map { Migration($0, "v\($0)") { _ in } })
        }
        #expect(error?.kind == .schema)
        #expect(error?.message.contains(sentence) == true)
        #expect(try Migrations([]).newest == 0)
    }

    @Test("a file of a newer app is refused and left untouched")
    func newer() throws {
        let file = try PlainFile("newer")
        try file.migrate(Versions.all)
        let bytes = file.disk.contents(of: PlainFile.path)
        let operations = file.disk.operationCount
        let error = #expect(throws: StoreError.self) {
            try file.migrate([Versions.teams, Versions.nicknames], fallback: .restoreCopy)
        }
        #expect(error?.kind == .newer)
        #expect(error?.remedy == .updateTheApp)
        #expect(error?.message.contains("version 5") == true)
        #expect(file.disk.operationCount == operations)
        #expect(file.disk.contents(of: PlainFile.path) == bytes)
    }

    @Test("a version that came into the list too late is refused")
    func lateVersion() throws {
        let file = try PlainFile("late")
        try file.migrate(Versions.all)
        let error = #expect(throws: StoreError.self) {
            try file.migrate(
                [
                    Versions.teams, Versions.nicknames, Migration(3, "late") { _ in },
                    Versions.search,
                ])
        }
        #expect(error?.kind == .schema)
        #expect(error?.message.contains("above 5") == true)
    }

    @Test("versions that are no longer in the list do not matter")
    func squashed() throws {
        let file = try PlainFile("squashed")
        try file.migrate(Versions.all)
        #expect(try file.migrate([Versions.search, Migration(6, "x") { _ in }]).failure == nil)
    }

    @Test("drops columns, indexes, views, triggers and tables")
    func drops() throws {
        let file = try PlainFile("drops")
        try file.migrate(
            Versions.all + [
                Migration(6, "less") { context in
                    try context.dropIndex("BY_SHIRT")
                    try context.dropColumn("shirt", from: "Players")
                    try context.dropTrigger("spell")
                    try context.dropView("names")
                    try context.dropTable("players")
                    try context.dropTable("words")
                }
            ])
        #expect(
            try file.strings("SELECT name FROM sqlite_schema ORDER BY name")
                == ["martlet_migrations", "teams"])
    }

    @Test("a context is of no use after its version")
    func misuse() throws {
        let file = try PlainFile("misuse")
        try file.migrate([Versions.teams])
        nonisolated(unsafe) var kept: MigrationContext?
        try file.migrate([Versions.teams, Migration(2, "kept") { kept = $0 }])
        let error = #expect(throws: StoreError.self) {
            try kept?.execute("DELETE FROM players")
        }
        #expect(error?.kind == .misuse)
        #expect(try file.connection.integer("SELECT count(*) FROM players") == 2)
    }

    @Test("a process that finds a version run meanwhile leaves it out")
    func race() throws {
        let file = try PlainFile("race")
        try file.migrate([Versions.teams])
        let other = try file.other()
        nonisolated(unsafe) let second = other
        let outcome = try file.migrate(Versions.all) { step in
            guard step.version == 2, step.done == 0 else { return }
            // Just before this version begins, the other process runs them all.
            _ = try? Migrator(Migrations(Versions.all), now: 9).run(on: second)
        }
        #expect(outcome == .migrated(from: 1, to: 5))
        #expect(
            try file.strings("SELECT at FROM martlet_migrations ORDER BY version")
                == ["5", "9", "9"])
    }
}
