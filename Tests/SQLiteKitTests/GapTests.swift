import Foundation
import RandomKit
import TestFolders
import Testing

@testable import SQLiteKit

@Suite("Bytes of pages that hold nothing")
struct GapTests {
    private static let records = 1_600

    private func mark(_ number: Int) -> String { "starling\(number)." }

    /// Makes a file whose pages have been split and joined, with some of its records deleted.
    private func prepare(_ path: String, settings: String) throws -> Connection {
        let connection = try Connection(path: path)
        try connection.execute(
            """
            \(settings); PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON; PRAGMA synchronous = OFF;
            CREATE TABLE birds (id TEXT PRIMARY KEY, body TEXT NOT NULL, size INTEGER);
            CREATE INDEX sizes ON birds (size, body);
            """)
        var random = SplitMix64(seed: 7)
        for number in 0..<Self.records {
            let key = String(random.next(), radix: 36)
            let body = mark(number) + String(repeating: "x", count: Int(random.next() % 900))
            try connection.execute(
                "INSERT INTO birds VALUES ('\(key)', '\(body)', \(random.next() % 90))")
        }
        try connection.execute(
            "UPDATE birds SET body = body || printf('%.*c', 3 * size, 'y') WHERE size % 2 = 1")
        try connection.execute("DELETE FROM birds WHERE size / 2 % 2 = 1")
        return connection
    }

    private func marks(in path: String) throws -> Int {
        // One pass, because a search for each mark takes minutes.
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        var found: Set<Substring> = []
        var next = bytes.startIndex
        while let name = bytes.range(of: Data("starling".utf8), in: next..<bytes.endIndex) {
            next = name.upperBound
            let text = String(decoding: bytes[next...].prefix(5), as: UTF8.self)
            if let end = text.firstIndex(of: ".") { found.insert(text[..<end]) }
        }
        return (0..<Self.records).count { found.contains("\($0)") }
    }

    private func overwrite(_ connection: Connection) throws {
        var page: Int64 = 1
        while true {
            #expect(try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
            let step = try connection.transaction {
                defer { try? connection.execute("UPDATE progress SET at = at + 1") }
                return try connection.overwriteGaps(from: page, count: 256)
            }
            guard case .next(let next) = step else { return #expect(step == .done) }
            #expect(next > page)
            page = next
        }
    }

    @Test(
        "are overwritten, and nothing else is",
        arguments: [
            "PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL",
            "PRAGMA page_size = 65536",
        ])
    func overwrites(settings: String) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/birds.sqlite"
        let connection = try prepare(path, settings: settings)
        try connection.execute(
            "CREATE TABLE progress (at INTEGER); INSERT INTO progress VALUES (0)")
        let other = try Connection(path: path)
        try other.execute("PRAGMA secure_delete = ON")
        func content() throws -> [String] {
            try connection.prepare("SELECT id || body || size FROM birds ORDER BY id")
                .rows { (row) throws(SQLiteError) in row.text(0) }
        }
        let before = try content()
        // The other connection has the pages in its memory.
        #expect(try other.integer("SELECT sum(length(body)) FROM birds") != nil)
        // If SQLite did it, this would not be needed.
        #expect(try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
        #expect(try marks(in: path) > before.count || settings.contains("65536"))
        try overwrite(connection)
        #expect(try content() == before)
        #expect(try connection.text("PRAGMA integrity_check") == "ok")
        #expect(try marks(in: path) == before.count)
        // Nobody brings the bytes back.
        try other.execute("UPDATE birds SET body = body || '.'")
        #expect(try other.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
        #expect(try marks(in: path) == before.count)
        #expect(try connection.text("PRAGMA integrity_check") == "ok")
    }

