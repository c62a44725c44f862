internal import Foundation
public import MartletModel
internal import MartletProtocol
internal import SystemKit

/// What stands beside a backup: what it holds, and how it is told apart from a damaged one.
public struct BackupManifest: Hashable, Sendable, Codable {
    /// What kind of file the backup is.
    public enum Storage: String, Hashable, Sendable, Codable {
        /// A data set's SQLite file.
        case sqlite
        /// A dump of `pg_dump`, in its custom format.
        case postgres
    }

    /// Raised with every change that older releases could not read.
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
    /// RFC 3339, UTC.
    public let time: String
    /// Of the backup's file.
    public var bytes: Int64
    /// SHA-256 of the backup's file, in hexadecimal.
    public var sha256: String
    /// The file of tokens beside the backup; nil where there is none.
    public var tokens: Attachment?

    /// A file that belongs to a backup.
    public struct Attachment: Hashable, Sendable, Codable {
        public let bytes: Int64
        /// In hexadecimal.
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

    /// Where the manifest of a backup stands.
    public static func path(of backup: String) -> String { backup + ".json" }

    /// Where the tokens of a backup stand.
    public static func tokensPath(of backup: String) -> String { backup + ".tokens" }

    /// Reads the manifest of a backup.
    /// - Throws: `ServerFailure` that says what to do.
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

    /// Writes the manifest beside a backup; both are on the disk when this returns.
    public func write(beside backup: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let draft = Self.draftPath(of: Self.path(of: backup))
        defer { try? FileManager.default.removeItem(atPath: draft) }
        try encoder.encode(self).write(to: URL(fileURLWithPath: draft))
        try Self.place(draft, at: Self.path(of: backup))
    }

    /// Where a file of a backup stands until it is complete: a second command that makes it at the same
    /// time has another.
    package static func draftPath(of path: String) -> String {
        "\(path).\(ProcessInfo.processInfo.processIdentifier).partial"
    }

    /// Gives a file of a backup, which is complete, its name; both are on the disk when this returns.
    package static func place(_ draft: String, at path: String) throws {
        let target = URL(fileURLWithPath: path)
        do {
            try OpenFile(readingFrom: draft).synchronize()
            try Folder(path: target.deletingLastPathComponent().path)
                .rename(URL(fileURLWithPath: draft).lastPathComponent, to: target.lastPathComponent)
        } catch {
            throw ServerFailure(
                """
                The file “\(path)” could not be written to its disk (\(error)). See that it has room and is \
                sound, and make the backup again under another name.
                """)
        }
    }

    /// Whether the backup's files are those the manifest was written for.
    /// - Throws: `ServerFailure` where one is not.
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
