internal import Foundation
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import OpenSSLKit
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// Makes a backup of a data set in a file, and restores one. The calls block.
///
/// ```swift
/// let backup = try EmbeddedBackup(directory: "/srv/martlet", dataSet: "club")
/// _ = try backup.make(at: "/backups/club.sqlite", time: "2026-01-31T12:00:00Z")
/// ```
public struct EmbeddedBackup {
    /// The server's data folder.
    private let directory: String
    private let dataSet: String
    /// Called after each step of a restore, for tests that end the process there.
    var afterStep: () -> Void = {}

    /// Chooses a data set of a folder.
    ///
    /// - Throws: `ServerFailure` if the name cannot be a data set's.
    public init(directory: String, dataSet: String) throws {
        try DataSetName.check(dataSet)
        self.directory = directory
        self.dataSet = dataSet
    }

    private var path: String { "\(directory)/\(dataSet).sqlite" }

    /// Copies the data set as it is at one moment, and checks the copy. A server may run meanwhile.
    ///
    /// The folder's tokens for the data set go into a file next to the copy
    /// (`BackupManifest.tokensPath`).
    ///
    /// - Parameters:
    ///   - out: The path of the file to write. There must be no file yet.
    ///   - time: The time of the backup (RFC 3339).
    /// - Throws: `ServerFailure`, `SQLiteError`. A backup that failed has no manifest.
    /// - Complexity: O(*n*) in the bytes of the data set.
    public func make(at out: String, time: String) throws -> BackupManifest {
        guard FileManager.default.fileExists(atPath: path) else {
            throw ServerFailure(
                "There is no data set “\(dataSet)” in “\(directory)”; check --data and --dataset.")
        }
        let outTokens = BackupManifest.tokensPath(of: out)
        for file in [out, outTokens] where FileManager.default.fileExists(atPath: file) {
            throw ServerFailure("There is a file “\(file)” already; give another name.")
        }
        let unfinished = BackupManifest.unfinishedPath(of: out)
        let unfinishedTokens = BackupManifest.unfinishedPath(of: outTokens)
        func clear() {
            for file in [unfinished, unfinished + "-journal", unfinishedTokens] {
                try? FileManager.default.removeItem(atPath: file)
            }
        }
        clear()
        defer { clear() }
        do {
            try copy(to: unfinished)
        } catch let error as SQLiteError where error.isDiskFull || error.isInputOutput {
            throw ServerFailure(
                """
                “\(path)” cannot be copied to “\(out)”: \(error.message). See that both disks are sound, \
                that the second has room, and that “ulimit -f” allows such a file.
                """)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: unfinished)
        let head = try DataSetFile(unfinished).check()
        let sum = try FileSum(of: unfinished)
        var manifest = BackupManifest(
            storage: .sqlite, dataSet: dataSet, identity: head.identity, revision: head.revision,
            lineage: head.lineage, schema: head.schema, time: time, bytes: sum.bytes,
            sha256: sum.sha256)
        if try TokenStore.copy(of: dataSet, in: directory, to: unfinishedTokens) {
            let sum = try FileSum(of: unfinishedTokens)
            manifest.tokens = .init(bytes: sum.bytes, sha256: sum.sha256)
            try BackupManifest.commit(unfinishedTokens, at: outTokens)
        }
        try BackupManifest.commit(unfinished, at: out)
        try manifest.write(beside: out)
        return manifest
    }

    private func copy(to unfinished: String) throws {
        let source = try Connection(path: path, mode: .readWrite)
        let copy = try Connection(path: unfinished)
        try copy.copy(from: source)
        // In this mode the copy stays a single file when another program opens it.
        try copy.execute("PRAGMA journal_mode = DELETE")
    }

    /// The result of a restore.
    public struct Restored: Sendable {
        public let manifest: BackupManifest
        /// The new name of the replaced file; nil if there was none.
        public let kept: String?
        /// The number of good tokens that the folder now has for the data set; nil if the backup
        /// has no tokens.
        public let tokens: Int?
    }

