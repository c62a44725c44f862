import Foundation
import Testing

@testable import MartletServer

@Suite("A data set's file that nobody writes to")
struct FileQuietTests {
    private let folder = TemporaryFolder()

    @Test(
        "is quiet after twenty looks at the same log, and a write wakes it",
        arguments: [true, false])
    func quiet(hasLog: Bool) throws {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        let path = folder.path + "/set"
        let log = URL(fileURLWithPath: path + "-wal")
        if hasLog { try Data([1]).write(to: log) }
        let quiet = FileQuiet(path: path)
        func looks(_ count: Int) -> [Bool] { (0..<count).map { _ in quiet.isQuiet() } }
        let asleep = [Bool](repeating: false, count: 20) + [true, true, true]

        #expect(looks(23) == asleep)
        // The data set's own file is not looked at: every commit goes to the log.
        try Data([1]).write(to: URL(fileURLWithPath: path))
        #expect(looks(1) == [true])
        try Data([1, 2]).write(to: log)
        #expect(looks(10) == Array(asleep.prefix(10)))
        // Another write before it is quiet has it looked at twenty times from then on.
        try Data([1, 2, 3]).write(to: log)
        #expect(looks(23) == asleep)
        try FileManager.default.removeItem(at: log)
        #expect(looks(23) == asleep)
    }
}
