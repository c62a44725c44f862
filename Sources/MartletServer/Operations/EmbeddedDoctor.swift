internal import Foundation
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// Finds faults in the files of a data folder. It changes nothing, and a server may run. The calls
/// block.
///
/// ```swift
/// let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
/// for finding in try EmbeddedDoctor(directory: "/srv/martlet", now: now).findings() {
///     print(finding.what, finding.fix)
/// }
/// ```
public struct EmbeddedDoctor {
    private let directory: String
    /// The time, in milliseconds since 1970.
    private let now: Int64

    /// Prepares the check of a data folder.
    ///
    /// - Parameters:
    ///   - directory: The path of the data folder.
    ///   - now: The time, in milliseconds since 1970.
    public init(directory: String, now: Int64) {
        self.directory = directory
        self.now = now
    }

    /// A write-ahead log that is larger than this many bytes means that a reader does not end.
    private static let largeLog: Int64 = 256 << 20
    private static let leastRoom: Int64 = 1 << 30

    /// Returns the faults; empty if there are none.
    ///
    /// - Throws: `ServerFailure` if there is no such folder.
    /// - Complexity: O(*n*) in the bytes of the data sets, which are read completely.
    public func findings() throws -> [Finding] {
        guard FileManager.default.fileExists(atPath: directory) else {
            throw ServerFailure("There is no folder “\(directory)”; check --data.")
        }
        guard !FileFacts.isOnReadOnlyDisk(directory) else { return [readOnly] }
        var found = permissions() + owners()
        for name in try UnfinishedRestore.dataSets(in: directory) {
            guard let problem = UnfinishedRestore(of: name, in: directory).problem else { continue }
            found.append(
                Finding(
                    .error, "restore", what: problem.what,
                    why: "The server makes no empty data set in its place, and does not start.",
                    fix: problem.fix))
        }
        let names = try DataSetDirectory.names(in: directory)
        var bytes: Int64 = 0
        for name in names {
            let path = "\(directory)/\(name).sqlite"
            bytes = max(bytes, size(path))
            do {
                found += try FileCheck(name: name, path: path, now: now).findings()
            } catch {
                found.append(
                    Finding(
                        .error, "readable", what: "The data set “\(name)” cannot be read: \(error)",
                        why: "The server cannot serve it.",
                        fix: "Check the file's rights, or restore a backup: martlet restore."))
            }
            if size(path + "-wal") > Self.largeLog {
                found.append(
                    Finding(
                        .warning, "wal",
                        what:
                            "The log beside “\(name).sqlite” has \(size(path + "-wal") >> 20) MiB.",
                        why:
                            "A program that reads the file for long keeps it from being used again.",
                        fix: "End that program; the log shrinks at the server's next start."))
            }
        }
        return found + Self.room(in: directory, for: bytes)
    }

    /// The finding for a read-only disk. SQLite does not open files there, so this is the only
    /// finding.
    private var readOnly: Finding {
        Finding(
            .error, "readOnly", what: "The disk of “\(directory)” can only be read.",
            why: "The server writes; a file system that met an error may have become read-only.",
            fix:
                "See the kernel's messages (dmesg), and mount the disk so that it can be written to."
        )
    }

    private func permissions() -> [Finding] {
        let names = (try? DataSetDirectory.names(in: directory)) ?? []
        let paths =
            [directory, directory + "/tokens.sqlite"] + names.map { "\(directory)/\($0).sqlite" }
        var found: [Finding] = []
        for path in paths {
            guard let facts = try? FileManager.default.attributesOfItem(atPath: path),
                let mode = (facts[.posixPermissions] as? NSNumber)?.intValue
            else { continue }
            // Other users cannot read a data set's file if they cannot enter its folder.
            let isOpen = path == directory || path.hasSuffix("tokens.sqlite")
            if isOpen, mode & 0o077 != 0 {
                found.append(
                    Finding(
                        .warning, "permissions", what: "Others on this machine may open “\(path)”.",
                        why: "It holds everybody's data, or the hashes of tokens.",
                        fix: "chmod go-rwx '\(path)'"))
            }
            if !FileManager.default.isWritableFile(atPath: path) {
                found.append(
                    Finding(
                        .error, "permissions", what: "“\(path)” cannot be written to by this user.",
                        why: "The server needs to; run doctor as the server's user.",
                        fix: "chown it to the server's user."))
            }
        }
        return found
    }

