import SQLiteFaults
import SQLiteKit
import SmallWorlds

@testable import MartletStore

/// A database of the app's own on a simulated disk, led through versions.
final class PlainFile {
    static let path = "/data/app.db"

    let disk: FaultDisk
    private(set) var connection: Connection

    init(_ name: String) throws {
        disk = FaultDisk(name: DiskName.next("plain-\(name)"))
        connection = try Self.connect(disk)
    }

    private static func connect(_ disk: FaultDisk) throws -> Connection {
        let connection = try Connection(path: path, vfs: disk.vfsName)
        try connection.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
        return connection
    }

    func reopen() throws {
        connection = try Self.connect(disk)
    }

    /// A connection of another program's.
    func other() throws -> Connection {
        try Connection(path: Self.path, vfs: disk.vfsName)
    }

    @discardableResult
    func migrate(
        _ list: [Migration], fallback: MigrationFallback = .fail,
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) throws -> MigrationOutcome {
        try Migrator(Migrations(list), now: 5, progress: progress).run(
            on: connection, fallback: fallback, vfs: disk.vfsName)
    }

    /// Runs one more version on top of those run, and gives its refusal.
    func refusal(_ body: @escaping @Sendable (MigrationContext) throws -> Void) throws
        -> StoreError?
    {
        let before = try content()
        let reached = Int(
            try connection.integer("SELECT max(version) FROM martlet_migrations") ?? 0)
        do {
            _ = try Migrator(Migrations([Migration(reached + 1, "refused", body)]), now: 6).run(
                on: connection, vfs: disk.vfsName)
            return nil
        } catch let error as StoreError {
            guard try content() == before, !connection.isInTransaction,
                try connection.integer("PRAGMA foreign_keys") == 1
            else { throw FixtureError.changed }
            return error
        }
    }

    /// All the file holds, as text.
    func content() throws -> String {
        let tables = try connection.prepare(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY name")
        var text = ""
        let objects = try tables.rows { (row) throws(SQLiteError) in
            (row.text(0), row.text(1), row.text(2))
        }
        for (kind, name, sql) in objects {
            text += "\(kind) \(name) \(sql)\n"
            guard kind == "table" else { continue }
            let rows = try connection.prepare("SELECT * FROM \"\(name)\"")
            for row in try rows.rows({ (row) throws(SQLiteError) in
                (0..<rows.columnCount).map { rows.text($0) }.joined(separator: "|")
            }) {
                text += "  \(row)\n"
            }
        }
        return text
    }

    func strings(_ sql: String) throws -> [String] {
        try connection.prepare(sql).rows { (row) throws(SQLiteError) in row.text(0) }
    }
}