    @Test("are left alone while the log has pages, and in files of other modes")
    func leaves() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/birds.sqlite"
        let connection = try prepare(path, settings: "")
        let step = try connection.transaction {
            try connection.overwriteGaps(from: 1, count: 9)
        }
        #expect(step == .logIsUsed)
        let plain = try Connection(path: folder.path + "/plain.sqlite")
        try plain.execute("CREATE TABLE one (two)")
        let none = try plain.transaction { try plain.overwriteGaps(from: 1, count: 9) }
        #expect(none == .otherFormat)
    }

    @Test(
        "are those of free pages and free blocks, too",
        arguments: [
            "PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA page_size = 512",
            "PRAGMA page_size = 65536",
        ])
    func freed(settings: String) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/birds.sqlite"
        let connection = try prepare(path, settings: settings)
        try connection.execute(
            """
            CREATE TABLE progress (at INTEGER); INSERT INTO progress VALUES (0);
            PRAGMA secure_delete = OFF; CREATE TABLE copies AS SELECT body FROM birds;
            CREATE INDEX bodies ON birds (body); DROP INDEX bodies; DROP TABLE copies;
            UPDATE birds SET body = 'wren' WHERE size % 5 = 0; PRAGMA secure_delete = ON;
            """)
        #expect(try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)") == 0)
        let free = try #require(try connection.integer("PRAGMA freelist_count"))
        #expect(free > 9)
        let left = try connection.integer("SELECT count(*) FROM birds WHERE body <> 'wren'")
        #expect(try marks(in: path) > Int(left ?? 0))
        try overwrite(connection)
        #expect(try marks(in: path) == Int(left ?? 0))
        #expect(try connection.text("PRAGMA integrity_check") == "ok")
        #expect(try connection.integer("PRAGMA freelist_count") == free)
        // SQLite uses the free pages again.
        try connection.execute("CREATE TABLE copies AS SELECT body FROM birds")
        #expect(try connection.integer("PRAGMA freelist_count") ?? free < free)
        #expect(try connection.text("PRAGMA integrity_check") == "ok")
    }

    @Test("are not overwritten if the list of free pages names a page that the file does not have")
    func damaged() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/birds.sqlite"
        let url = URL(fileURLWithPath: path)
        do {
            let connection = try prepare(path, settings: "")
            try connection.execute(
                "CREATE TABLE copies AS SELECT body FROM birds; DROP TABLE copies")
        }
        var bytes = try Data(contentsOf: url)
        let trunk = bytes[32..<36].reduce(0) { $0 << 8 | Int($1) }
        #expect(trunk > 1)
        // The last page that the first one of the list names; SQLite takes others first.
        let start = (trunk - 1) * 4_096
        let count = Int(bytes[start + 6]) << 8 | Int(bytes[start + 7])
        bytes[start + 8 + 4 * (count - 1) + 1] = 0x40
        try bytes.write(to: url)
        let connection = try Connection(path: path)
        let error = #expect(throws: SQLiteError.self) {
            try connection.transaction { try connection.overwriteGaps(from: 1, count: 4) }
        }
        #expect(error?.isCorrupt == true)
    }

    @Test("are found only in pages of b-trees")
    func pages() {
        var page = [UInt8](repeating: 7, count: 512)
        #expect(PageLayout.unused(in: page).isEmpty)
        page.replaceSubrange(0..<10, with: [13, 0, 0, 0, 1, 1, 240, 0, 1, 250])
        #expect(PageLayout.unused(in: page) == [10..<496])
        // A cell or a free block in front of the cells.
        page[9] = 200
        #expect(PageLayout.unused(in: page).isEmpty)
        page[9] = 250
        page[2] = 20
        #expect(PageLayout.unused(in: page).isEmpty)
        page.replaceSubrange(1..<3, with: [1, 240])
        page.replaceSubrange(496..<500, with: [0, 0, 0, 9])
        #expect(PageLayout.unused(in: page) == [10..<496, 500..<505])
        // A free block that goes beyond the page, or leads back.
        page[498] = 2
        #expect(PageLayout.unused(in: page).isEmpty)
        page.replaceSubrange(496..<500, with: [1, 240, 0, 9])
        #expect(PageLayout.unused(in: page).isEmpty)
    }
}
