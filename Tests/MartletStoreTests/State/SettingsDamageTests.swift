import Foundation
import MartletStore
import SQLiteKit
import TestFolders
import Testing

@Suite("Settings files that cannot be used")
struct SettingsDamageTests {
    private static let count = SettingKey("count", default: 0)

    private let temporary: TemporaryFolder
    private let path: String

    init() throws {
        temporary = try TemporaryFolder()
        path = temporary.path + "/settings.sqlite"
    }

    private func opening() async -> StoreError? {
        await #expect(throws: StoreError.self) { _ = try await Settings.open(path: path) }
    }

    @Test("a file that is no database is refused and left as it is")
    func notADatabase() async throws {
        let content = Data(repeating: 0x41, count: 10_000)
        try content.write(to: URL(fileURLWithPath: path))
        let error = await opening()
        #expect(error?.kind == .file)
        #expect(error?.remedy == .checkTheStorage)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == content)
    }

    @Test("a file of somebody else's tables is refused and left as it is")
    func otherTables() async throws {
        for sql in [
            "CREATE TABLE teams(id)", "CREATE TABLE settings(name, value, more); CREATE TABLE x(a)",
        ] {
            try? FileManager.default.removeItem(atPath: path)
            try Connection(path: path).execute(sql)
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            let error = await opening()
            #expect(error?.kind == .file)
            #expect(error?.message.contains("another path") == true)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == content)
        }
    }

    @Test("a table of that name with other columns is refused")
    func otherColumns() async throws {
        try Connection(path: path).execute("CREATE TABLE settings(key, content)")
        #expect(await opening()?.kind == .file)
    }

    @Test("a file of a newer app is refused")
    func newer() async throws {
        try Connection(path: path).execute("PRAGMA user_version = 2")
        let error = await opening()
        #expect(error?.kind == .newer)
        #expect(error?.remedy == .updateTheApp)
    }

    @Test("a damaged page is refused when it is read, and the rest of the app goes on")
    func damagedPage() async throws {
        let settings = try await Settings.open(path: path)
        let long = SettingKey("long", default: "")
        try await settings.set(long, to: String(repeating: "x", count: 50_000))
        try await settings.set(Self.count, to: 1)
        await settings.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        // The second page holds the rows.
        try file.seek(toOffset: 4096)
        try file.write(contentsOf: Data(repeating: 0xff, count: 4096))
        try file.close()
        let error = await #expect(throws: StoreError.self) {
            _ = try await Settings.open(path: path).value(Self.count)
        }
        #expect(error?.kind == .file)
    }

    @Test("values that are not JSON, not UTF-8 or not text are refused, setting by setting")
    func damagedValues() async throws {
        let settings = try await Settings.open(path: path)
        try await settings.set(SettingKey("good", default: 0), to: 5)
        let other = try Connection(path: path)
        for value in ["''", "'{'", "x'ff00'", "CAST(x'22ff22' AS TEXT)", "'1 2'", "'null'", "1.5"] {
            try other.execute("INSERT OR REPLACE INTO settings VALUES ('count', \(value))")
            let error = await #expect(throws: StoreError.self) {
                _ = try await settings.value(Self.count)
            }
            #expect(error?.kind == .value)
            #expect(try await settings.value(SettingKey("good", default: 0)) == 5)
        }
        // Repaired or taken for text, these would pass for values.
        let name = SettingKey("name", default: "")
        for value in ["CAST(x'22ff22' AS TEXT)", "x'224122'"] {
            try other.execute("INSERT OR REPLACE INTO settings VALUES ('name', \(value))")
            let error = await #expect(throws: StoreError.self) {
                _ = try await settings.value(name)
            }
            #expect(error?.kind == .value)
        }
        try await settings.remove(Self.count)
        #expect(try await settings.value(Self.count) == 0)
    }

    @Test("paths where no file can be are refused")
    func paths() async throws {
        for bad in ["", ":memory:", "a\u{0}b", temporary.path, temporary.path + "/none/x.sqlite"] {
            await #expect(throws: StoreError.self) { _ = try await Settings.open(path: bad) }
        }
    }

    @Test("a file another process keeps locked is busy, and good afterwards")
    func lockedSettings() async throws {
        var options = SettingsOptions()
        options.busyTimeout = .milliseconds(1)
        let settings = try await Settings.open(path: path, options: options)
        try await settings.set(Self.count, to: 1)
        let other = try Connection(path: path)
        try other.begin()
        let error = await #expect(throws: StoreError.self) {
            try await settings.set(Self.count, to: 2)
        }
        #expect(error?.kind == .busy)
        #expect(error?.remedy == .retry)
        // Reading goes on meanwhile.
        #expect(try await settings.value(Self.count) == 1)
        other.rollback()
        try await settings.set(Self.count, to: 2)
        #expect(try await settings.value(Self.count) == 2)
    }
}
