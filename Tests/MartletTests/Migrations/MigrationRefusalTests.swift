import MartletModel
import MartletProtocol
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletStore

/// One thing a version must not do, and what it is told.
struct Refused: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let kind: StoreError.Kind
    let body: @Sendable (MigrationContext) throws -> Void

    init(
        _ sentence: String, _ kind: StoreError.Kind,
        _ body: @escaping @Sendable (MigrationContext) throws -> Void
    ) {
        testDescription = sentence
        self.kind = kind
        self.body = body
    }

    static let schema: [Refused] = [
        Refused("other than CREATE", .schema) { try $0.create("DROP TABLE teams") },
        Refused("other than CREATE", .schema) {
            try $0.create("CREATE TABLE x(id INTEGER PRIMARY KEY); PRAGMA user_version = 1")
        },
        Refused("temporary", .schema) { try $0.create("CREATE TEMP TABLE x(a)") },
        Refused("“temp”", .schema) { try $0.create("CREATE TABLE temp.x(a)") },
        Refused("“martlet_x”", .schema) { try $0.create("CREATE TABLE martlet_x(a)") },
        Refused("“martlet_migrations”", .schema) {
            try $0.create("CREATE INDEX x ON martlet_migrations(name)")
        },
        Refused("NUL", .schema) { try $0.create("CREATE TABLE x(a); \u{0}") },
        Refused("not valid", .schema) { try $0.create("CREATE TABLE x(") },
        Refused("no such column: colour", .schema) {
            try $0.create("CREATE INDEX x ON players(colour)")
        },
        Refused("already exists", .schema) { try $0.create("CREATE TABLE teams(a)") },
        Refused("no table “clubs”", .unknown) { try $0.addColumn("a TEXT", to: "clubs") },
        Refused("no table “martlet_migrations”", .unknown) {
            try $0.addColumn("a TEXT", to: "martlet_migrations")
        },
        Refused("no table “names”", .unknown) { try $0.addColumn("a TEXT", to: "names") },
        Refused("NOT NULL without a DEFAULT", .schema) {
            try $0.addColumn("a TEXT NOT NULL", to: "teams")
        },
        Refused("already has a column “Name”", .schema) {
            try $0.addColumn("Name TEXT", to: "teams")
        },
        Refused("exactly one column", .schema) { try $0.addColumn("a TEXT, b TEXT", to: "teams") },
        Refused("exactly one column", .schema) {
            try $0.addColumn("a TEXT); DROP TABLE players; --", to: "teams")
        },
        Refused("exactly one column", .schema) { try $0.addColumn("UNIQUE (name)", to: "teams") },
        Refused("exactly one column", .schema) { try $0.addColumn("", to: "teams") },
        Refused("cannot be added to “teams”", .schema) {
            try $0.addColumn("a TEXT UNIQUE", to: "teams")
        },
        Refused("cannot be added to “teams”", .schema) {
            try $0.addColumn("a TEXT DEFAULT CURRENT_TIMESTAMP", to: "teams")
        },
        Refused("no column “colour”", .unknown) {
            try $0.renameColumn("colour", to: "color", in: "teams")
        },
        Refused("already has a column “name”", .schema) {
            try $0.renameColumn("town", to: "name", in: "teams")
        },
        Refused("no table “clubs”", .unknown) { try $0.renameColumn("a", to: "b", in: "clubs") },
        Refused("no column “colour”", .unknown) { try $0.dropColumn("colour", from: "teams") },
        Refused("error in index by_shirt", .schema) { try $0.dropColumn("shirt", from: "players") },
        Refused("error in view names", .schema) { try $0.dropColumn("name", from: "teams") },
        Refused("PRIMARY KEY", .schema) { try $0.dropColumn("id", from: "teams") },
        Refused("no index “nothing”", .unknown) { try $0.dropIndex("nothing") },
        Refused("no index “names”", .unknown) { try $0.dropIndex("names") },
        Refused("no view “teams”", .unknown) { try $0.dropView("teams") },
        Refused("no trigger “names”", .unknown) { try $0.dropTrigger("names") },
        Refused("“players” references it", .schema) { try $0.dropTable("teams") },
        Refused("no table “clubs”", .unknown) { try $0.dropTable("clubs") },
    ]

    static let records: [Refused] = [
        Refused("calls of their own", .statement) { try $0.execute("DROP TABLE players") },
        Refused("calls of their own", .statement) { try $0.execute("PRAGMA user_version = 1") },
        Refused("calls of their own", .statement) { try $0.execute("") },
        Refused("got several", .statement) {
            try $0.execute("DELETE FROM players; DELETE FROM teams")
        },
        Refused("Martlet's own", .statement) { try $0.execute("DELETE FROM martlet_migrations") },
        Refused("Martlet's own", .statement) {
            try $0.execute("DELETE FROM \"martlet_migrations\"")
        },
        Refused("0 parameters and got 1", .statement) {
            try $0.execute("DELETE FROM players", [1])
        },
        Refused("no such column", .unknown) { try $0.execute("UPDATE teams SET colour = 'x'") },
        Refused("another statement", .statement) { _ = try $0.rows("DELETE FROM players") },
        Refused("that writes", .statement) {
            _ = try $0.rows("WITH x AS (SELECT 1) DELETE FROM players RETURNING id")
        },
        Refused("that writes", .statement) {
            _ = try $0.rows("WITH x AS (SELECT 1) REPLACE INTO teams VALUES (1, 'a', 'b')")
        },
        Refused("NOT NULL", .constraint) { try $0.execute("UPDATE teams SET name = NULL") },
        Refused("leave a record of “players” that refers to no record of “teams”", .constraint) {
            try $0.execute("DELETE FROM teams")
        },
        Refused("leave a record of “players”", .constraint) {
            try $0.execute("DELETE FROM teams")
            try $0.addColumn("a TEXT", to: "teams")
        },
    ]
}

