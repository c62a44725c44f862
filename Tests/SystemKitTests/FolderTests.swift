import Foundation
import Synchronization
import SystemKit
import TestFolders
import Testing

@Suite("Folders and files")
struct FolderTests {
    private let temporary: TemporaryFolder

    init() throws {
        temporary = try TemporaryFolder()
    }

    private func error(_ body: () throws -> Void) -> SystemError? {
        #expect(throws: SystemError.self, performing: body)
    }

    @Test("bytes written come back, replaced whole, and nothing else stays in the folder")
    func replacedFile() throws {
        let folder = try Folder(path: temporary.path)
        for bytes in [[1, 2, 3], [], [UInt8](repeating: 7, count: 3_000_000)] as [[UInt8]] {
            try folder.write(bytes, as: "a")
            #expect(try folder.file("a")?.rest() == bytes)
        }
        #expect(try temporary.listing() == ["a"])
    }

    @Test("folders and files are made open to their owner alone, also where the mask allows more")
    func permissions() throws {
        let path = temporary.path + "/deep/er"
        try Folder.make(path: path)
        try Folder.make(path: path)
        let folder = try Folder(path: path)
        try folder.write([1], as: "a")
        #expect(try folder.facts().permissions == 0o700)
        #expect(try folder.facts(of: "a")?.permissions == 0o600)
        #expect(try folder.facts(of: "a")?.isOpenToOthers == false)
        #expect(try folder.facts().isOwn)
        #expect(try Folder(path: temporary.path + "/deep").facts().permissions == 0o700)
        #expect(try folder.facts(of: "b") == nil)
    }

    @Test("what is missing is told apart from what may not be")
    func refusalsOfFolders() throws {
        let path = temporary.path
        try Folder(path: path).write([1], as: "file")
        #expect(error { _ = try Folder(path: path + "/none") }?.isMissing == true)
        #expect(error { _ = try Folder(path: path + "/file") }?.isNotAFolder == true)
        #expect(error { try Folder.make(path: path + "/file/below") }?.isNotAFolder == true)
        #expect(error { _ = try OpenFile(readingFrom: path + "/none") }?.isMissing == true)
        let folder = try Folder(path: path)
        #expect(try folder.file("none") == nil)
        #expect(try folder.remove("none") == false)
        let long = String(repeating: "x", count: 300)
        #expect(error { try folder.write([], as: long) }?.isNameTooLong == true)
        #expect(error { _ = try Folder.make(path: "") }?.isMissing == true)
    }

    @Test("a link is not followed, and a folder is no file")
    func links() throws {
        let path = temporary.path
        try Data([7]).write(to: temporary.url.appendingPathComponent("target"))
        try FileManager.default.createSymbolicLink(
            atPath: path + "/link", withDestinationPath: path + "/target")
        try FileManager.default.createDirectory(
            atPath: path + "/folder", withIntermediateDirectories: false)
        let folder = try Folder(path: path)
        #expect(error { _ = try folder.file("link") }?.isNotAFile == true)
        #expect(try folder.facts(of: "link")?.form == .link)
        #expect(try folder.facts(of: "folder")?.form == .folder)
        #expect(error { _ = try folder.file("folder")?.rest() }?.isNotAFile == true)
        #expect(error { try folder.write([], as: "folder") }?.isNotAFile == true)
        // A link's place is taken, and what it stood for stays.
        try folder.write([1], as: "link")
        #expect(try folder.facts(of: "link")?.form == .file)
        #expect(try folder.file("target")?.rest() == [7])
    }

    @Test("whichever operation fails, the old content or the new one is there, and no pending file")
    func failuresOfFolder() throws {
        for failing in 1...20 {
            let script = FaultScript(from: failing, through: failing, number: ENOSPC)
            try Folder(path: temporary.path).write([1], as: "a")
            let outcome = Result {
                try Folder(path: temporary.path, faults: script.faults).write([2], as: "a")
            }
            let content = try Folder(path: temporary.path).file("a")?.rest()
            #expect(content == [1] || content == [2])
            #expect(try temporary.listing() == ["a"])
            guard script.hasFailed else {
                #expect(content == [2])
                #expect(failing > 6, "an operation of writing is not asked for")
                return
            }
            #expect(throws: SystemError.self) { try outcome.get() }
            // Only the last operation, that of the folder, comes after the renaming.
            #expect((content == [2]) == (script.failed == .synchronize && script.renamed))
        }
        Issue.record("writing does not end")
    }

