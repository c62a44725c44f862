internal import Martlet
package import MartletDevice
package import MartletModel
package import MartletProtocol
package import MartletStore
package import SQLiteFaults
internal import SQLiteKit

/// A device's file on a simulated disk: with confirmed records, a change set sent, others not, one
/// refused, values kept aside, and what another program wrote since.
package final class SyncedFile {
    package static let path = "/data/device.db"

    package let disk: FaultDisk
    package private(set) var store: DeviceStore?
    private var bits: UInt64 = 0

    /// A file in use, at the first version.
    package init(_ name: String) throws {
        disk = FaultDisk(name: DiskName.next("synced-\(name)"))
        try open(SyncedVersions.start)
        try fill()
        store = nil
    }

    /// A file that holds the given bytes.
    package init(_ name: String, image: [UInt8]) {
        disk = FaultDisk(name: DiskName.next("synced-\(name)"))
        disk.install(image, at: Self.path)
        // Not those of the file's first life.
        bits = 1_000
    }

    /// A file on a disk that holds these files, in the given life of its program.
    package init(_ name: String, image: [String: [UInt8]], life: Int) {
        disk = FaultDisk("synced-\(name)", image)
        bits = UInt64(1_000 * (1 + life))
    }

    /// The file's bytes, with no connection open.
    package func image() throws -> [UInt8] {
        store = nil
        guard let bytes = disk.contents(of: Self.path), disk.paths == [Self.path] else {
            throw FixtureError.changed
        }
        return bytes
    }

    /// Opens the file with the versions up to a number of them.
    @discardableResult
    package func open(
        _ count: Int = SyncedVersions.all.count, fallback: MigrationFallback = .fail
    ) throws -> DeviceStore {
        try open(Array(SyncedVersions.all[..<count]), fallback: fallback)
    }

    @discardableResult
    package func open(_ list: [Migration], fallback: MigrationFallback = .fail) throws
        -> DeviceStore
    {
        store = nil
        let opened = try DeviceStore(
            path: Self.path, migrations: Migrations(list), fallback: fallback,
            vfs: disk.vfsName, now: 5_000,
            randomBits: { [unowned self] in
                bits += 1
                return bits
            })
        store = opened
        return opened
    }

    package func close() {
        store = nil
    }

    package func opened() throws -> DeviceStore {
        guard let store else { throw FixtureError.leased }
        return store
    }

    // MARK: - Work

    @discardableResult
    package func write<Result>(_ body: (WriteContext) throws -> Result) throws -> Result {
        try opened().write(now: 1_000, body)
    }

    package func gather() throws -> SyncRequest {
        let gathered = try opened().gather(
            owner: "test", lease: 1_000, byteLimit: 1 << 20, includesChanges: true, now: 1_000)
        guard case .request(let bytes, _) = gathered else { throw FixtureError.leased }
        return try SyncCoder.decodeRequest(bytes)
    }

    @discardableResult
    package func apply(_ sets: [ChangeSet], reaching revision: Revision) throws -> RebaseReport {
        let report = try opened().apply(
            sets[...], reaching: revision, lineage: "l\(revision)", dataSet: "d", owner: "test",
            now: 2_000)
        guard let report else { throw FixtureError.leased }
        return report
    }

    /// Another program on the file: foreign keys off, no recursive triggers.
    package func shell(_ sql: String) throws {
        try Connection(path: Self.path, mode: .readWrite, vfs: disk.vfsName).execute(sql)
    }

    private func fill() throws {
        try apply(
            [
                .entry(
                    1,
                    .created(
                        "teams", 5, at: 1,
                        ["name": "Falcons", "city": "Oslo", "nickname": "Fal", "colour": "red"]),
                    .created("teams", 6, at: 1, ["name": "Hawks", "city": "Bonn"]),
                    .created(
                        "players", 11, at: 1,
                        ["team_id": 5, "name": "Ann", "email": "ann@x", "shirt": 1]),
                    .created(
                        "players", 12, at: 1, ["team_id": 5, "name": "Bea", "email": "bea@x"]),
                    .created("players", 13, at: 1, ["team_id": 6, "name": "Cid"]),
                    .created("players", 14, at: 1, ["team_id": 6, "name": "Eve"])),
                .entry(
                    2,
                    .created(
                        "venues", 31, at: 2,
                        ["name": "Hall", "seats": 120, "team_id": 5, "roof": true]),
                    .created("venues", 32, at: 2, ["name": "Yard", "team_id": 99])),
            ], reaching: 2)
        // Refused.
        try write { try $0.update("teams", .integer(6), ["city": "Rome"]) }
        let refused = try gather().changeSets[0].identifier ?? ""
        try apply(
            [
                .entry(3, .updated("teams", 6, at: 3, ["city": "Kiel", "nickname": "Haw"])),
                .refusal(refused, .stale),
            ], reaching: 3)
        // Sent, with no answer yet.
        try write { context in
            try context.update("teams", .integer(5), ["city": "Paris"])
            try context.update("players", .integer(12), ["email": "bea@y"])
            try context.insert("teams", ["name": "Owls"])
        }
        _ = try gather()
        // Not sent.
        try write { context in
            try context.insert(
                "players", ["name": "Dan", "team_id": -2, "email": "dan@x", "shirt": 4])
            try context.update("players", .integer(11), ["email": "ann@z", "name": "Anna"])
        }
        try write { try $0.delete("players", .integer(13)) }
        // Noted, but in no change set.
        try shell(
            "UPDATE players SET email = 'shell' WHERE id = 11; INSERT INTO notes VALUES ('s', 'x')")
    }

    // MARK: - Looking

    /// All the file holds, as text; the identifiers of change sets made by migrations left out.
    package func content() throws -> String { try Self.content(on: disk) }

    /// What `content` says, of a file that SQLite finds whole.
    package static func content(on disk: FaultDisk) throws -> String {
        let connection = try Connection(path: Self.path, vfs: disk.vfsName)
        try FileState.check(connection)
        let objects = try connection.prepare(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"
        ).rows { (row) throws(SQLiteError) in (row.text(0), row.text(1), row.text(2)) }
        var text = ""
        for (kind, name, sql) in objects {
            text += "\(kind) \(name) \(sql)\n"
            guard kind == "table" else { continue }
            let rows = try connection.prepare("SELECT * FROM \"\(name)\"")
            let lines = try rows.rows { (row) throws(SQLiteError) in
                (0..<rows.columnCount).map { column in
                    let isMade =
                        name == "martlet_outbox" && column == 1 && row.integer(0) > 4
                    return isMade ? "made" : row.text(column)
                }.joined(separator: "|")
            }
            text += lines.map { "  \($0)\n" }.joined()
        }
        return text
    }

    package func isSound() throws -> Bool {
        let connection = try Connection(path: Self.path, vfs: disk.vfsName)
        return try connection.text("PRAGMA integrity_check") == "ok"
    }

    /// The rows of a query, each as its values in text.
    package func rows(_ sql: String) throws -> [String] {
        let connection = try Connection(path: Self.path, vfs: disk.vfsName)
        let rows = try connection.prepare(sql)
        return try rows.rows { (row) throws(SQLiteError) in
            (0..<rows.columnCount).map { row.text($0) }.joined(separator: "|")
        }
    }
}
