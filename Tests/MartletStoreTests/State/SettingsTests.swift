import Foundation
import MartletStore
import Synchronization
import TestFolders
import Testing

extension SettingKey<Bool> {
    fileprivate static var showsScores: Self { SettingKey("showsScores", default: true) }
}

extension SettingKey<Int> {
    fileprivate static var count: Self { SettingKey("count", default: 0) }
}

extension SettingKey<String> {
    fileprivate static var team: Self { SettingKey("team", default: "Falcons") }
}

@Suite("Settings")
struct SettingsTests {
    private struct Window: Codable, Hashable {
        var width = 640.5
        var title: String?
        var opened: [Date] = []
    }

    private static let window = SettingKey("window", default: Window())

    private let temporary: TemporaryFolder
    private let path: String

    init() throws {
        temporary = try TemporaryFolder()
        path = temporary.path + "/settings.sqlite"
    }

    private func refusal(_ body: () async throws -> Void) async -> StoreError? {
        await #expect(throws: StoreError.self) { try await body() }
    }

    @Test("a setting has its default until it is set, and again once it is removed")
    func defaults() async throws {
        let settings = try await Settings.open(path: path)
        #expect(try await settings.value(.showsScores))
        try await settings.set(.showsScores, to: false)
        #expect(try await settings.value(.showsScores) == false)
        #expect(try await settings.names() == ["showsScores"])
        try await settings.remove(.showsScores)
        try await settings.remove(.showsScores)
        #expect(try await settings.value(.showsScores))
        #expect(try await settings.names() == [])
    }

    @Test("what is set is there when the file is opened again")
    func reopened() async throws {
        let window = Window(
            width: 1e-7, title: "Ü/\"🥅\u{0}", opened: [Date(timeIntervalSince1970: 0.25)])
        let first = try await Settings.open(path: path)
        try await first.set(Self.window, to: window)
        try await first.set(.team, to: "")
        await first.close()
        #expect(await refusal { _ = try await first.value(.team) }?.kind == .misuse)
        #expect(await refusal { try await first.set(.team, to: "x") }?.kind == .misuse)
        let second = try await Settings.open(path: path)
        #expect(try await second.value(Self.window) == window)
        #expect(try await second.value(.team) == "")
        #expect(try await second.names() == ["team", "window"])
    }

    @Test("what was set survives a kill: the file is good without having been closed")
    func killedAfterSetting() async throws {
        let settings = try await Settings.open(path: path)
        for number in 1...50 { try await settings.set(.count, to: number) }
        // What a kill leaves: the file and its log as they are, in a place where no process has them.
        let copy = temporary.path + "/copy.sqlite"
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        let log = URL(fileURLWithPath: copy + "-wal")
        #expect(try await Settings.open(path: copy).value(.count) == 50)
        // Cut anywhere, a whole value is there.
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path + "-wal"))
        for length in stride(from: 0, through: bytes.count, by: bytes.count / 40 + 1) {
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: copy + suffix)
            }
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            try bytes.prefix(length).write(to: log)
            let cut = try await Settings.open(path: copy)
            #expect((0...50).contains(try await cut.value(.count)))
            try await cut.set(.count, to: 51)
            #expect(try await cut.value(.count) == 51)
            await cut.close()
        }
    }

    @Test("two on one file, as of two processes, see each other's changes and lose none")
    func twoOnOneFile() async throws {
        let both = try await [Settings.open(path: path), Settings.open(path: path)]
        try await both[0].set(.team, to: "Hawks")
        #expect(try await both[1].value(.team) == "Hawks")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask { try await both[number % 2].update(.count) { $0 += 1 } }
            }
            try await group.waitForAll()
        }
        #expect(try await both[0].value(.count) == 100)
        #expect(try await both[1].value(.count) == 100)
    }

    @Test("many may open a new file at once")
    func openedAtOnce() async throws {
        let path = path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<12 {
                group.addTask {
                    let settings = try await Settings.open(path: path)
                    try await settings.update(.count) { $0 += 1 }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await Settings.open(path: path).value(.count) == 12)
    }

    @Test("an update that throws changes nothing")
    func failedUpdate() async throws {
        let settings = try await Settings.open(path: path)
        try await settings.set(.count, to: 1)
        await #expect(throws: CancellationError.self) {
            try await settings.update(.count) { count in
                count = 2
                throw CancellationError()
            }
        }
        #expect(try await settings.value(.count) == 1)
        let twice = try await settings.update(.count) { count in
            count += 4
            return count * 2
        }
        #expect(twice == 10)
        #expect(try await settings.value(.count) == 5)
    }

    @Test("names and values that cannot be kept are refused")
    func refusedSettings() async throws {
        let settings = try await Settings.open(path: path)
        for name in ["", "nul\u{0}", String(repeating: "x", count: 256)] {
            let key = SettingKey(name, default: 1)
            #expect(await refusal { try await settings.set(key, to: 2) }?.kind == .value)
            #expect(await refusal { _ = try await settings.value(key) }?.kind == .value)
        }
        let number = SettingKey("number", default: 0.5)
        #expect(await refusal { try await settings.set(number, to: .nan) }?.kind == .value)
        #expect(
            await refusal { try await settings.update(number) { $0 = .infinity } }?.kind == .value)
        #expect(try await settings.names() == [])
        for odd in ["a'b\"c; DROP TABLE settings", "ü", "../x"] {
            let key = SettingKey(odd, default: 1)
            try await settings.set(key, to: 2)
            #expect(try await settings.value(key) == 2)
        }
    }

    @Test("a value of another type is refused by name, without showing it")
    func otherType() async throws {
        let settings = try await Settings.open(path: path)
        try await settings.set(SettingKey("count", default: ""), to: "secret text")
        let error = await refusal { _ = try await settings.value(.count) }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("count") == true)
        #expect(error?.message.contains("secret text") == false)
        #expect(await refusal { try await settings.update(.count) { $0 += 1 } }?.kind == .value)
        try await settings.set(.count, to: 3)
        #expect(try await settings.value(.count) == 3)
    }
}