    /// Replaces the data set with a backup, and adds the backup's tokens to those of the folder. No
    /// server may run on the folder.
    ///
    /// Whenever the process dies or the power fails, the data set's name refers to the whole old
    /// file or the whole new one. The new file belongs to the owner of the file that it replaces,
    /// or else to the owner of the folder.
    ///
    /// - Parameters:
    ///   - backup: The path of the backup's file.
    ///   - replaces: True if an existing data set makes room. Its file then gets another name.
    ///   - acceptsOther: True if the backup may be one of a different data set than the existing
    ///     one.
    ///   - label: The text that is added to the existing file's name, such as the time.
    /// - Throws: `ServerFailure`, `SQLiteError`. The data set has not changed then, but the folder
    ///   may have some of the backup's tokens already.
    /// - Complexity: O(*n*) in the bytes of the backup.
    public func restore(
        from backup: String, replaces: Bool, acceptsOther: Bool = false, label: String
    ) throws -> Restored {
        let manifest = try BackupManifest.read(of: backup)
        guard manifest.storage == .sqlite else {
            throw ServerFailure("This is a backup of a PostgreSQL database; give --postgres URL.")
        }
        try manifest.check(backup)
        try TokenStore.makeDirectory(directory)
        let lock = try DirectoryLock(directory: directory)
        defer { withExtendedLifetime(lock) {} }
        let isThere = FileManager.default.fileExists(atPath: path)
        guard replaces || !isThere else {
            throw ServerFailure(
                """
                The data set “\(dataSet)” is there already. With --replace the backup takes its \
                place, and the file is kept under another name.
                """)
        }
        if isThere {
            try UnfinishedRestore(of: dataSet, in: directory).check()
            if !acceptsOther { try refuseOther(manifest) }
        }
        let unfinished = path + ".restoring"
        do {
            try prepare(unfinished, from: backup, manifest)
            let tokens = try restoreTokens(manifest, of: backup)
            try giveToOwner()
            afterStep()
            let kept = isThere ? try keepOld(as: freeName("\(path).before-\(label)")) : nil
            for suffix in ["-wal", "-shm"] { remove(path + suffix) }
            // The snapshots belong to a history that is gone. The server makes new ones.
            remove("\(directory)/snapshots/\(dataSet)")
            afterStep()
            try Folder(path: directory)
                .rename("\(dataSet).sqlite.restoring", to: "\(dataSet).sqlite")
            afterStep()
            return Restored(manifest: manifest, kept: kept, tokens: tokens)
        } catch {
            remove(unfinished)
            throw error
        }
    }

    /// Refuses the backup of a different data set than the existing one. If the existing file
    /// cannot be read, the names decide.
    private func refuseOther(_ manifest: BackupManifest) throws {
        let head = try? DataSetFile(path).head()
        let hasSameName = manifest.dataSet == dataSet
        guard head?.identity != manifest.identity, head != nil || !hasSameName else { return }
        // A server has created an empty data set after the file was lost.
        if head?.revision == 0, hasSameName { return }
        throw ServerFailure(
            """
            The backup is one of the data set “\(manifest.dataSet)” (identity \(manifest.identity)), and \
            “\(path)” is another one, “\(dataSet)” (identity \(head?.identity ?? "unknown")). Give the \
            right backup, or add --other-data-set if this one shall take its place.
            """)
    }

    private func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

    /// Copies a backup, checks it, and writes it through to the disk.
    private func prepare(
        _ unfinished: String, from backup: String, _ manifest: BackupManifest
    ) throws {
        remove(unfinished)
        do {
            try FileManager.default.copyItem(atPath: backup, toPath: unfinished)
        } catch {
            // Foundation's own error names the backup, not the unfinished file.
            throw ServerFailure(
                """
                The backup cannot be copied to “\(unfinished)”. See that the disk there has room, that you may \
                write there, and that “ulimit -f” allows such a file. Nothing was changed.
                """)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: unfinished)
        let head = try DataSetFile(unfinished).check()
        guard head.revision == manifest.revision, head.lineage == manifest.lineage else {
            throw ServerFailure("The backup's log does not end where its manifest says.")
        }
        try DataSetFile(unfinished).retireViews()
        try OpenFile(readingFrom: unfinished).synchronize()
    }

