import Foundation
import Synchronization
import SystemKit
import TestFolders
import Testing

@testable import MartletStore

@Suite("Files by name", .timeLimit(.minutes(5)))
struct FileStoreTests {
    private let temporary: TemporaryFolder
    private let folder: String
    private let store: FileStore

    init() throws {
        temporary = try TemporaryFolder()
        folder = temporary.path + "/deep/files"
        store = FileStore(folder: folder)
    }

    private func refusal(_ body: () async throws -> Void) async -> StoreError? {
        await #expect(throws: StoreError.self) { try await body() }
    }

    @Test("a file comes back as it was written, replaced whole")
    func writtenFile() async throws {
        for data in [Data("one".utf8), Data(), Data(count: 3_000_000)] {
            try await store.write(data, as: "team photo.jpg")
            #expect(try await store.data(of: "team photo.jpg") == data)
            #expect(try await store.size(of: "team photo.jpg") == Int64(data.count))
        }
        let url = try await store.url(of: "team photo.jpg")
        #expect(try Data(contentsOf: url).count == 3_000_000)
        #expect(try await store.names() == ["team photo.jpg"])
    }

    @Test("before the first file there is nothing, not even the folder")
    func emptyFileStore() async throws {
        #expect(try await store.names() == [])
        #expect(try await store.contains("a") == false)
        #expect(try await store.remove("a") == false)
        #expect(await refusal { _ = try await store.data(of: "a") }?.kind == .unknown)
        #expect(try temporary.listing() == [])
    }

    @Test("what is missing is told")
    func missingFiles() async throws {
        try await store.write(Data([1]), as: "a")
        #expect(try await store.contains("a"))
        #expect(try await store.remove("a"))
        #expect(try await store.remove("a") == false)
        #expect(await refusal { _ = try await store.data(of: "a") }?.kind == .unknown)
        #expect(await refusal { _ = try await store.size(of: "a") }?.kind == .unknown)
        #expect(await refusal { _ = try await store.url(of: "a") }?.kind == .unknown)
        let elsewhere = temporary.url.appendingPathComponent("none")
        #expect(await refusal { try await store.copy(from: elsewhere, as: "a") }?.kind == .unknown)
        #expect(try await store.names() == [])
    }

    @Test(
        "names that lead out, hide or trouble others are refused in every call",
        arguments: [
            "", ".", "..", "../a", "/no-such-folder-of-martlet/a", "a/b", "a/../../b", ".hidden",
            ".\u{301}x",
            "nul\u{0}",
            "line\nbreak", "bell\u{7}", "delete\u{7f}", ".martlet-1-1.draft",
            String(repeating: "x", count: 256), String(repeating: "ü", count: 128),
        ])
    func hostileNames(name: String) async throws {
        let source = temporary.url.appendingPathComponent("source")
        try Data([1]).write(to: source)
        for call in [
            { try await store.write(Data(), as: name) },
            { try await store.copy(from: source, as: name) },
            { _ = try await store.data(of: name) }, { _ = try await store.size(of: name) },
            { _ = try await store.url(of: name) }, { _ = try await store.contains(name) },
            { _ = try await store.remove(name) },
        ] as [() async throws -> Void] {
            #expect(await refusal(call)?.kind == .value)
        }
        #expect(try temporary.listing() == ["source"])
    }

    // The files to be reached stand in the test's own folder: whatever is broken, nothing outside
    // of it comes to harm.
    @Test("no name reaches a file beside the folder, neither to read, to replace nor to remove it")
    func filesBeside() async throws {
        try await store.write(Data([1]), as: "a")
        let victim = temporary.url.appendingPathComponent("victim")
        try Data([7]).write(to: victim)
        for name in [victim.path, "../../victim", "x/../../../victim", "./../../victim"] {
            for call in [
                { try await store.write(Data([9]), as: name) },
                { try await store.copy(from: store.url(of: "a"), as: name) },
                { _ = try await store.data(of: name) }, { _ = try await store.url(of: name) },
                { _ = try await store.remove(name) },
            ] as [() async throws -> Void] {
                #expect(await refusal(call)?.kind == .value)
                #expect(try Data(contentsOf: victim) == Data([7]))
            }
        }
    }

    @Test(
        "names that only look odd are taken",
        arguments: ["a..b", "x.", "ü 🥅", "%2e", "C:\\x", "-rf", String(repeating: "x", count: 255)])
    func oddNames(name: String) async throws {
        try await store.write(Data([1]), as: name)
        #expect(try await store.names() == [name])
        #expect(try Data(contentsOf: await store.url(of: name)) == Data([1]))
    }

    @Test("a copy is the file's content, and the source stays")
    func copied() async throws {
        let source = temporary.url.appendingPathComponent("source")
        let data = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        try data.write(to: source)
        try await store.copy(from: source, as: "copy")
        #expect(try await store.data(of: "copy") == data)
        #expect(try Data(contentsOf: source) == data)
        // Onto itself as well.
        try await store.copy(from: store.url(of: "copy"), as: "copy")
        #expect(try await store.data(of: "copy") == data)
    }