    /// Returns findings about files that belong to a different user than their folder, as after
    /// work by root.
    private func owners() -> [Finding] {
        guard let owner = FileOwner(of: directory) else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.sorted().compactMap { name in
            let path = "\(directory)/\(name)"
            guard let other = FileOwner(of: path), other.user != owner.user else { return nil }
            return Finding(
                .error, "owner",
                what:
                    "“\(path)” belongs to the user \(other.user), its folder to the user \(owner.user).",
                why: "The server cannot open what another user has made.",
                fix: "chown \(owner.user):\(owner.group) '\(path)'")
        }
    }

    /// Returns a finding if a disk lacks the room for a second copy of the data.
    ///
    /// - Parameters:
    ///   - directory: A folder on the disk. If the file system gives no answer, nothing is found.
    ///   - bytes: The size of the data.
    package static func room(in directory: String, for bytes: Int64) -> [Finding] {
        guard let facts = try? FileManager.default.attributesOfFileSystem(forPath: directory),
            let free = (facts[.systemFreeSize] as? NSNumber)?.int64Value,
            free < max(leastRoom, bytes)
        else { return [] }
        return [
            Finding(
                free < leastRoom >> 3 ? .error : .warning, "space",
                what: "The disk has \(free >> 20) MiB left.",
                why:
                    "A full disk stops every write; snapshots and backups need the data's size again.",
                fix: "Free some space, or move the data to a larger disk.")
        ]
    }

    private func size(_ path: String) -> Int64 {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        return (facts?[.size] as? NSNumber)?.int64Value ?? 0
    }
}

/// Finds faults in one data set's file.
private struct FileCheck {
    let name: String
    let now: Int64
    private let file: DataSetFile
    private var connection: Connection { file.connection }

    init(name: String, path: String, now: Int64) throws {
        self.name = name
        self.now = now
        file = try DataSetFile(path)
    }

    func findings() throws -> [Finding] {
        do {
            _ = try file.check()
        } catch let failure as ServerFailure {
            return [
                Finding(
                    .error, "integrity", what: "“\(name)”: \(failure.description)",
                    why: "What is damaged cannot be served, and may spread.",
                    fix: "Stop the server, keep a copy of the file, and restore a backup.")
            ]
        }
        let format =
            try connection.integer(
                "SELECT value FROM martlet_meta WHERE key = 'format'") ?? 0
        guard format <= EmbeddedTables.format else {
            return [
                Finding(
                    .error, "format", what: "“\(name)” was written by a newer Martlet.",
                    why: "This version does not know its tables of format \(format).",
                    fix: "Use that version.")
            ]
        }
        let found = try log() + tables() + references() + keys()
        // A file of an older format has no notes yet. The server's next start creates them.
        guard format == EmbeddedTables.format else { return found }
        return found + (try RowCheck(name: name, connection: connection).findings())
    }

    private func log() throws -> [Finding] {
        var found: [Finding] = []
        let isWhole = try connection.integer(
            """
            SELECT ifnull((SELECT max(revision) FROM martlet_log), 0) = revision
                AND ifnull((SELECT hash FROM martlet_log ORDER BY revision DESC LIMIT 1), hash) = hash
            FROM martlet_dataset
            """)
        if isWhole != 1 {
            found.append(
                Finding(
                    .error, "log", what: "The log of “\(name)” does not end where the data set is.",
                    why: "Devices would miss entries, or be told of another history.",
                    fix: "Restore a backup; devices keep what they have and send it again."))
        }
        let last = try connection.integer("SELECT max(time) FROM martlet_log") ?? 0
        if last > now + 60_000 {
            found.append(
                Finding(
                    .warning, "clock",
                    what:
                        "The last entry of “\(name)” is \((last - now) / 1_000) s ahead of the clock.",
                    why: "Tokens that end, and times in lists, go by the clock.",
                    fix: "Set the clock, and keep it right: timedatectl set-ntp true"))
        }
        if try connection.prepare("PRAGMA journal_mode").rows({ (row) throws(SQLiteError) in
            row.text(0)
        }) != ["wal"] {
            found.append(
                Finding(
                    .warning, "journal", what: "“\(name)” is not in WAL mode.",
                    why: "Until a server has opened it, readers and writers wait for each other.",
                    fix: "Nothing: the server switches it on."))
        }
        return found
    }

