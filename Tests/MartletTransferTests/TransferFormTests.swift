import Foundation
import Martlet
import MartletModel
import MartletStore
import MartletTransfer
import TestFolders
import Testing

/// Tests the forms in which export writes values, and those that import takes.
@Suite("Forms of values")
struct TransferFormTests {
    private static let ddl = """
        CREATE TABLE tags (code TEXT PRIMARY KEY, label TEXT);
        CREATE TABLE things (
            id INTEGER PRIMARY KEY, tag TEXT REFERENCES tags(code), data BLOB, price NUMERIC,
            anything, flag BOOLEAN, size REAL, note TEXT);
        """

    private func client(_ folder: TemporaryFolder) async throws -> MartletClient {
        try await MartletClient.open(path: folder.path + "/device.sqlite", schema: Self.ddl)
    }

    private func load(
        _ folder: TemporaryFolder, _ client: MartletClient
    ) async throws -> ImportReport {
        let files = try CSVFile.find([folder.path]).map { CSVSource($0) }
        return try await Importer(client: client)
            .run(files, schema: try await client.read { $0.schema })
    }

    @Test(
        "what the server would refuse is refused before anything is written",
        arguments: [
            ("data", "AB=="), ("data", "AAB="), ("data", "AQI"), ("data", "A Q="),
            ("price", "+5"), ("price", ".5"), ("price", "5."), ("price", "1e3"),
            ("price", "123456789012345678.5"), ("size", "0x10"), ("size", "inf"),
        ])
    func refusesBeforeWriting(column: String, text: String) async throws {
        let folder = try TemporaryFolder()
        let client = try await client(folder)
        try folder.write("things.csv", "id,note,\(column)\n1,good,\n2,bad,\(text)\n")
        let fault = await #expect(throws: CSVFault.self) { try await load(folder, client) }
        #expect(fault?.line == 3)
        #expect(fault?.column == column)
        let count = try await client.read { try $0.rows("SELECT count(*) FROM things") }
        #expect(count.first?.values == [.integer(0)])
        await client.close()
    }

    @Test(
        "a list of attributes is checked like named ones, in new records and in changes",
        arguments: [
            ("data", SQLValue.text("AA==")), ("note", .integer(5)), ("size", .text("1.5")),
        ])
    func attributes(name: String, value: SQLValue) async throws {
        let folder = try TemporaryFolder()
        let client = try await client(folder)
        let id = try await client.write { try $0.insert("things", ["note": .text("x")]) }
        let bad = RecordValues(names: [name], values: [value])
        let first = await #expect(throws: StoreError.self) {
            try await client.write { try $0.insert("things", bad) }
        }
        #expect(first?.kind == .value)
        let second = await #expect(throws: StoreError.self) {
            try await client.write { try $0.update("things", id, bad) }
        }
        #expect(second?.kind == .value)
        let good = RecordValues(names: ["data"], values: [.blob([0])])
        try await client.write { try $0.update("things", id, good) }
        let row = try await client.read { try $0.rows("SELECT data FROM things") }
        #expect(row.first?.values == [.blob([0])])
        await client.close()
    }

    @Test("numbers, texts and null keep their types on the way out and in")
    func roundTripOfTexts() async throws {
        let folder = try TemporaryFolder()
        let client = try await client(folder)
        try await client.write { context in
            for value: SQLValue in [
                .integer(5), .text("5"), .real(1.5), .text("1.5"), .text("007"), .text(""), .null,
                .text("a,b"), .real(1e22), .text("inf"), .integer(.max),
            ] {
                try context.insert(
                    "things", ["anything": value, "price": .text("10000000000000000000000")])
            }
            try context.insert(
                "things", ["price": .text("-0.000001"), "data": .blob([1, 2]), "note": .text("")])
            try context.insert(
                "things", ["flag": false, "size": .real(1e-9), "data": .blob([])])
        }
        let out = try TemporaryFolder()
        let schema = try await client.read { $0.schema }
        _ = try await Exporter(client: client).run(
            schema: schema, types: ["things"], folder: out.url)
        let fresh = try TemporaryFolder()
        let copy = try await self.client(fresh)
        _ = try await load(out, copy)
        let query = """
            SELECT quote(data), quote(price), quote(anything), flag, quote(size), quote(note)
            FROM things ORDER BY 3, 2, 1, 4, 5, 6
            """
        let before = try await client.read { try $0.rows(query) }.map(\.values)
        #expect(before.count == 13)
        #expect(try await copy.read { try $0.rows(query) }.map(\.values) == before)
        await client.close()
        await copy.close()
    }

    @Test("text keys of digits are texts, in files that refer to each other and to what is there")
    func textKeysOfDigits() async throws {
        let folder = try TemporaryFolder()
        let client = try await client(folder)
        try await client.write { try $0.insert("tags", ["label": .text("old")], id: "42") }
        try folder.write("things.csv", "id,tag\n1,42\n")
        #expect(try await load(folder, client).records == 1)
        let other = try TemporaryFolder()
        try other.write("tags.csv", "code,label\n7,new\n")
        #expect(try await load(other, client).records == 1)
        let third = try TemporaryFolder()
        try third.write("things.csv", "id,tag\n2,7\n")
        let files = try CSVFile.find([third.path]).map { CSVSource($0) }
        var options = ImportOptions()
        options.again = true
        _ = try await Importer(client: client, options: options)
            .run(files, schema: try await client.read { $0.schema })
        let rows = try await client.read {
            try $0.rows("SELECT label FROM things JOIN tags ON code = tag ORDER BY label")
        }
        #expect(rows.map(\.values) == [[.text("new")], [.text("old")]])
        await client.close()
    }

    @Test("a change set ends when its records are many bytes")
    func sizes() async throws {
        let folder = try TemporaryFolder()
        let client = try await client(folder)
        let long = String(repeating: "x", count: 3 << 20)
        try folder.write("things.csv", "id,note\n" + (1...9).map { "\($0),\(long)\n" }.joined())
        let report = try await load(folder, client)
        #expect(report.records == 9)
        #expect(report.changeSets == 5)
        await client.close()
    }

    @Test("no type's name leads an export out of its folder")
    func paths() async throws {
        let folder = try TemporaryFolder()
        let client = try await MartletClient.open(
            path: folder.path + "/device.sqlite",
            schema: """
                CREATE TABLE "../outside" (id INTEGER PRIMARY KEY, name TEXT);
                CREATE TABLE inside (id INTEGER PRIMARY KEY, name TEXT);
                """)
        let out = folder.url.appendingPathComponent("out/deep")
        let schema = try await client.read { $0.schema }
        let error = await #expect(throws: TransferError.self) {
            try await Exporter(client: client).run(schema: schema, folder: out)
        }
        #expect(error?.message.contains("../outside") == true)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/out"))
        let tables = try await Exporter(client: client).run(
            schema: schema, types: ["inside"], folder: out)
        #expect(tables.map(\.file) == ["inside.csv"])
        await client.close()
    }
}