@Suite("What a version must not do")
struct MigrationRefusalTests {
    private func check(_ refused: Refused) throws {
        let file = try PlainFile("refused")
        try file.migrate(Versions.all)
        let error = try file.refusal(refused.body)
        #expect(error?.kind == refused.kind, "\(error.debugDescription)")
        #expect(
            error?.message.contains(refused.testDescription) == true, "\(error?.message ?? "none")")
    }

    @Test("a change of the schema is refused in a sentence", arguments: Refused.schema)
    func schemaChangeRefused(refused: Refused) throws {
        try check(refused)
    }

    @Test("a data statement is refused in a sentence", arguments: Refused.records)
    func records(refused: Refused) throws {
        try check(refused)
    }

    @Test("references that had no parent before do not stop a version")
    func oldOrphans() throws {
        let file = try PlainFile("orphans")
        try file.migrate([Versions.teams])
        try file.other().execute("PRAGMA foreign_keys = OFF; INSERT INTO players VALUES (9, 77, 1)")
        #expect(
            try file.refusal { try $0.execute("UPDATE players SET shirt = 5 WHERE id = 1") } == nil)
    }

    @Test("a query may use words of SQL as functions and in quotes")
    func words() throws {
        let file = try PlainFile("words")
        try file.migrate([Versions.teams])
        let error = try file.refusal { context in
            let rows = try context.rows(
                "WITH x AS (SELECT replace(name, 'F', 'f') AS \"update\" FROM teams)"
                    + " SELECT \"update\" FROM x")
            guard rows == [["update": "falcons"]] else { throw FixtureError.leased }
        }
        #expect(error == nil)
    }

    @Test(
        "a unique index that rows violate names the index and the key of one of them",
        arguments: [
            ("x ON players(team_id)", "2"),
            ("x ON players(team_id DESC, nickname COLLATE NOCASE)", "2"),
            ("IF NOT EXISTS main.\"x\" ON players(shirt % 1) WHERE shirt > 0;", "2"),
            ("x ON notes(body)", "b"),
        ])
    func uniqueIndexInMigration(index: String, key: String) throws {
        let file = try PlainFile("unique")
        try file.migrate(
            Versions.all + [
                Migration(6, "notes") { context in
                    try context.create("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
                    try context.execute(
                        "INSERT INTO notes VALUES ('a', 'x'), ('b', 'x'), ('c', NULL)")
                }
            ])
        let error = try file.refusal { try $0.create("CREATE UNIQUE INDEX \(index)") }
        #expect(error?.kind == .constraint)
        #expect(error?.message.contains("Unique index “x” cannot be made") == true)
        #expect(error?.message.contains("with the key \(key).") == true, "\(error?.message ?? "")")
        #expect(error?.key?.description == key)
    }

    @Test("nulls do not violate a unique index")
    func nulls() throws {
        let file = try PlainFile("nulls")
        try file.migrate([Versions.teams])
        let error = try file.refusal { context in
            try context.execute("UPDATE players SET shirt = NULL")
            try context.create("CREATE UNIQUE INDEX x ON players(shirt)")
        }
        #expect(error == nil)
    }
}
