import Foundation
import MartletServerCore
import SQLiteKit
import Testing

@testable import MartletServer

@Suite("What a server says about a file that it cannot open")
struct OpeningRemedyTests {
    @Test("a unique index that rows violate is named by its columns")
    func uniqueIndexAtOpening() throws {
        let folder = TemporaryFolder()
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        let path = folder.path + "/team.sqlite"
        let table = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"
        func open(_ script: String) throws {
            _ = try EmbeddedBacking(path: path, script: script)
                .open(now: 1, unsendable: UnsendableRows())
        }
        try open(table)
        try Connection(path: path).execute("INSERT INTO teams (name) VALUES ('Ants'), ('Ants')")
        let failure = #expect(throws: ServerFailure.self) {
            try open(table + "CREATE UNIQUE INDEX one_name ON teams(name);")
        }
        #expect(failure?.message.contains("teams.name") == true)
        #expect(failure?.message.contains("Correct the rows") == true)
        #expect(failure?.message.contains("belong") == false)
    }

    @Test("only what may be a matter of rights is called one")
    func remedies() {
        for kind in StorageFault.Kind.allCases {
            let remedy = EmbeddedBacking.remedy(for: StorageFault(kind, ""))
            #expect(remedy.contains("belong") == ![.full, .busy, .refused].contains(kind))
        }
        #expect(EmbeddedBacking.remedy(for: StorageFault(.full, "")).contains("Make room"))
    }
}
