import MartletModel
import MartletTransfer
import TestFolders
import Testing

@Suite("Import plan")
struct ImportPlanTests {
    static let schema = Schema(types: [
        EntityType(
            name: "players", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "name", kind: .text, isRequired: true),
                Attribute(name: "team_id", kind: .integer, isRequired: true),
                Attribute(name: "captain_id", kind: .integer),
                Attribute(name: "height", kind: .real),
                Attribute(name: "active", kind: .boolean, isRequired: true, hasDefault: true),
            ],
            references: [
                Reference(attribute: "team_id", target: "teams", onDelete: .cascade),
                Reference(attribute: "captain_id", target: "players", onDelete: .setNull),
            ]),
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "name", kind: .text, isRequired: true)]),
    ])

    private func plan(
        _ files: [String: String], known: [String: Set<RecordID>] = [:],
        exists: (String, RecordID) throws -> Bool = { _, _ in false }
    ) throws -> ImportPlan {
        let folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(name, text) }
        return try ImportPlan(
            sources: try CSVFile.find([folder.path]).map { CSVSource($0) }, schema: Self.schema,
            known: known, exists: exists)
    }

    private let teams = "id,name\n7,Falcons\n8,Otters\n"

    @Test("puts parents first, counts, and reads compressed files as plain ones")
    func orders() throws {
        let plain = try plan([
            "teams.csv": teams,
            "players.csv": "id,team_id,name,captain_id\n1,8,Ines,2\n2,7,Omar,\n",
        ])
        #expect(plain.tables.map(\.type.name) == ["teams", "players"])
        #expect(plain.recordCount == 4)
        let compressed = try plan([
            "teams.csv.gz": teams,
            "players.csv.gz": "id,team_id,name,captain_id\n1,8,Ines,2\n2,7,Omar,\n",
        ])
        #expect(plain.tables.map(\.fingerprint) == compressed.tables.map(\.fingerprint))
        let other = try plan(["teams.csv": "id,name\n7,Falcons\n8,Herons\n"])
        #expect(other.tables[0].fingerprint != plain.tables[0].fingerprint)
    }

    @Test(
        "refuses what the schema does not take, naming file, line and column",
        arguments: [
            ("id,team_id,name\n1,9,Ines\n", 2, "team_id"),
            ("id,team_id,name\n1,7,Ines\n\n1,7,Omar\n", 4, "id"),
            ("id,team_id,name\n1,7,\n", 2, "name"),
            ("id,team_id,name\n,7,Ines\n", 2, "id"),
            ("id,team_id,name\n1,,Ines\n", 2, "team_id"),
            ("id,team_id,name,height\n1,7,Ines,tall\n", 2, "height"),
            ("id,team_id,name,height\n1,7,Ines,nan\n", 2, "height"),
            ("id,team_id,name,active\n1,7,Ines,maybe\n", 2, "active"),
            ("id,team_id,name,captain_id\n1,7,Ines,5\n", 2, "captain_id"),
            ("id,team_id,name,shoe\n", 1, "shoe"),
            ("id,team_id,name,name\n", 1, "name"),
            ("id,team_id\n", 1, "name"),
        ])
    func refusesUnfitFiles(players: String, line: Int, column: String) throws {
        let fault = #expect(throws: CSVFault.self) {
            try plan(["teams.csv": teams, "players.csv": players])
        }
        #expect(fault?.file == "players.csv")
        #expect(fault?.line == line)
        #expect(fault?.column == column)
    }

    @Test("accepts an empty text in quotes, a default for an empty field, and texts as given ids")
    func accepts() throws {
        let plan = try plan([
            "teams.csv": "id,name\nt1,\"\"\n",
            "players.csv": "id,team_id,name,active\np1,t1,Ines,\np2,t1,Omar,no\n",
        ])
        #expect(plan.recordCount == 3)
    }

    @Test("a reference may point at an earlier import, or at a record where nothing is imported")
    func earlierRecords() throws {
        let players = ["players.csv": "team_id,name\n7,Ines\n"]
        #expect(throws: CSVFault.self) { try plan(players) }
        #expect(try plan(players, known: ["teams": [.integer(7)]]).recordCount == 1)
        #expect(throws: CSVFault.self) { try plan(players, known: ["teams": [.integer(8)]]) }
        let found = try plan(players) { $0 == "teams" && $1 == .integer(7) }
        #expect(found.recordCount == 1)
    }

    @Test("refuses files named after no type, doubled types, and missing files")
    func refusesFiles() throws {
        #expect(throws: TransferError.self) { try plan(["shoes.csv": "id\n1\n"]) }
        #expect(throws: TransferError.self) {
            try plan(["teams.csv": teams, "teams.csv.gz": teams])
        }
        #expect(throws: TransferError.self) { try CSVFile.find(["there-is-no-such.csv"]) }
    }

    @Test("finds files under all letters of their names", arguments: ["marked", "\u{FEFF}marked"])
    func namesOfFilesInAnyCase(name: String) throws {
        let folder = try TemporaryFolder()
        try folder.write("\(name).csv", "id\n1\n")
        for path in [folder.path, folder.path + "/\(name).csv"] {
            let file = try #require(CSVFile.find([path]).first)
            #expect(Array(file.type.utf8) == Array(name.utf8))
            #expect(Array(file.name.utf8) == Array("\(name).csv".utf8))
        }
    }

    @Test("refuses a compressed file that is cut or is not compressed at all")
    func damagedGzip() throws {
        let folder = try TemporaryFolder()
        let long = "id,name\n" + (1...2_000).map { "\($0),Team \($0 &* 7_919)\n" }.joined()
        try folder.write("teams.csv.gz", long)
        let file = try #require(CSVFile.find([folder.path]).first)
        #expect(
            try ImportPlan(sources: [CSVSource(file)], schema: Self.schema).recordCount == 2_000)
        let whole = try #require(try? folder.bytes("teams.csv.gz"))
        try folder.write("teams.csv.gz", bytes: Array(whole.dropLast(9)))
        #expect(throws: (any Error).self) {
            try ImportPlan(sources: [CSVSource(file)], schema: Self.schema)
        }
        try folder.write("teams.csv.gz", bytes: [UInt8](teams.utf8))
        #expect(throws: (any Error).self) {
            try ImportPlan(sources: [CSVSource(file)], schema: Self.schema)
        }
        // Two members in a row are one file.
        try folder.write("teams.csv.gz", bytes: whole + Gzipped.of("9001,Late\n"))
        #expect(
            try ImportPlan(sources: [CSVSource(file)], schema: Self.schema).recordCount == 2_001)
    }
}
