import Foundation
import MartletEmbedded
import MartletModel
import MartletServerCore
import SQLiteFaults
import SQLiteKit
import SetTexts

/// Where the data set of one test is kept, and how it is reached.
protocol StorageHome: AnyObject {
    /// Opens the storage, as a process that was just started.
    func storage(now: Int64) throws -> any ServerStorage
    func log(_ schema: Schema) -> any LogSource
    func check(_ schema: Schema) -> any CheckSource
    /// Rows as text, columns parted by bars and rows by line breaks; nulls are dashes.
    func rows(_ sql: String) throws -> String
    /// Has the next record of a type get this id.
    func setNextID(_ id: Int64, of type: String) throws
    /// What another program does.
    func execute(_ sql: String) throws
    /// Makes a snapshot of a view.
    /// - Parameter reading: Runs a function at the moment that the snapshot shows.
    /// - Returns: The snapshot, and a connection to its file.
    func snapshot(
        of view: Int64, by reading: @escaping ConsistentReading
    ) throws -> (SnapshotMaker.Cut, Connection)
}

/// An SQLite file, on a disk or in memory.
final class FileHome: StorageHome {
    private let script: String
    private let path: String
    private let folder: URL?
    private let disk: FaultDisk?
    private let unsendable = UnsendableRows()

    /// - Parameter isInMemory: Whether there is no file.
    init(_ script: String, _ rows: String, isInMemory: Bool) throws {
        self.script = script
        if isInMemory {
            disk = FaultDisk(name: "conformance-\(UUID().uuidString)", seed: 1)
            folder = nil
            path = "/data.sqlite"
        } else {
            disk = nil
            let made = FileManager.default.temporaryDirectory
                .appendingPathComponent("martlet-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: made, withIntermediateDirectories: true)
            folder = made
            path = made.appendingPathComponent("data.sqlite").path
        }
        if !rows.isEmpty { try execute(script + rows) }
    }

    deinit {
        if let folder { try? FileManager.default.removeItem(at: folder) }
    }

    func storage(now: Int64) throws -> any ServerStorage {
        try EmbeddedStore(
            path: path, vfs: disk?.vfsName, script: script, identity: TestDataSet.identity,
            now: now)
    }

    func log(_ schema: Schema) -> any LogSource {
        EmbeddedLog(path: path, vfs: disk?.vfsName, schema: schema, unsendable: unsendable)
    }

    func check(_ schema: Schema) -> any CheckSource {
        EmbeddedCheck(path: path, vfs: disk?.vfsName, schema: schema, unsendable: unsendable)
    }

    func rows(_ sql: String) throws -> String {
        let connection = try Connection(path: path, mode: .readWrite, vfs: disk?.vfsName)
        let statement = try connection.prepare(sql)
        var lines: [String] = []
        while try statement.step() {
            let columns = (0..<statement.columnCount).map {
                statement.isNull($0) ? "-" : statement.text($0)
            }
            lines.append(columns.joined(separator: "|"))
        }
        return lines.joined(separator: "\n")
    }

    func setNextID(_ id: Int64, of type: String) throws {
        try execute("UPDATE martlet_types SET next_id = \(id) WHERE name = '\(type)'")
    }

    func execute(_ sql: String) throws {
        try Connection(path: path, vfs: disk?.vfsName).execute(sql)
    }

    func snapshot(
        of view: Int64, by reading: @escaping ConsistentReading
    ) throws -> (SnapshotMaker.Cut, Connection) {
        let part = path + "-part"
        let maker = SnapshotMaker(
            path: path, vfs: disk?.vfsName, consistently: reading, asksWriter: true)
        let cut = try maker.make(of: view) { _ in part }
        return (cut, try Connection(path: part, mode: .readWrite, vfs: disk?.vfsName))
    }
}
