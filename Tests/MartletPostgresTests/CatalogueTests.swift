import MartletModel
import PostgresKit
import SQLiteKit
import SQLiteRecords
import Testing

@testable import MartletPostgres

@Suite("Tables of PostgreSQL")
struct CatalogueTests {
    static let teams = """
        CREATE TYPE level AS ENUM ('low', 'high');
        CREATE DOMAIN score AS integer NOT NULL DEFAULT 7 CHECK (VALUE >= 0);
        CREATE TABLE teams (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name varchar(20) NOT NULL DEFAULT 'it''s' UNIQUE,
            motto text);
        CREATE TABLE players (
            id bigserial PRIMARY KEY,
            team integer NOT NULL REFERENCES teams ON DELETE CASCADE,
            captain bigint REFERENCES players ON DELETE SET NULL DEFERRABLE,
            number smallint DEFAULT -1,
            active boolean NOT NULL DEFAULT true,
            price numeric(10, 2) DEFAULT 1.50,
            weight real, height double precision DEFAULT 1.5,
            born date, wakes time, seen timestamptz NOT NULL DEFAULT now(), changed timestamp,
            token uuid, photo bytea, notes json, facts jsonb DEFAULT '{}', tags text[],
            numbers integer[] DEFAULT '{}', rank level DEFAULT 'low', points score,
            code char(4), twice integer GENERATED ALWAYS AS (number * 2) STORED,
            UNIQUE (team, number));
        CREATE TABLE marks (id uuid PRIMARY KEY, player bigint REFERENCES players);
        """

    @Test("become types of devices, and the script makes the same of SQLite")
    func schemaOfCatalogue() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(Self.teams)
            try connection.register(["teams", "players", "marks"])
            let read = try PostgresSchema.read(connection)
            #expect(read.notes == [])
            #expect(read.schema.types.map(\.name) == ["teams", "players", "marks"])
            #expect(read.tables.map(\.type) == read.schema.types)
            let players = read.tables[1]
            #expect(players.nextKey == "nextval('public.players_id_seq'::regclass)")
            #expect(
                read.tables[0].nextKey
                    == "pg_catalog.nextval('public.teams_id_seq'::pg_catalog.regclass)")
            #expect(read.tables[2].nextKey == nil)
            #expect(read.tables[2].type.keyKind == .text)
            #expect(
                players.type.references == [
                    Reference(attribute: "captain", target: "players", onDelete: .setNull),
                    Reference(attribute: "team", target: "teams", onDelete: .cascade),
                ])
            #expect(players.type.uniques == [["team", "number"]])
            #expect(players.foreignKeys.map(\.isDeferrable) == [true, false])
            #expect(players.changesBehind)
            #expect(!read.tables[0].changesBehind)
            let forms = Dictionary(
                uniqueKeysWithValues: players.columns.map { ($0.name, $0.form) })
            #expect(forms["points"] == .integer(bytes: 4))
            #expect(forms["rank"] == .enumeration(["low", "high"]))
            #expect(forms["tags"] == .array)
            #expect(forms["number"] == .integer(bytes: 2))
            #expect(players.type[attribute: "points"]?.isRequired == true)
            #expect(players.type[attribute: "points"]?.hasDefault == true)
            #expect(players.columns.last?.isComputed == true)
            #expect(read.tables[0].columns[0].length == 20)

            let device = try Connection(path: ":memory:")
            try device.execute(read.deviceScript)
            let made = try SchemaReader.read(device)
            #expect(made.fingerprint == read.schema.fingerprint)
            #expect(made["players"]?.uniques == [["team", "number"]])
            #expect(made["players"]?[attribute: "team"]?.isRequired == true)
            // Only the server knows the time: until it has said it, the column is empty.
            #expect(made["players"]?[attribute: "seen"]?.isRequired == false)
            try device.execute("INSERT INTO teams (id) VALUES (1)")
            try device.execute("INSERT INTO players (id, team) VALUES (1, 1)")
            let row = try device.text(
                """
                SELECT concat_ws('|', number, active, price, height, facts, numbers, rank, points) \
                FROM players
                """.replacing("concat_ws('|', ", with: "(").replacing(", ", with: "||'|'||"))
            #expect(row == "-1|1|1.50|1.5|{}|{}|low|7")
            #expect(try device.text("SELECT name FROM teams") == "it's")
        }
    }

    @Test("are found under new names, and what cannot be sent is said")
    func renamedColumns() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE teams (id bigserial PRIMARY KEY, name text);
                CREATE TABLE gone (id bigserial PRIMARY KEY);
                """)
            try connection.register(["teams", "gone"])
            try connection.execute(
                """
                CREATE SCHEMA "old one";
                ALTER TABLE teams RENAME TO "the teams";
                ALTER TABLE "the teams" SET SCHEMA "old one";
                ALTER TABLE "old one"."the teams" ADD COLUMN place point, ADD COLUMN "NAME" text,
                    ADD COLUMN revision integer, ADD COLUMN martlet_x integer, ADD COLUMN more text;
                DROP TABLE gone;
                """)
            let read = try PostgresSchema.read(connection)
            #expect(read.schema.types.map(\.name) == ["teams"])
            #expect(read.tables[0].sqlName == #""old one"."the teams""#)
            #expect(read.schema.types[0].attributes.map(\.name) == ["name", "more"])
            #expect(read.notes.count == 6)
            #expect(read.notes.contains { $0.contains("called “the teams” now") })
            #expect(read.notes.contains { $0.contains("“gone” was dropped") })
            #expect(read.notes.contains { $0.contains("“place” has the type point") })
        }
    }

    @Test("without a key that a record's id can be are refused, each with what to do")
    func keysThatCannotBeIDs() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE none (name text);
                CREATE TABLE two (a integer, b integer, PRIMARY KEY (a, b));
                CREATE TABLE padded (id char(3) PRIMARY KEY);
                CREATE TABLE number (id numeric PRIMARY KEY);
                CREATE TABLE given (id integer PRIMARY KEY);
                """)
            try connection.register(["none", "two", "padded", "number", "given"])
            let error = #expect(throws: AdoptionError.self) {
                _ = try PostgresSchema.read(connection)
            }
            let problems = try #require(error).problems.map(\.description)
            #expect(problems.count == 5)
            #expect(problems[0].contains("“none” has no primary key; add one with ALTER TABLE"))
            #expect(problems[1].contains("“two” has a primary key of 2 columns (a, b)"))
            #expect(problems[1].contains("--surrogate"))
            #expect(problems[2].contains("“padded” has the key “id” of type character(3)"))
            #expect(problems[4].contains("ADD GENERATED BY DEFAULT AS IDENTITY"))
        }
    }
}

