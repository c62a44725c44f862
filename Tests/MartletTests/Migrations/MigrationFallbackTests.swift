import SQLiteFaults
import SQLiteKit
import Testing

@testable import MartletStore

@Suite("When a version fails")
struct MigrationFallbackTests {
    private static let broken = Migration(6, "broken") { context in
        try context.dropTable("nothing")
    }

    private func file(_ name: String) throws -> (PlainFile, before: String, after: String) {
        let file = try PlainFile("fallback-\(name)")
        try file.migrate([Versions.teams])
        let reached = try PlainFile("fallback-\(name)-reached")
        try reached.migrate(Versions.all)
        return (file, try file.content(), try reached.content())
    }

    @Test("the file can stay on the old schema, for reading")
    func readOnly() throws {
        let (file, _, after) = try file("read-only")
        let outcome = try file.migrate(Versions.all + [Self.broken], fallback: .readOnly)
        guard case .readOnly(at: 5, let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure.kind == .unknown)
        #expect(outcome.failure == failure)
        #expect(try file.content() == after)
    }

    @Test("the file can go back to the copy made before the first version")
    func restoredBeforeMigration() throws {
        let (file, before, _) = try file("restored")
        let outcome = try file.migrate(Versions.all + [Self.broken], fallback: .restoreCopy)
        guard case .restored(to: 1, let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure.message.contains("Version 6 (broken)"))
        #expect(try file.content() == before)
        #expect(!file.disk.paths.contains { $0.contains("copy") })
        #expect(try file.migrate(Versions.all, fallback: .restoreCopy) == .migrated(from: 1, to: 5))
        #expect(!file.disk.paths.contains { $0.contains("copy") })
    }

    @Test("a copy a crash left behind is removed")
    func leftOver() throws {
        let (file, _, _) = try file("left-over")
        file.disk.install([1, 2, 3], at: PlainFile.path + "-martlet-copy")
        #expect(try file.migrate(Versions.all, fallback: .restoreCopy) == .migrated(from: 1, to: 5))
        #expect(!file.disk.paths.contains { $0.contains("copy") })
        for suffix in ["", "-wal", "-journal"] {
            file.disk.install([1, 2, 3], at: PlainFile.path + "-martlet-copy\(suffix)")
            #expect(try file.migrate(Versions.all) == .upToDate)
        }
        #expect(!file.disk.paths.contains { $0.contains("copy") })
    }

    @Test("the copy is not put back over what another program has written since")
    func writtenMeanwhile() throws {
        let (file, _, _) = try file("meanwhile")
        let other = try file.other()
        nonisolated(unsafe) let writer = other
        let outcome = try file.migrate(
            Versions.all + [Self.broken], fallback: .restoreCopy,
            progress: { step in
                guard step.version == 5, step.done == 1 else { return }
                try? writer.execute("INSERT INTO teams VALUES (2, 'Hawks', 'Rome')")
            })
        guard case .readOnly(at: 5, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(try file.strings("SELECT name FROM teams") == ["Falcons", "Hawks"])
    }

    @Test("refetching is left to the client; a full disk is not a reason for it")
    func refetchByClient() throws {
        let (file, _, after) = try file("anew")
        let outcome = try file.migrate(Versions.all + [Self.broken], fallback: .refetch)
        guard case .refetching(let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure.kind == .unknown)
        #expect(try file.content() == after)
        let more = Migration(7, "more") { try $0.addColumn("a TEXT", to: "teams") }
        file.disk.failAfter(operations: 1, kind: .full, lasting: true)
        let error = #expect(throws: StoreError.self) {
            try file.migrate(Versions.all + [more], fallback: .refetch)
        }
        #expect(error?.kind == .diskFull)
        #expect(error?.remedy == .freeSpace)
        file.disk.heal()
        #expect(try file.content() == after)
        #expect(try file.migrate(Versions.all + [more]) == .migrated(from: 5, to: 7))
    }

    @Test("a full disk while the copy is made leaves the file as it was")
    func noRoomForTheCopy() throws {
        let (file, before, _) = try file("no-room")
        file.disk.failAfter(operations: 2, kind: .full, lasting: true)
        let outcome = try file.migrate(Versions.all, fallback: .restoreCopy)
        file.disk.heal()
        guard case .restored(to: 1, let failure) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(failure.kind == .diskFull)
        #expect(try file.content() == before)
    }

    @Test(
        "a new file has nothing to fall back to",
        arguments: [
            MigrationFallback.readOnly, .restoreCopy, .refetch,
        ])
    func newFile(fallback: MigrationFallback) throws {
        let file = try PlainFile("fallback-new-\(fallback)")
        #expect(throws: StoreError.self) { try file.migrate([Self.broken], fallback: fallback) }
        #expect(try file.content() == "")
    }

    @Test("a locked file is no failure of a version")
    func lockedMigration() throws {
        let (file, before, _) = try file("locked")
        let other = try file.other()
        try other.begin()
        let error = #expect(throws: StoreError.self) {
            try file.migrate(Versions.all, fallback: .readOnly)
        }
        #expect(error?.kind == .busy)
        #expect(error?.remedy == .retry)
        other.rollback()
        #expect(try file.content() == before)
    }
}