    @Test("folders, other addresses and cancelled tasks are not copied")
    func notCopied() async throws {
        try await store.write(Data([1]), as: "a")
        #expect(await refusal { try await store.copy(from: temporary.url, as: "a") }?.kind == .file)
        let web = try #require(URL(string: "https://example.org/a"))
        #expect(await refusal { try await store.copy(from: web, as: "a") }?.kind == .value)
        let files = store
        let source = try await files.url(of: "a")
        let (never, end) = AsyncStream<Void>.makeStream()
        defer { end.finish() }
        let task = Task {
            for await _ in never {}
            try await files.copy(from: source, as: "b")
        }
        task.cancel()
        #expect(await refusal { try await task.value }?.kind == .cancelled)
        #expect(try await store.names() == ["a"])
    }

    @Test("what is not a file is not listed, and not read")
    func notFiles() async throws {
        try await store.write(Data([1]), as: "a")
        let manager = FileManager.default
        try manager.createSymbolicLink(
            atPath: folder + "/link", withDestinationPath: folder + "/a")
        try manager.createDirectory(atPath: folder + "/folder", withIntermediateDirectories: false)
        #expect(try await store.names() == ["a"])
        for name in ["link", "folder"] {
            #expect(await refusal { _ = try await store.data(of: name) }?.kind == .file)
            #expect(await refusal { _ = try await store.url(of: name) }?.kind == .file)
            #expect(await refusal { _ = try await store.size(of: name) }?.kind == .file)
        }
    }

    @Test("a file in the folder's place is refused")
    func fileAsFolder() async throws {
        try await store.write(Data([1]), as: "a")
        let wrong = FileStore(folder: folder + "/a")
        #expect(await refusal { try await wrong.write(Data(), as: "b") }?.kind == .file)
        #expect(await refusal { _ = try await wrong.names() }?.kind == .file)
        #expect(await refusal { _ = try await wrong.data(of: "b") }?.kind == .file)
    }

    @Test("a folder without rights is refused with a sentence")
    func unreadableFolder() async throws {
        try await store.write(Data([1]), as: "a")
        // The rights are simulated: a test may run as a user whom no rights bind.
        let faults = FileFaults { $0 == .openFolder || $0 == .makeFolder ? EACCES : nil }
        let refused = FileStore(folder: folder, faults: faults)
        for call in [
            { try await refused.write(Data(), as: "b") }, { _ = try await refused.data(of: "a") },
            { _ = try await refused.names() }, { _ = try await refused.remove("a") },
        ] as [() async throws -> Void] {
            let error = await refusal(call)
            #expect(error?.kind == .inputOutput)
            #expect(error?.message.contains("Change the rights") == true)
        }
    }

    @Test("a full disk is told, whichever operation meets it, and the old or new file is whole")
    func fullDisk() async throws {
        var told = 0
        for operation in FileOperation.allCases where operation != .remove {
            try await store.write(Data([1]), as: "a")
            let faults = FileFaults { $0 == operation ? ENOSPC : nil }
            let full = FileStore(folder: folder, faults: faults)
            do {
                try await full.write(Data(count: 100_000), as: "a")
            } catch let error as StoreError {
                #expect(error.kind == .diskFull)
                told += 1
            }
            #expect([1, 100_000].contains(try await store.data(of: "a").count))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a"])
        }
        #expect(told >= 6)
    }

    @Test("what a killed process left half-written is removed by the next one's first write")
    func leftovers() async throws {
        try await store.write(Data([1]), as: "a")
        let half = folder + "/.martlet-999-7.draft"
        try Data([1, 2]).write(to: URL(fileURLWithPath: half))
        #expect(try await store.names() == ["a"])
        try await FileStore(folder: folder).write(Data([2]), as: "a")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a"])
    }

    @Test("two stores that write one name at once leave one file, whole")
    func twoWriters() async throws {
        let other = FileStore(folder: folder)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                let store = number.isMultiple(of: 2) ? store : other
                group.addTask {
                    let byte = UInt8(number)
                    try await store.write(Data(repeating: byte, count: 10_000), as: "a")
                    let read = try await store.data(of: "a")
                    #expect(read.count == 10_000)
                    #expect(Set(read).count == 1)
                }
            }
            try await group.waitForAll()
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a"])
    }

    @Test("reading does not wait for a write that takes long")
    func readingBesideWriting() async throws {
        try await store.write(Data([1]), as: "a")
        let gate = DispatchSemaphore(value: 0)
        let (held, hold) = AsyncStream.makeStream(of: Void.self)
        let faults = FileFaults { operation in
            guard operation == .rename else { return nil }
            hold.finish()
            // Not for ever: a test that fails must end.
            _ = gate.wait(timeout: .now() + 20)
            return nil
        }
        let slow = FileStore(folder: folder, faults: faults)
        async let writing: Void = slow.write(Data([2]), as: "a")
        for await _ in held {}
        #expect(try await slow.data(of: "a") == Data([1]))
        gate.signal()
        try await writing
        #expect(try await slow.data(of: "a") == Data([2]))
    }
}
