import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import Testing

/// Files and disks that cannot be used: typed, with a remedy, and what was there stays whole.
@Suite("Files and disks that fail", .timeLimit(.minutes(5)))
struct FileRefusalTests {
    private static let script = """
        CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT);
        INSERT INTO notes(body) VALUES ('kept');

        """

    @Test("a file that is no database, and a damaged one")
    func notADatabase() async throws {
        let folder = try StoreFolder()
        try Data(repeating: 7, count: 8_192).write(to: URL(fileURLWithPath: folder.path("a")))
        let error = await refusal { try await folder.pool("a") }
        #expect(error?.kind == .file)
        #expect(error?.remedy == .checkTheStorage)
        #expect(error?.code == 26)
        // It is not touched.
        #expect(
            try Data(contentsOf: URL(fileURLWithPath: folder.path("a")))
                == Data(repeating: 7, count: 8_192))
    }

    @Test("a damaged page is found when it is read; other tables go on")
    func damagedPage() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: Self.script + """
                CREATE TABLE large(id INTEGER PRIMARY KEY, body TEXT);
                CREATE TABLE after(id INTEGER PRIMARY KEY, body TEXT);

                """)
        try await pool.write { context in
            for _ in 0..<200 {
                _ = try context.rows(
                    "INSERT INTO large(body) VALUES (?)",
                    [.text(String(repeating: "x", count: 500))])
            }
        }
        let root = try await pool.integer("SELECT rootpage FROM sqlite_master WHERE name = 'large'")
        await pool.close()
        let url = URL(fileURLWithPath: folder.path())
        var bytes = try Data(contentsOf: url)
        let start = (root - 1) * 4_096
        bytes.replaceSubrange(start..<(start + 4_096), with: Data(repeating: 0xfe, count: 4_096))
        try bytes.write(to: url)

        let again = try await folder.pool()
        let error = await refusal { try await again.integer("SELECT count(body) FROM large") }
        #expect(error?.kind == .file)
        #expect(error?.remedy == .checkTheStorage)
        #expect(error?.sql?.contains("large") == true)
        #expect(try await again.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test("a folder, a place that is not there, and one that may not be written")
    func unusablePaths() async throws {
        let folder = try StoreFolder()
        try FileManager.default.createDirectory(
            atPath: folder.path("folder"), withIntermediateDirectories: false)
        var paths = [folder.path("folder"), folder.path("nothing/there.sqlite")]
        #if os(Linux)
            // Not even root makes files there.
            paths.append("/proc/martlet.sqlite")
        #endif
        for path in paths {
            let error = await refusal { try await DatabasePool.open(path: path) }
            #expect(error?.kind == .file, "\(path)")
            #expect(error?.remedy == .checkTheStorage)
            #expect(error?.code != nil)
        }
    }

    @Test("a file another program holds locked: busy after the time-out, and nothing half done")
    func lockedFile() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) {
            $0.busyTimeout = .milliseconds(50)
        }
        let other = try Connection(path: folder.path())
        try other.begin()
        try other.execute("INSERT INTO notes(body) VALUES ('theirs')")
        let error = await refusal {
            try await pool.write { _ = try $0.rows("INSERT INTO notes(body) VALUES ('ours')") }
        }
        #expect(error?.kind == .busy)
        #expect(error?.remedy == .retry)
        // Reading goes on meanwhile.
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
        try other.commit()
        try await pool.write { _ = try $0.rows("INSERT INTO notes(body) VALUES ('ours')") }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 3)
        #expect(try await pool.integrity() == "ok")
    }

    @Test("a file locked by one who lets nobody else in cannot be opened")
    func exclusive() async throws {
        let folder = try StoreFolder()
        let other = try Connection(path: folder.path())
        try other.execute(
            "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE t(a); COMMIT")
        let error = await refusal {
            try await folder.pool { $0.busyTimeout = .milliseconds(50) }
        }
        #expect(error?.kind == .busy)
        #expect(error?.remedy == .retry)
    }

    /// A disk, and how it fails.
    private func failing(
        _ kind: FaultDisk.Failure, _ wanted: StoreError.Kind, _ remedy: StoreError.Remedy
    ) async throws {
        var refusals = 0
        for operation in 1...12 {
            let disk = FaultDisk(name: "refusal-\(wanted)-\(operation)")
            var options = DatabaseOptions()
            options.vfs = disk.vfsName
            let pool = try await DatabasePool.open(path: "/test.sqlite", options: options)
            try await pool.run(Self.script)
            disk.failAfter(operations: operation, kind: kind, lasting: true)
            let error = await refusal {
                try await pool.write { context in
                    for number in 0..<50 {
                        _ = try context.rows(
                            "INSERT INTO notes(body) VALUES (?)",
                            [.text(String(repeating: "\(number)", count: 2_000))])
                    }
                }
            }
            disk.heal()
            if let error {
                refusals += 1
                #expect(error.kind == wanted)
                #expect(error.remedy == remedy)
                #expect(error.code != nil)
                #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
            }
            #expect(try await pool.integrity() == "ok")
            // The pool goes on.
            try await pool.write { _ = try $0.rows("INSERT INTO notes(body) VALUES ('next')") }
            #expect(try await pool.integer("SELECT count(*) FROM notes WHERE body = 'next'") == 1)
            await pool.close()
        }
        #expect(refusals > 0)
    }

    @Test("a full disk")
    func fullDisk() async throws {
        try await failing(.full, .diskFull, .freeSpace)
    }

    @Test("a disk that fails")
    func failingDisk() async throws {
        try await failing(.ioError, .inputOutput, .checkTheStorage)
    }

    @Test("a file that may only be read")
    func readOnly() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let error = await refusal {
            try await pool.write { context in
                // As when the disk was mounted anew for reading.
                try context.session.connection.execute("PRAGMA query_only = ON")
                _ = try context.rows("DELETE FROM notes")
            }
        }
        #expect(error?.kind == .readOnly)
        #expect(error?.remedy == .checkTheStorage)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }
}
