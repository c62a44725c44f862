import MartletModel
import MartletRules
import PostgresKit
import Testing

@testable import MartletPostgres

@Suite("Columns that policies read, and that another program gives other names")
struct ExchangedColumnTests {
    private static func policies(_ schema: Schema) throws -> RulesProgram? {
        try RulesProgram("CREATE POLICY open ON notes USING (note <> 'top');", schema: schema)
    }

    @Test("are refused until an adoption confirms them; others are taken up")
    func exchanged() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            _ = try PostgresInit(on: connection, now: 1).make(
                "CREATE TABLE notes (id bigserial PRIMARY KEY, note text, remark text, old text);",
                name: "team")
            func refresh() throws {
                _ = try PostgresSchema.refresh(connection, now: 2, policies: Self.policies)
            }
            try refresh()
            try connection.execute(
                """
                ALTER TABLE notes DROP COLUMN note; ALTER TABLE notes RENAME remark TO note
                """)
            for _ in 1...2 {
                let error = #expect(throws: AdoptionError.self) { try refresh() }
                #expect(error?.description.contains("is the one that was “remark”") == true)
            }
            _ = try PostgresAdoption(on: connection, now: 3).adopt(
                .init(name: "team", tables: ["notes"]))
            try refresh()
            // No policy reads this one; this one is new.
            try connection.execute(
                """
                ALTER TABLE notes RENAME old TO older; ALTER TABLE notes ADD COLUMN old text;
                ALTER TABLE notes DROP COLUMN note; ALTER TABLE notes ADD COLUMN note text
                """)
            try refresh()
        }
    }
}