    /// Gives the server's user the files that a restore by another user, such as root, has made.
    private func giveToOwner() throws {
        guard let owner = FileOwner(of: path) ?? FileOwner(of: directory) else { return }
        try owner.take(path + ".restoring")
        for name in ["tokens.sqlite", "tokens.sqlite-wal", "tokens.sqlite-shm", "martlet.lock"] {
            let path = "\(directory)/\(name)"
            if FileManager.default.fileExists(atPath: path) { try owner.take(path) }
        }
    }

    /// Gives the existing file a second name, so that the new file can take the first.
    /// - Returns: The second name.
    private func keepOld(as name: String) throws -> String {
        let files = FileManager.default
        do {
            // Without a write-ahead log, the one file is complete.
            let mode = try Connection(path: path, mode: .readWrite).text(
                "PRAGMA journal_mode = DELETE")
            guard mode == "delete" else { throw Self.inUse(path) }
        } catch let error as SQLiteError {
            guard error.isCorrupt else {
                throw error.isBusy ? Self.inUse(path) : error
            }
            // A damaged file is kept as it is, with its write-ahead log.
            if files.fileExists(atPath: path + "-wal") {
                try files.moveItem(atPath: path + "-wal", toPath: name + "-wal")
            }
        }
        afterStep()
        do {
            try files.linkItem(atPath: path, toPath: name)
        } catch {
            // Some file systems cannot give a file two names.
            try files.copyItem(atPath: path, toPath: name)
            try OpenFile(readingFrom: name).synchronize()
        }
        return name
    }

    /// Returns a name that no file has: two restores may begin within a second.
    private func freeName(_ name: String) -> String {
        var free = name
        var number = 2
        while FileManager.default.fileExists(atPath: free) {
            free = "\(name)-\(number)"
            number += 1
        }
        return free
    }

    private static func inUse(_ path: String) -> ServerFailure {
        ServerFailure("Another program has “\(path)” open; close it, and restore again.")
    }

    private func restoreTokens(_ manifest: BackupManifest, of backup: String) throws -> Int? {
        guard manifest.tokens != nil else { return nil }
        let others = try DataSetDirectory.names(in: directory).contains { $0 != dataSet }
        return try TokenStore(directory: directory).takeOver(
            dataSet, from: BackupManifest.tokensPath(of: backup), takesSalt: !others)
    }
}

/// The file of a data set, read without opening a store on it.
struct DataSetFile {
    /// The end of the log, and the identity and the schema of the data set.
    struct Head {
        let identity: String
        let revision: Revision
        let lineage: String
        let schema: String
    }

    let connection: Connection

    init(_ path: String) throws {
        connection = try Connection(path: path, mode: .readWrite)
    }

    /// Checks that the file is sound and is a data set's.
    ///
    /// - Throws: `ServerFailure` if it is not.
    func check() throws -> Head {
        let problems = try connection.prepare("PRAGMA integrity_check(5)").rows {
            (row) throws(SQLiteError) in row.text(0)
        }
        guard problems == ["ok"] else {
            throw ServerFailure("The file is damaged: \(problems.joined(separator: "; ")).")
        }
        return try head()
    }

    /// Retires the views of a data set that is restored; see `ViewScan.retirement(prefix:)`.
    func retireViews() throws {
        // An older format has no views.
        let table = "SELECT 1 FROM sqlite_schema WHERE name = 'martlet_views'"
        guard try connection.integer(table) == 1 else { return }
        try connection.execute(ViewScan.retirement(prefix: "martlet_"))
    }

    func head() throws -> Head {
        let isDataSet = try connection.integer(
            "SELECT 1 FROM sqlite_schema WHERE name = 'martlet_dataset'")
        guard isDataSet == 1 else { throw ServerFailure("The file is no data set's.") }
        let row = try connection.prepare("SELECT identity, revision, hash FROM martlet_dataset")
        defer { row.reset() }
        guard try row.step() else { throw ServerFailure("The file is no data set's.") }
        return Head(
            identity: row.text(0), revision: row.integer(1),
            lineage: Hexadecimal.text(row.blob(2)),
            schema: try SchemaReader.read(connection).fingerprint)
    }
}
