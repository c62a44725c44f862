import MartletTransfer
import TestFolders
import Testing

@Suite("Schema inference")
struct SchemaInferenceTests {
    private func infer(_ files: [String: String]) throws -> SchemaInference {
        let folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(name, text) }
        return try SchemaInference(try CSVFile.find([folder.path]))
    }

    @Test("finds kinds and references")
    func infers() throws {
        let found = try infer([
            "countries.csv": "id,name\n1,A\n2,B\n",
            "grands_prix.csv": "id,name,country_id\n4,x,1\n",
            "races.csv": """
            id,grand_prix_id,birth_country_id,year,length,zip,note,odd_id,country_id
            1,4,,1999,3.5,01234,,1,9
            2,4,2,2000,4,55555,,2,1
            """,
        ])
        #expect(
            found.script == """
                CREATE TABLE "countries" (
                    id INTEGER PRIMARY KEY,
                    "name" TEXT
                );
                CREATE TABLE "grands_prix" (
                    id INTEGER PRIMARY KEY,
                    "name" TEXT,
                    "country_id" INTEGER REFERENCES "countries"(id)
                );
                CREATE INDEX "grands_prix_by_country_id" ON "grands_prix"("country_id");
                CREATE TABLE "races" (
                    id INTEGER PRIMARY KEY,
                    "grand_prix_id" INTEGER REFERENCES "grands_prix"(id),
                    "birth_country_id" INTEGER REFERENCES "countries"(id),
                    "year" INTEGER,
                    "length" REAL,
                    "zip" TEXT,
                    "note" TEXT,
                    "odd_id" INTEGER,
                    "country_id" INTEGER
                );
                CREATE INDEX "races_by_grand_prix_id" ON "races"("grand_prix_id");
                CREATE INDEX "races_by_birth_country_id" ON "races"("birth_country_id");

                """)
        // One of its values is no country's id, and that is said.
        #expect(found.tables[2].columns.last?.refused == "countries")
        #expect(found.tables.map(\.recordCount) == [2, 1, 2])
    }

    @Test("a column is REAL only if no digit of its values is lost")
    func keepsDigits() throws {
        let found = try infer([
            "a.csv": """
            id,long,precise,mixed,exact,trailing,small,big
            1,12345678901234567890,3.14159265358979312,9007199254740993,0.1,1.50,-0.5,9007199254740993
            2,1,1.5,1.5,-12345.678,2,0.000001,7
            """
        ])
        #expect(
            found.tables[0].columns.map { "\($0.name) \($0.kind)" } == [
                "long TEXT", "precise TEXT", "mixed TEXT", "exact REAL", "trailing REAL",
                "small REAL", "big INTEGER",
            ])
    }

    @Test("refuses names the wire reserves, doubled ids and empty files")
    func refusesBadNames() {
        #expect(throws: TransferError.self) { try infer(["types.csv": "id\n1\n"]) }
        #expect(throws: CSVFault.self) { try infer(["a.csv": "id,revision\n1,2\n"]) }
        #expect(throws: CSVFault.self) { try infer(["a.csv": "id\n1\n1\n"]) }
        #expect(throws: CSVFault.self) { try infer(["a.csv": ""]) }
    }
}
