package import SQLiteFaults
package import SQLiteKit

/// The files of several disks, by path; first those of the disk that fails.
package typealias DiskImages = [[String: [UInt8]]]

extension FaultDisk {
    /// A disk that holds these files.
    package convenience init(_ name: String, _ files: [String: [UInt8]]) {
        self.init(name: DiskName.next(name), seed: 1)
        for (path, bytes) in files { install(bytes, at: path) }
    }

    /// All files, as programs see them now.
    package var files: [String: [UInt8]] {
        Dictionary(uniqueKeysWithValues: paths.map { ($0, contents(of: $0) ?? []) })
    }
}

/// What is done on a disk that fails, with all that takes part in it.
package protocol SweptWork: AnyObject {
    /// The disk that fails.
    var disk: FaultDisk { get }
    /// The files of all disks, as they are now.
    var images: DiskImages { get }
    /// How often the one who asked was told that something is done.
    var acknowledged: Int { get }
    /// Called with every such word.
    var whenAcknowledged: () -> Void { get set }
    /// Whether it goes another way by itself where an operation fails, through other states.
    var hasDetours: Bool { get }

    /// Opens what is closed, and does what is left to do.
    /// - Throws: What it fails of.
    func act() throws
    /// Lets go of the disk, as a process does that ends; the next one makes other identities.
    func close(life: Int)
    /// All that a file on a disk says, and nobody else knows.
    /// - Throws: `SweepFailure` where the file is damaged.
    func state(on disk: FaultDisk) throws -> String
    /// Does what is left to do, and looks whether all is as it must be.
    /// - Returns: What is the same in the end, whatever happened.
    /// - Throws: `SweepFailure` where it is not as it must be.
    func check() throws -> String
}

extension SweptWork {
    package var hasDetours: Bool { false }
}

/// A piece of work, and what is there before it.
package struct SweptScenario {
    package let name: String
    package let images: DiskImages
    /// The work on disks with such files, nothing on the first one being open.
    package let make: (DiskImages, _ life: Int) throws -> any SweptWork

    package init(
        _ name: String, _ images: DiskImages,
        _ make: @escaping (DiskImages, _ life: Int) throws -> any SweptWork
    ) {
        self.name = name
        self.images = images
        self.make = make
    }
}

/// What must not be.
package struct SweepFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// What a SQLite file holds, as text.
package enum FileState {
    /// Everything, row by row, but the tables named.
    package static func text(
        of path: String, on disk: FaultDisk, leavingOut tables: Set<String>
    ) throws -> String {
        guard disk.contents(of: path)?.isEmpty == false else { return "no file" }
        let connection = try Connection(path: path, vfs: disk.vfsName)
        try check(connection)
        let objects = try connection.prepare(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"
        ).rows { (row) throws(SQLiteError) in (row.text(0), row.text(1), row.text(2)) }
        var text = ""
        for (kind, name, sql) in objects {
            text += "\(kind) \(name) \(sql)\n"
            guard kind == "table", !tables.contains(name) else { continue }
            text += try rows(connection, "SELECT * FROM \"\(name)\"")
        }
        return text
    }

    /// The rows of a query, one a line.
    package static func rows(_ connection: Connection, _ sql: String) throws -> String {
        let statement = try connection.prepare(sql)
        let lines = try statement.rows { (row) throws(SQLiteError) in
            (0..<row.columnCount).map { row.isNull($0) ? "-" : row.text($0) }
                .joined(separator: "|") + "\n"
        }
        return lines.joined()
    }

    /// Whether SQLite finds the file whole.
    package static func check(_ connection: Connection) throws {
        let found = try connection.text("PRAGMA integrity_check") ?? ""
        guard found == "ok" else { throw SweepFailure("the file is damaged: \(found)") }
    }

    /// The tables of the small world, as both sides must have them.
    package static func records(_ connection: Connection) throws -> String {
        try rows(connection, "SELECT id, name, city FROM teams ORDER BY id")
            + rows(connection, "SELECT id, team_id, name, shirt FROM players ORDER BY id")
            + rows(connection, "SELECT id, body FROM notes ORDER BY id")
    }
}
