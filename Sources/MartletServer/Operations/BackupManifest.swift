internal import Foundation
public import MartletModel
internal import MartletProtocol
internal import SystemKit

/// The description of a backup, in a file next to it. It says what the backup holds, and shows
/// whether the backup is damaged.
///
/// ```swift
/// let manifest = try BackupManifest.read(of: "/backups/club.sqlite")
/// try manifest.check("/backups/club.sqlite")
/// ```
public struct BackupManifest: Hashable, Sendable, Codable {
    /// The kind of file that the backup is.
    public enum Storage: String, Hashable, Sendable, Codable {
        /// The SQLite file of a data set.
        case sqlite
        /// A dump of `pg_dump`, in its custom format.
        case postgres
    }

    /// The version of the manifest's format. It rises with every change that older releases could
    /// not read.
    public static let format = 1

    public var format = Self.format
    public let storage: Storage
    /// The data set's name.
    public let dataSet: String
    public let identity: String
    public let revision: Revision
    /// The chained hash of the log at that revision.
    public let lineage: String
    /// The schema's fingerprint, as `GET /schema` names it.
    public let schema: String
    /// The time of the backup (RFC 3339, UTC).
    public let time: String
    /// The size of the backup's file, in bytes.
    public var bytes: Int64
    /// The SHA-256 of the backup's file, in hexadecimal.
    public var sha256: String
    /// The file of tokens next to the backup; nil if there is none.
    public var tokens: Attachment?

    /// A file that belongs to a backup.
    public struct Attachment: Hashable, Sendable, Codable {
        public let bytes: Int64
        /// The SHA-256 of the file, in hexadecimal.
        public let sha256: String
    }

    package init(
        storage: Storage, dataSet: String, identity: String, revision: Revision, lineage: String,
        schema: String, time: String, bytes: Int64, sha256: String
    ) {
        self.storage = storage
        self.dataSet = dataSet
        self.identity = identity
        self.revision = revision
        self.lineage = lineage
        self.schema = schema
        self.time = time
        self.bytes = bytes
        self.sha256 = sha256
    }

    /// Returns the path of a backup's manifest.
    public static func path(of backup: String) -> String { backup + ".json" }

    /// Returns the path of a backup's tokens.
    public static func tokensPath(of backup: String) -> String { backup + ".tokens" }

    /// Reads the manifest of a backup.
    ///
    /// - Throws: `ServerFailure`, which says what to do, if there is no manifest or it cannot be
    ///   read.
    public static func read(of backup: String) throws -> BackupManifest {
        guard let bytes = FileManager.default.contents(atPath: path(of: backup)) else {
            throw ServerFailure(
                "There is no manifest “\(path(of: backup))”; a backup is two files, give both.")
        }
        do {
            let manifest = try JSONDecoder().decode(BackupManifest.self, from: bytes)
            guard manifest.format == format else {
                throw ServerFailure(
                    "The backup is of format \(manifest.format), which this version does not know.")
            }
            return manifest
        } catch let failure as ServerFailure {
            throw failure
        } catch {
            throw ServerFailure("The manifest “\(path(of: backup))” cannot be read.")
        }
    }

    /// Writes the manifest next to a backup. Both are on the disk when this returns.
    ///
    /// - Throws: `ServerFailure` if the file cannot be put on its disk; Foundation's error if it
    ///   cannot be written.
    public func write(beside backup: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let unfinished = Self.unfinishedPath(of: Self.path(of: backup))
        defer { try? FileManager.default.removeItem(atPath: unfinished) }
        try encoder.encode(self).write(to: URL(fileURLWithPath: unfinished))
        try Self.commit(unfinished, at: Self.path(of: backup))
    }

    /// Returns the path of a backup's file until it is complete. A second process that makes the
    /// same backup has another path.
    package static func unfinishedPath(of path: String) -> String {
        "\(path).\(ProcessInfo.processInfo.processIdentifier).partial"
    }

    /// Gives a complete file of a backup its name. The file and the name are on the disk when this
    /// returns.
    ///
    /// - Throws: `ServerFailure` if the disk does not take them.
    package static func commit(_ unfinished: String, at path: String) throws {
        let target = URL(fileURLWithPath: path)
        do {
            try OpenFile(readingFrom: unfinished).synchronize()
            try Folder(path: target.deletingLastPathComponent().path)
                .rename(
                    URL(fileURLWithPath: unfinished).lastPathComponent, to: target.lastPathComponent
                )
        } catch {
            throw ServerFailure(
                """
                The file “\(path)” could not be written to its disk (\(error)). See that it has room and is \
                sound, and make the backup again under another name.
                """)
        }
    }

    /// Checks that the backup's files are the ones that the manifest was written for.
    ///
    /// - Throws: `ServerFailure` if a file is missing or different.
    /// - Complexity: O(*n*) in the bytes of the files, which are read completely.
    public func check(_ backup: String) throws {
        try Self.check(backup, Attachment(bytes: bytes, sha256: sha256))
        if let tokens { try Self.check(Self.tokensPath(of: backup), tokens) }
    }

    private static func check(_ path: String, _ expected: Attachment) throws {
        let found = try FileSum(of: path)
        guard found.bytes == expected.bytes, found.sha256 == expected.sha256 else {
            throw ServerFailure(
                """
                The file “\(path)” is not what was backed up: it has \(found.bytes) bytes of \
                \(expected.bytes), or others. Take another copy of it.
                """)
        }
    }
}
