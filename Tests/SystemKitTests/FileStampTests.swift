import Foundation
import SystemKit
import Testing

@Suite("Stamps of files")
struct FileStampTests {
    @Test("tell another content, another file and none from what was there")
    func stamps() throws {
        let path = FileManager.default.temporaryDirectory.path + "/stamp-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(FileStamp(path: path) == nil)
        try Data("one".utf8).write(to: URL(fileURLWithPath: path))
        let first = try #require(FileStamp(path: path))
        #expect(first.size == 3)
        #expect(FileStamp(path: path) == first)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000)], ofItemAtPath: path)
        let second = try #require(FileStamp(path: path))
        #expect(second != first)
        try FileManager.default.moveItem(atPath: path, toPath: path + "-old")
        defer { try? FileManager.default.removeItem(atPath: path + "-old") }
        try Data("two".utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000)], ofItemAtPath: path)
        #expect(FileStamp(path: path) != second, "another file with the same time and length")
    }
}
