import Martlet
import MartletModel
import MartletStore
import MartletTransfer
import TestFolders
import Testing

@Suite("Importer")
struct ImporterTests {
    private static let ddl = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL,
            team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            captain_id INTEGER REFERENCES players(id) ON DELETE SET NULL,
            active BOOLEAN NOT NULL DEFAULT 1, height REAL);
        CREATE TABLE tags (code TEXT PRIMARY KEY, label TEXT, player_id INTEGER REFERENCES players(id));
        """

    private static let teams = "id,name\n7,Falcons\n8,\"Otters, \"\"B\"\"\"\n"
    private static let players = """
        id,team_id,name,captain_id,active,height
        1,8,Ines,2,no,1.5
        2,7,Omar,,,
        3,8,"",2,yes,2
        """
    private static let tags = "code,label,player_id\nx,,3\ny,\"\",\n"

    private func client(_ folder: TemporaryFolder) async throws -> MartletClient {
        try await MartletClient.open(path: folder.path + "/device.sqlite", schema: Self.ddl)
    }

    private func importer(
        _ client: MartletClient, setSize: Int = 2, again: Bool = false
    ) -> Importer {
        var options = ImportOptions()
        options.setSize = setSize
        options.again = again
        return Importer(client: client, options: options)
    }

    private func sources(_ folder: TemporaryFolder) throws -> [CSVSource] {
        try CSVFile.find([folder.path]).map { CSVSource($0) }
    }

    private func fill(_ folder: TemporaryFolder) throws {
        try folder.write("teams.csv", Self.teams)
        try folder.write("players.csv.gz", Self.players)
        try folder.write("tags.csv", Self.tags)
    }

    /// Every record in words, references by name, so that ids do not matter.
    private func world(_ client: MartletClient) async throws -> [String] {
        let rows = try await client.read { context in
            try context.rows(
                """
                SELECT p.name || '/' || t.name || '/' || ifnull(c.name, '-') || '/' || p.active
                    || '/' || ifnull(p.height, '-')
                FROM players p JOIN teams t ON t.id = p.team_id
                LEFT JOIN players c ON c.id = p.captain_id
                UNION ALL
                SELECT g.code || '=' || ifnull(quote(g.label), '-') || '@' || ifnull(p.name, '-')
                FROM tags g LEFT JOIN players p ON p.id = g.player_id
                """)
        }
        return rows.compactMap { row in
            guard case .text(let text)? = row.values.first else { return nil }
            return text
        }.sorted()
    }

    private static let expected = [
        "/Otters, \"B\"/Omar/1/2.0", "Ines/Otters, \"B\"/Omar/0/1.5", "Omar/Falcons/-/1/-",
        "x=NULL@", "y=''@-",
    ]

    private func schema(_ client: MartletClient) async throws -> Schema {
        try await client.read { $0.schema }
    }

    @Test("references hold, forward ones and those of text keys too; ids are the device's own")
    func referencesInFiles() async throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        let client = try await client(folder)
        let report = try await importer(client)
            .run(try sources(folder), schema: try await schema(client))
        #expect(report.records == 7)
        #expect(report.skipped == 0)
        // Teams 1, players 2, tags 1, and one that fills in the forward reference.
        #expect(report.changeSets == 5)
        #expect(try await world(client) == Self.expected)
        let positive = try await client.read {
            try $0.rows(
                "SELECT id FROM teams WHERE id > 0 UNION SELECT id FROM players WHERE id > 0")
        }
        #expect(positive.isEmpty)
        #expect(try await client.status().outbox == 5)
        await client.close()
    }

    @Test("an import stopped after any change set goes on where it was", arguments: 1...4)
    func resumes(sets: Int) async throws {
        struct Stopped: Error {}
        let folder = try TemporaryFolder()
        try fill(folder)
        let first = try await client(folder)
        await #expect(throws: Stopped.self) {
            try await importer(first).run(
                try sources(folder), schema: try await schema(first),
                afterSet: { if $0 == sets { throw Stopped() } })
        }
        await first.close()
        let second = try await client(folder)
        let report = try await importer(second)
            .run(try sources(folder), schema: try await schema(second))
        #expect(report.records + report.skipped == 7)
        #expect(report.skipped >= sets)
        #expect(try await world(second) == Self.expected)
        // Done is done.
        let third = try await importer(second)
            .run(try sources(folder), schema: try await schema(second))
        #expect(third.records == 0)
        #expect(third.changeSets == 0)
        #expect(try await world(second) == Self.expected)
        await second.close()
    }

    @Test("another file of the same name is refused, and taken with `again`")
    func changedFile() async throws {
        let folder = try TemporaryFolder()
        try folder.write("teams.csv", Self.teams)
        let client = try await client(folder)
        let schema = try await schema(client)
        _ = try await importer(client).run(try sources(folder), schema: schema)
        try folder.write("teams.csv", "id,name\n7,Herons\n")
        await #expect(throws: TransferError.self) {
            try await importer(client).run(try sources(folder), schema: schema)
        }
        let report = try await importer(client, again: true)
            .run(try sources(folder), schema: schema)
        #expect(report.records == 1)
        let count = try await client.read { try $0.rows("SELECT count(*) FROM teams") }
        #expect(count.first?.values == [.integer(3)])
        await client.close()
    }

    @Test("nothing is written when the last line of the last file is bad")
    func allOrNothing() async throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        try folder.write("tags.csv", Self.tags + "z,,99\n")
        let client = try await client(folder)
        let fault = await #expect(throws: CSVFault.self) {
            try await importer(client)
                .run(try sources(folder), schema: try await schema(client))
        }
        #expect(fault?.line == 4)
        #expect(try await client.status().outbox == 0)
        #expect(try await world(client).isEmpty)
        await client.close()
    }

    /// Imports teams in change sets of two; SQLite refuses the fifth, which is on line 7.
    private func stop(_ client: MartletClient, _ folder: TemporaryFolder) async throws {
        try folder.write("teams.csv", "id,name\n1,A\n2,\"B\nb\"\n3,C\n4,D\n5,B5\n6,F\n")
        let error = await #expect(throws: StoreError.self) {
            try await importer(client).run(
                try sources(folder), schema: try await schema(client))
        }
        #expect(error?.kind == .constraint)
        let message = try #require(error?.message)
        #expect(message.hasPrefix("teams.csv, line 7: "), "\(message)")
        #expect(
            message.hasSuffix(
                """
                 Of the file's 6 records, the first 4 are saved; change sets that are queued: 2. Correct the \
                file from line 7 on, and run the import again: it continues there.
                """), "\(message)")
        #expect(try await client.status().outbox == 2)
    }

    @Test(
        "a refused record is named with its line, and the import continues with the corrected file")
    func refusedRecord() async throws {
        let folder = try TemporaryFolder()
        let client = try await MartletClient.open(
            path: folder.path + "/device.sqlite",
            schema: "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'B5'))")
        try await stop(client, folder)
        let schema = try await schema(client)
        // A record that is saved has changed.
        try folder.write("teams.csv", "id,name\n1,A\n2,\"B\nb\"\n3,C\n4,DD\n5,E\n6,F\n")
        let other = await #expect(throws: TransferError.self) {
            try await importer(client).run(try sources(folder), schema: schema)
        }
        #expect(other?.message.contains("an import of another teams.csv is not finished") == true)
        try folder.write("teams.csv", "id,name\n1,A\n2,\"B\nb\"\n3,C\n4,D\n5,E\n6,F\n7,G\n")
        let report = try await importer(client).run(try sources(folder), schema: schema)
        #expect(report.records == 3 && report.skipped == 4)
        let again = try await importer(client).run(try sources(folder), schema: schema)
        #expect(again.records == 0 && again.skipped == 7)
        let names = try await client.read {
            try $0.rows(
                """
                SELECT group_concat(name, '') FROM (SELECT name FROM teams ORDER BY name)
                WHERE length(name) = 1
                """)
        }
        #expect(names.first?.values == [.text("ACDEFG")])
        // It is done, so other records are another file.
        try folder.write("teams.csv", "id,name\n1,A\n2,\"B\nb\"\n3,C\n4,D\n5,E\n6,F\n7,G\n8,H\n")
        await #expect(throws: TransferError.self) {
            try await importer(client).run(try sources(folder), schema: schema)
        }
        await client.close()
    }

    @Test("a later file refers to an earlier import, and to records that were not imported")
    func laterFiles() async throws {
        let folder = try TemporaryFolder()
        try folder.write("teams.csv", Self.teams)
        let client = try await client(folder)
        let schema = try await schema(client)
        _ = try await importer(client).run(try sources(folder), schema: schema)
        let other = try TemporaryFolder()
        try other.write("players.csv", Self.players)
        _ = try await importer(client).run(try sources(other), schema: schema)
        #expect(try await world(client).count == 3)

        let own = try await client.write { try $0.insert("teams", ["name": .text("Own")]) }
        let fresh = try TemporaryFolder()
        let second = try await self.client(fresh)
        let id = try await second.write { try $0.insert("teams", ["name": .text("Own")]) }
        try fresh.write("players.csv", "team_id,name\n\(id),Noor\n")
        let files = try CSVFile.find([fresh.path + "/players.csv"]).map { CSVSource($0) }
        _ = try await importer(second).run(files, schema: schema)
        #expect(try await world(second) == ["Noor/Own/-/1/-"])
        #expect(own.isTemporary)
        await second.close()
        await client.close()
    }

    @Test("what is exported is imported elsewhere as it was")
    func roundTripOfExport() async throws {
        let folder = try TemporaryFolder()
        try fill(folder)
        let client = try await client(folder)
        let schema = try await schema(client)
        _ = try await importer(client).run(try sources(folder), schema: schema)
        let out = try TemporaryFolder()
        let tables = try await Exporter(client: client).run(schema: schema, folder: out.url)
        #expect(tables.map(\.recordCount).reduce(0, +) == 7)
        let copyFolder = try TemporaryFolder()
        let copy = try await self.client(copyFolder)
        let report = try await importer(copy).run(try sources(out), schema: schema)
        #expect(report.records == 7)
        #expect(try await world(copy) == Self.expected)
        await #expect(throws: TransferError.self) {
            try await Exporter(client: copy).run(
                schema: schema, types: ["shoes"], folder: out.url)
        }
        await copy.close()
        await client.close()
    }

    @Test(
        "a reference that comes later and is passed over stops the import; one of a deleted record does not"
    )
    func passedOverReference() async throws {
        let folder = try TemporaryFolder()
        try folder.write("pairs.csv", "id,a_id,b_id\n1,2,2\n2,2,2\n3,,\n")
        let client = try await MartletClient.open(
            path: folder.path + "/device.sqlite",
            schema: """
                CREATE TABLE pairs(id INTEGER PRIMARY KEY, a_id INTEGER REFERENCES pairs,
                    b_id INTEGER REFERENCES pairs, UNIQUE(a_id, b_id) ON CONFLICT IGNORE)
                """)
        let sources = try sources(folder)
        let schema = try await schema(client)
        let error = await #expect(throws: StoreError.self) {
            try await importer(client, setSize: 1).run(sources, schema: schema)
        }
        #expect(error?.kind == .constraint)
        #expect(error?.message.contains("All records are saved, without this reference") == true)
        // The import goes on when the record in the way is gone, and fills in nothing of that one.
        try await client.write { context in
            let first = try context.rows("SELECT max(id) FROM pairs")[0].values[0]
            #expect(try context.delete("pairs", try RecordID(sqlValue: first)))
        }
        let report = try await importer(client, setSize: 1).run(sources, schema: schema)
        #expect(report.records == 0)
        let filled = try await client.read {
            try $0.rows("SELECT count(*) FROM pairs WHERE a_id = id AND b_id = id")
        }
        #expect(filled.first?.values == [.integer(1)])
        await client.close()
    }
}
