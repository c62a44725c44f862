import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("Adoption of tables in PostgreSQL")
struct AdoptionTests {
    @Test("says what it would do, does it, and release takes it back to the byte")
    func thereAndBack() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(CatalogueTests.teams)
            try connection.execute(
                """
                INSERT INTO teams (name) SELECT 'team ' || n FROM generate_series(1, 3) AS n;
                INSERT INTO players (team, number) SELECT 1, n FROM generate_series(1, 2500) AS n;
                UPDATE players SET captain = 2500 WHERE id < 2000;
                UPDATE players SET captain = 3 WHERE id = 2500;
                INSERT INTO marks SELECT gen_random_uuid(), id FROM players WHERE id < 10;
                """)
            let before = try connection.tableDescriptions()
            var request = PostgresAdoption.Request(
                name: "club", tables: ["marks", "public.players", "teams"])
            let plan = try PostgresAdoption(on: connection, now: 5).plan(request)
            #expect(plan.steps.first?.contains("make the schema “_martlet”") == true)
            #expect(
                plan.steps.contains { $0.contains("enter 2500 rows of \"public\".\"players\"") })
            #expect(try connection.tableDescriptions() == before)
            #expect(try MartletTables.dataSet(on: connection) == nil)

            request.truncation = .delete
            let report = try PostgresAdoption(on: connection, now: 5).adopt(request)
            #expect(report.rows == 3 + 2500 + 9)
            #expect(
                report.steps.map {
                    $0.replacing("deletes all rows on devices too", with: "is refused")
                } == plan.steps)
            let schema = try PostgresSchema.read(connection)
            for table in schema.tables {
                #expect(try ExternalTriggers.verify(on: connection, table: table) == [])
            }
            try connection.expectFoldedLog(schema)
            // What other programs write from now on is noted.
            try connection.execute("UPDATE teams SET motto = 'x' WHERE id = 1")
            #expect(try connection.count("_martlet.foreign_changes") == 1)

            let rehearsed = try PostgresRelease(on: connection).plan(
                name: "club", dropsSurrogates: true)
            #expect(try MartletTables.dataSet(on: connection) != nil)
            let released = try PostgresRelease(on: connection).release(
                name: nil, dropsSurrogates: true)
            #expect(rehearsed == released)
            #expect(try connection.tableDescriptions() == before)
            #expect(try MartletTables.dataSet(on: connection) == nil)
            try connection.execute("UPDATE teams SET motto = 'y'; TRUNCATE marks")
        }
    }

    @Test("gives a key to tables that have none of one column, if asked")
    func surrogates() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE cells (x integer, y integer, value text, PRIMARY KEY (x, y));
                INSERT INTO cells SELECT n, n, 'v' FROM generate_series(1, 5) AS n;
                """)
            let before = try connection.tableDescriptions()
            var request = PostgresAdoption.Request(name: "grid", tables: ["cells"])
            #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: connection, now: 1).adopt(request)
            }
            request.surrogates = ["cells"]
            let report = try PostgresAdoption(on: connection, now: 1).adopt(request)
            #expect(report.steps.contains { $0.contains("the column martlet_id bigint") })
            let schema = try PostgresSchema.read(connection)
            #expect(schema.schema.types[0].key == "martlet_id")
            #expect(schema.schema.types[0].uniques == [["x", "y"]])
            #expect(schema.tables[0].nextKey?.contains("cells_martlet_id_seq") == true)
            try connection.expectFoldedLog(schema)
            try connection.expectDeviceScript(of: schema)
            _ = try PostgresRelease(on: connection).release(name: "grid", dropsSurrogates: true)
            #expect(try connection.tableDescriptions() == before)
        }
    }

    @Test("adds tables later, announces new columns, and mends triggers")
    func again() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE teams (id bigserial PRIMARY KEY, name text);
                CREATE TABLE players (id bigserial PRIMARY KEY, team bigint REFERENCES teams);
                INSERT INTO teams (id, name) VALUES (7, 'a'), (8, 'b');
                INSERT INTO players (team) VALUES (7);
                """)
            let adoption = PostgresAdoption(on: connection, now: 1)
            let first = try adoption.adopt(.init(name: "club", tables: ["teams"]))
            #expect(first.notes.contains { $0.contains("stood at 0") && $0.contains("set to 8") })
            let second = try adoption.adopt(.init(name: "club", tables: ["players"]))
            #expect(
                second.notes == [
                    "servers with a rules file show nobody rows of “players” until the file has policies"
                        + " for it; name the file with --rules FILE to check that",
                    "servers that run take the new tables up within two seconds",
                ])
            var schema = try PostgresSchema.read(connection)
            #expect(schema.schema.types.map(\.name) == ["teams", "players"])
            #expect(schema.schema.types[1].references.count == 1)
            try connection.expectFoldedLog(schema)

            // A row the log has yet to be told of is not announced.
            try connection.execute(
                """
                INSERT INTO teams (id, name) VALUES (9, 'new');
                ALTER TABLE teams ADD COLUMN size integer DEFAULT 11, ADD COLUMN motto text;
                ALTER TABLE teams RENAME COLUMN name TO title;
                """)
            schema = try PostgresSchema.refresh(connection, now: 2)
            #expect(schema.notes.count == 4)
            #expect(try connection.count("_martlet.announced") == 2)
            let again = try PostgresSchema.refresh(connection, now: 3)
            #expect(again.notes == [])
            #expect(try connection.count("_martlet.log") == 3)
            let log = try connection.query("SELECT body FROM _martlet.log WHERE revision = 3")
            let set = try SyncCoder.decodeChangeSet(log.binary(0, 0))
            #expect(set.types[0].update == [.integer(7), .integer(8)])
            #expect(set.types[0].entries[0].revision == 1)
            #expect(set.types[0].entries[0].attributes["size"] == .integer(11))
            #expect(set.types[0].entries[0].attributes["title"] == .text("a"))

            try connection.execute(
                "DO $$ DECLARE name text; BEGIN FOR name IN SELECT tgname FROM pg_trigger"
                    + " WHERE tgrelid = 'teams'::regclass AND NOT tgisinternal LOOP"
                    + " EXECUTE format('DROP TRIGGER %I ON teams', name); END LOOP; END $$")
            #expect(try !ExternalTriggers.verify(on: connection, table: schema.tables[0]).isEmpty)
            let mended = try adoption.adopt(.init(name: "club", tables: ["teams"]))
            #expect(mended.steps.contains { $0.contains("adopted already") })
            #expect(try ExternalTriggers.verify(on: connection, table: schema.tables[0]) == [])
        }
    }

    @Test("refuses with every problem at once, and leaves everything as it was")
    func problems() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE SCHEMA other;
                CREATE TABLE good (id bigserial PRIMARY KEY);
                CREATE TABLE other.good (id bigserial PRIMARY KEY);
                CREATE TABLE other.far (id bigserial PRIMARY KEY);
                CREATE TABLE outside (id bigserial PRIMARY KEY);
                CREATE TABLE bound (id bigserial PRIMARY KEY, o bigint REFERENCES outside);
                ALTER TABLE bound ADD FOREIGN KEY (id) REFERENCES outside NOT VALID;
                CREATE TABLE "types" (id bigserial PRIMARY KEY);
                CREATE TABLE shapes (id bigserial PRIMARY KEY, place point, "revision" integer);
                CREATE TABLE parted (id bigserial PRIMARY KEY) PARTITION BY RANGE (id);
                CREATE TABLE part PARTITION OF parted FOR VALUES FROM (1) TO (9);
                CREATE UNLOGGED TABLE fast (id bigserial PRIMARY KEY);
                CREATE TEMPORARY TABLE brief (id bigserial PRIMARY KEY);
                CREATE VIEW seen AS SELECT * FROM good;
                CREATE TABLE guarded (id bigserial PRIMARY KEY);
                ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
                CREATE TABLE low (id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
                    ratio real);
                INSERT INTO low VALUES (-4, 1), (5, 'NaN');
                CREATE TABLE martlet_own (id bigserial PRIMARY KEY);
                CREATE TABLE keyless (x integer);
                """)
            let before = try connection.tableDescriptions()
            let request = PostgresAdoption.Request(
                name: "club",
                tables: [
                    "good", "other.good", "far", "nothing", "bound", "types", "shapes", "parted",
                    "part", "fast", "brief", "seen", "guarded", "low", "martlet_own", "keyless",
                ])
            let error = #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: connection, now: 1).adopt(request)
            }
            let problems = try #require(error).problems.map(\.description)
            for expected in [
                "another table is called “good” too", "name it as other.far",
                "there is no table “nothing”", "“bound” references “outside” (bound_o_fkey)",
                "bound_id_fkey of table “bound” is NOT VALID", "“types” has the name of a word",
                "“place” has the type point", "“revision” has the name of a word",
                "“parted” is partitioned", "“part” is a partition", "“fast” is unlogged",
                "“brief” is temporary", "“seen” is a view", "“guarded” has row-level security",
                "1 rows with NaN", "1 rows whose key is not positive", "“martlet_own” starts with",
                "“keyless” has no primary key",
            ] {
                #expect(problems.contains { $0.contains(expected) }, "\(expected)")
            }
            #expect(problems.count == 20)
            #expect(problems.allSatisfy { $0.contains("; ") })
            #expect(try connection.tableDescriptions() == before)
            #expect(try MartletTables.dataSet(on: connection) == nil)
        }
    }

    @Test("refuses another name, and says which rights are missing")
    func namesAndRights() async throws {
        let database = try await TestDatabase.make()
        let role = "r_" + database.name
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE good (id bigserial PRIMARY KEY);
                CREATE ROLE \(role) LOGIN PASSWORD 'x';
                """)
            let plain = try PostgresConnection(
                connection.address.setting("user", role).setting("password", "x"))
            let error = #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: plain, now: 1).adopt(.init(name: "a", tables: ["good"]))
            }
            let problems = try #require(error).problems.map(\.description)
            #expect(problems.count == 2)
            #expect(problems[0].contains("“good” belongs to the role"))
            #expect(problems[1].contains("GRANT CREATE ON DATABASE \"\(database.name)\""))
            plain.close()
            _ = try PostgresAdoption(on: connection, now: 1).adopt(
                .init(name: "a", tables: ["good"]))
            let other = #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: connection, now: 1).adopt(
                    .init(name: "b", tables: ["good"]))
            }
            #expect(other?.description.contains("use --name a") == true)
            #expect(throws: AdoptionError.self) {
                try PostgresAdoption(on: connection, now: 1).plan(
                    .init(name: "no/name", tables: []))
            }
            #expect(throws: AdoptionError.self) {
                try PostgresRelease(on: connection).plan(name: "b", dropsSurrogates: false)
            }
            try connection.execute("DROP ROLE \(role)")
            let server = try PostgresConnection(
                connection.address, PostgresOptions(name: "martlet writer"))
            let busy = #expect(throws: AdoptionError.self) {
                try PostgresRelease(on: connection).release(name: "a", dropsSurrogates: false)
            }
            #expect(busy?.description.contains("1 servers of the data set run") == true)
            #expect(try MartletTables.dataSet(on: connection) != nil)
            server.close()
        }
    }

    @Test("of a script makes its tables and nothing else, or nothing")
    func initialise() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute("CREATE TABLE mine (id bigserial PRIMARY KEY)")
            let make = PostgresInit(on: connection, now: 1)
            let before = try connection.tableDescriptions()
            for (script, words) in [
                (CatalogueTests.teams + "COMMIT;", "ends the transaction"),
                ("CREATE TABLE a (x integer)", "no primary key"), ("SELECT 1", "makes no table"),
            ] {
                let error = #expect(throws: AdoptionError.self) {
                    try make.make(script, name: "club")
                }
                #expect(error?.description.contains(words) == true)
            }
            #expect(throws: PostgresError.self) { try make.make("CREATE TABL", name: "club") }
            let plan = try make.make(CatalogueTests.teams, name: "club", isDryRun: true)
            #expect(try connection.tableDescriptions() == before)
            let report = try make.make(
                CatalogueTests.teams + "INSERT INTO teams (name) VALUES ('first');", name: "club")
            #expect(plan.steps.count + 1 == report.steps.count)
            let schema = try PostgresSchema.read(connection)
            #expect(schema.schema.types.map(\.name) == ["teams", "players", "marks"])
            #expect(schema.tables.allSatisfy { $0.foreignKeys.allSatisfy(\.isDeferrable) })
            try connection.expectFoldedLog(schema)
            let again = #expect(throws: AdoptionError.self) {
                try make.make("CREATE TABLE b (id bigserial PRIMARY KEY)", name: "club")
            }
            #expect(again?.description.contains("martlet postgres adopt") == true)
        }
    }

    @Test("puts each record behind all that it refers to, and leaves circles together")
    func orderByReference() {
        func address(_ number: Int64) -> RecordAddress { RecordAddress(0, .integer(number)) }
        var order = LinkOrder()
        // 1 needs 2 and 3; 3 needs 2; 4 and 5 need each other, 6 needs them; 7 needs what is not here.
        for (child, parents) in [
            (1, [2, 3]), (2, []), (3, [2]), (4, [5]), (5, [4]), (6, [4]), (7, [99]),
        ] as [(Int64, [Int64])] {
            order.add(address(child), parents: parents.map(address))
        }
        let (free, bound) = order.sorted()
        #expect(free == [2, 7, 3, 1].map(address))
        #expect(bound == [4, 5, 6].map(address))
    }
}
