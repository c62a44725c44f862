import Foundation
import MartletStore
import SQLiteKit
import Synchronization
import TestFolders
import Testing

@Suite("Values of a setting", .timeLimit(.minutes(5)))
struct SettingValuesTests {
    private static let team = SettingKey("team", default: "Falcons")
    private static let count = SettingKey("count", default: 0)

    private let temporary: TemporaryFolder
    private let path: String

    init() throws {
        temporary = try TemporaryFolder()
        path = temporary.path + "/settings.sqlite"
    }

    @Test("the first value comes at once, then each new one, and no value twice in a row")
    func valuesOfSetting() async throws {
        let settings = try await Settings.open(path: path)
        var values = settings.values(Self.team).makeAsyncIterator()
        #expect(try await values.next() == "Falcons")
        try await settings.set(Self.team, to: "Hawks")
        #expect(try await values.next() == "Hawks")
        // The same again, and another setting: nobody hears of these.
        try await settings.set(Self.team, to: "Hawks")
        try await settings.set(Self.count, to: 1)
        let later = Task {
            // Each behind what the iterator asks: it stumbles over the value handed out already.
            for _ in 0..<10 { _ = try await settings.value(Self.count) }
            try await settings.remove(Self.team)
        }
        #expect(try await values.next() == "Falcons")
        try await later.value
        try await settings.update(Self.team) { $0 += "!" }
        #expect(try await values.next() == "Falcons!")
    }

    @Test("who is slow gets the newest value")
    func coalesced() async throws {
        let settings = try await Settings.open(path: path)
        var values = settings.values(Self.count).makeAsyncIterator()
        #expect(try await values.next() == 0)
        for number in 1...100 { try await settings.set(Self.count, to: number) }
        #expect(try await values.next() == 100)
        try await settings.set(Self.count, to: 7)
        #expect(try await values.next() == 7)
    }

    @Test("each observer gets its own; closing ends all, and later ones")
    func closedSettingsEndObservers() async throws {
        let settings = try await Settings.open(path: path)
        var one = settings.values(Self.team).makeAsyncIterator()
        var other = settings.values(Self.team).makeAsyncIterator()
        try await settings.set(Self.team, to: "Hawks")
        #expect(try await one.next() == "Hawks")
        #expect(try await other.next() == "Hawks")
        await settings.close()
        #expect(try await one.next() == nil)
        #expect(try await other.next() == nil)
        var late = settings.values(Self.team).makeAsyncIterator()
        #expect(try await late.next() == nil)
    }

    @Test("cancelling the task that waits ends the values")
    func cancelledSettingWait() async throws {
        let settings = try await Settings.open(path: path)
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var seen: [String] = []
            for try await value in settings.values(Self.team) {
                seen.append(value)
                start.yield()
            }
            return seen
        }
        for await _ in started { break }
        task.cancel()
        #expect(try await task.value == ["Falcons"])
    }

    @Test("what another process sets is noticed by looking, and only while someone observes")
    func externalWrites() async throws {
        let ticks = Ticks()
        var options = SettingsOptions()
        options.sleep = { try await ticks.sleep($0) }
        let settings = try await Settings.open(path: path, options: options)
        let other = try await Settings.open(path: path)
        var values = Optional(settings.values(Self.team).makeAsyncIterator())
        #expect(try await values?.next() == "Falcons")
        try await other.set(Self.team, to: "Hawks")
        try await ticks.tick()
        #expect(try await values?.next() == "Hawks")
        #expect(await ticks.asked == .milliseconds(150))
        try await other.set(Self.team, to: "Owls")
        try await ticks.tick()
        #expect(try await values?.next() == "Owls")
        // Who is awake when nobody observes any more ends without being cancelled in its sleep.
        try await ticks.untilAsleep()
        values = nil
        try await ticks.untilCancelled()
    }

    @Test("the shell may read the file and write it, and is heard")
    func shell() async throws {
        let ticks = Ticks()
        var options = SettingsOptions()
        options.sleep = { try await ticks.sleep($0) }
        let settings = try await Settings.open(path: path, options: options)
        try await settings.set(Self.team, to: "Hawks")
        var values = settings.values(Self.team).makeAsyncIterator()
        #expect(try await values.next() == "Hawks")
        #expect(try shell("SELECT value FROM settings WHERE name = 'team'") == "\"Hawks\"\n")
        _ = try shell("UPDATE settings SET value = '\"Owls\"' WHERE name = 'team'")
        try await ticks.tick()
        #expect(try await values.next() == "Owls")
        _ = try shell("UPDATE settings SET value = '\"Ow' WHERE name = 'team'")
        try await ticks.tick()
        let error = await #expect(throws: StoreError.self) { _ = try await values.next() }
        #expect(error?.kind == .value)
        // After a failure nothing comes any more.
        _ = try shell("UPDATE settings SET value = '1' WHERE name = 'team'")
        #expect(try await values.next() == nil)
    }

    private func shell(_ sql: String) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlite3", path, sql]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return String(decoding: output, as: UTF8.self)
    }
}
