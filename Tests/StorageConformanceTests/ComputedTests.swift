import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("Columns that the database computes")
struct ComputedTests {
    @Test("are never written, and sent with every change", arguments: StorageKind.all)
    func computed(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind,
            """
            CREATE TABLE teams (
                id INTEGER PRIMARY KEY, name TEXT,
                label TEXT GENERATED ALWAYS AS (name || '!') STORED);
            """)
        // PostgreSQL's devices store it like any other column.
        server.isCompared = false
        let made = try server.send(SetText().create("teams", "-1", #""name":"A""#))
        #expect(made.content == "teams create [1] 1@1(name=A label=A!)")
        let changed = try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"B""#))
        #expect(changed.content == "teams update [1] 1@2(name=B label=B!)")
        let written = try server.send(
            SetText().create("teams", "-2", #""name":"A","label":"x""#))
        #expect(written.fate == "invalid")
        #expect(written.message?.contains("computed by the database, never written") == true)
    }
}