    @Test(
        "killed at any operation, the old or the new content is there, and the pending file goes later"
    )
    func kills() throws {
        var left = 0
        for killed in 1...20 {
            let script = FaultScript(from: killed, through: .max, number: EIO)
            try Folder(path: temporary.path).write([1], as: "a")
            _ = try? Folder(path: temporary.path, faults: script.faults)
                .write([UInt8](repeating: 2, count: 5_000_000), as: "a")
            let folder = try Folder(path: temporary.path)
            let content = try folder.file("a")?.rest()
            #expect(content == [1] || content?.count == 5_000_000)
            #expect(try folder.names() == ["a"])
            left += try temporary.listing().count - 1
            try folder.removeAbandonedFiles()
            #expect(try temporary.listing() == ["a"])
            if !script.hasFailed { break }
        }
        #expect(left >= 3)
    }

    @Test("a half-written file of a process that was killed is removed, one being written is not")
    func abandonedDrafts() throws {
        let folder = try Folder(path: temporary.path)
        let half = URL(fileURLWithPath: temporary.path + "/.martlet-1-1.draft")
        try Data([1, 2]).write(to: half)
        // Sweeps while a file is pending: only the abandoned one goes.
        let swept = Mutex(0)
        let path = temporary.path
        let faults = FileFaults { operation in
            guard operation == .rename else { return nil }
            swept.withLock { $0 = (try? Self.sweep(path)) ?? -1 }
            return nil
        }
        try Folder(path: path, faults: faults).write([9], as: "a")
        #expect(swept.withLock { $0 } == 1)
        #expect(try folder.file("a")?.rest() == [9])
        #expect(try temporary.listing() == ["a"])
    }

    private static func sweep(_ path: String) throws -> Int {
        try Folder(path: path).removeAbandonedFiles()
    }

    @Test("a number that a killed process used for its file is passed over")
    func usedNumbers() throws {
        let folder = try Folder(path: temporary.path)
        let pid = ProcessInfo.processInfo.processIdentifier
        // Which number comes next is unknown: other tests write too.
        for number in 0...3_000 {
            let url = URL(fileURLWithPath: temporary.path + "/.martlet-\(pid)-\(number).draft")
            try Data([7]).write(to: url)
        }
        try folder.write([1], as: "a")
        #expect(try folder.file("a")?.rest() == [1])
        #expect(try folder.removeAbandonedFiles() == 3_001)
    }

    @Test("a copy that is no longer wanted leaves everything as it was")
    func unwantedCopy() throws {
        let folder = try Folder(path: temporary.path)
        try folder.write([UInt8](repeating: 1, count: 3 << 20), as: "big")
        try folder.write([1], as: "a")
        var asked = 0
        let failure = error {
            let big = try OpenFile(readingFrom: temporary.path + "/big")
            try folder.write(copyOf: big, as: "a") {
                asked += 1
                return asked < 3
            }
        }
        #expect(failure?.isCancelled == true)
        #expect(try folder.file("a")?.rest() == [1])
        let big = try OpenFile(readingFrom: temporary.path + "/big")
        try folder.write(copyOf: big, as: "a")
        #expect(try folder.facts(of: "a")?.size == 3 << 20)
        #expect(try temporary.listing() == ["a", "big"])
    }

    @Test("a file grows by what is appended, can be cut, read anywhere and renamed over another")
    func growing() throws {
        let folder = try Folder(path: temporary.path)
        for part in [[1, 2, 3], [4, 5]] as [[UInt8]] {
            let file = try folder.appending(to: "part")
            try file.append(part)
            try file.synchronize()
        }
        #expect(try folder.file("part")?.rest() == [1, 2, 3, 4, 5])
        #expect(try folder.file("part")?.bytes(at: 3, count: 10) == [4, 5])
        #expect(try folder.file("part")?.bytes(at: 9, count: 10) == [])
        try folder.appending(to: "part", keeping: 2).append([9])
        try folder.write([0], as: "old")
        try folder.rename("part", to: "old")
        #expect(try folder.file("old")?.rest() == [1, 2, 9])
        #expect(try temporary.listing() == ["old"])
        #expect(try folder.facts(of: "old")?.permissions == 0o600)
        #expect(error { try folder.rename("part", to: "old") }?.isMissing == true)
    }
}