    private func tables() throws -> [Finding] {
        try EmbeddedTables.change(in: connection).map { change in
            [
                Finding(
                    .error, "tables", what: "“\(name)”: \(change).",
                    why:
                        "A server that took the tables as they are might show rows that policies hide.",
                    fix:
                        "Undo the change, or restore a backup. If it is wanted, change the schema file, too."
                )
            ]
        } ?? []
    }

    private func references() throws -> [Finding] {
        var found: [Finding] = []
        let schema = try SchemaReader.read(connection)
        let broken = try connection.prepare("PRAGMA foreign_key_check").rows {
            (row) throws(SQLiteError) in row.text(0)
        }
        for table in Set(broken).sorted() {
            found.append(
                Finding(
                    .error, "references",
                    what: "“\(name)”: rows of \(table) refer to what is not there.",
                    why: "Devices cannot take such rows in, and quarantine them.",
                    fix: "PRAGMA foreign_key_check lists them; correct or delete them."))
        }
        for type in schema.types {
            for reference in type.references {
                let indexed = try connection.integer(
                    """
                    SELECT 1 FROM pragma_index_list('\(type.name)') AS list,
                        pragma_index_info(list.name) AS part
                    WHERE part.seqno = 0 AND part.name = '\(reference.attribute)'
                    """)
                guard indexed == nil else { continue }
                found.append(
                    Finding(
                        .warning, "index",
                        what: "“\(name)”: \(type.name).\(reference.attribute) has no index.",
                        why: "Every delete of \(reference.target) reads all of \(type.name).",
                        fix: """
                            Add to the schema: CREATE INDEX \(type.name)_\(reference.attribute) \
                            ON \(type.name)(\(reference.attribute));
                            """))
            }
        }
        return found
    }

    /// Returns findings about the counters of new keys.
    ///
    /// A counter at or below an existing key would assign a key twice, and one above the greatest
    /// key assigns none. Keys above `greatestFollowedKey` do not count, because the counter does
    /// not follow them.
    private func keys() throws -> [Finding] {
        var found: [Finding] = []
        for type in try SchemaReader.read(connection).types where type.keyKind == .integer {
            let key = SQLName.quoted(type.key)
            let row = try connection.prepare(
                """
                SELECT t.next_id, max(\
                coalesce((SELECT max(\(key)) FROM \(SQLName.quoted(type.name)) WHERE \(key) <= ?2), 0), \
                coalesce((SELECT max(id) FROM martlet_records WHERE type = t.number AND id <= ?2), 0)) \
                FROM martlet_types AS t WHERE t.name = ?1
                """)
            row.bind(1, text: type.name)
            row.bind(2, integer: EmbeddedStore.greatestFollowedKey)
            defer { row.reset() }
            guard try row.step() else { continue }
            let (next, largest) = (row.integer(0), row.integer(1))
            let isBehind = next <= largest
            guard isBehind || next > Limits.greatestKey else { continue }
            found.append(
                Finding(
                    .error, "keys",
                    what: isBehind
                        ? "“\(name)”: \(type.name) has or had the key \(largest); the next is \(next)."
                        : "“\(name)”: \(type.name) has no keys left; the next would be \(next).",
                    why: isBehind
                        ? "The server would give a key that is taken."
                        : "The server puts off new records.",
                    fix: """
                        Stop the server, then: UPDATE martlet_types SET next_id = \(largest + 1) \
                        WHERE name = '\(type.name)';
                        """))
        }
        return found
    }
}