@Suite("Martlet's own tables in PostgreSQL")
struct MartletTablesTests {
    @Test("are missed where there are none")
    func absentTables() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            let error = #expect(throws: AdoptionError.self) {
                try MartletTables.upgrade(on: connection)
            }
            #expect(error?.description.contains("holds no data set") == true)
        }
    }

    @Test("are brought from an older format to this one, or not at all")
    func upgrade() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.transaction {
                try MartletTables.create(on: connection, name: "teams", identity: "abc")
            }
            #expect(
                try MartletTables.dataSet(on: connection)
                    == PostgresDataSet(
                        name: "teams", identity: "abc", format: MartletTables.format))
            try MartletTables.upgrade(on: connection)

            // A made-up older format, two steps behind.
            try connection.execute("UPDATE _martlet.dataset SET format = -1")
            let steps: MartletTables.Steps = [
                -1: "ALTER TABLE _martlet.log ADD COLUMN first integer",
                0: "ALTER TABLE _martlet.log ADD COLUMN second integer",
            ]
            let broken = steps.merging([0: "ALTER TABLE _martlet.nothing ADD x integer"]) { $1 }
            #expect(throws: PostgresError.self) {
                try MartletTables.upgrade(on: connection, steps: broken, to: 1)
            }
            let left = try connection.query(
                "SELECT first FROM _martlet.log".replacing("first", with: "count(*)"))
            #expect(try left.integer(0, 0) == 0)
            #expect(throws: PostgresError.self) {
                _ = try connection.query("SELECT first FROM _martlet.log")
            }
            try MartletTables.upgrade(on: connection, steps: steps, to: 1)
            _ = try connection.query("SELECT first, second FROM _martlet.log")
            #expect(try MartletTables.dataSet(on: connection)?.format == 1)

            let missing = #expect(throws: AdoptionError.self) {
                try MartletTables.upgrade(on: connection, steps: steps, to: 3)
            }
            #expect(missing?.description.contains("cannot upgrade") == true)
            try connection.execute("UPDATE _martlet.dataset SET format = 99")
            let newer = #expect(throws: AdoptionError.self) {
                try MartletTables.upgrade(on: connection)
            }
            #expect(newer?.description.contains("use that version") == true)
        }
    }
}
