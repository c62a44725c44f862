internal import MartletEmbedded
internal import MartletModel
internal import MartletRedis
internal import MartletServerCore
internal import OpenSSLKit
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// A data set in a SQLite file.
struct EmbeddedBacking: DataSetBacking {
    let path: String
    /// The CREATE statements of the schema.
    let script: String

    func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet {
        do {
            return try openFile(now: now, unsendable: unsendable)
        } catch {
            throw ServerFailure("“\(path)” cannot be opened: \(error)")
        }
    }

    private func openFile(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet {
        let (directory, name) = location
        try UnfinishedRestore(of: name, in: directory).check()
        let store = try openStore(now: now, unsendable: unsendable)
        let readers = Readers(path: path, schema: store.schema, unsendable: unsendable)
        let connection = try Connection(path: path, mode: .readWrite)
        return OpenedDataSet(
            storage: store, log: readers.log(),
            ddl: try SchemaMigration.ddl(of: connection, triggers: false), tables: 0,
            readers: readers)
    }

    /// The folder and the data set's name.
    private var location: (directory: String, name: String) {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return (
            String(path.dropLast(name.count + 1)), String(name.dropLast(".sqlite".count))
        )
    }

    /// Opens the store.
    ///
    /// - Throws: `ServerFailure` with the remedy; other errors as they are.
    private func openStore(now: Int64, unsendable: UnsendableRows) throws -> EmbeddedStore {
        do {
            return try EmbeddedStore(
                path: path, script: script, identity: Hexadecimal.text(secureRandomBytes(16)),
                now: now, unsendable: unsendable)
        } catch let fault as StorageFault {
            throw ServerFailure("\(fault). \(Self.remedy(for: fault))")
        }
    }

    /// Returns the operator's remedy for a fault at the opening.
    static func remedy(for fault: StorageFault) -> String {
        switch fault.kind {
        case .full: "Make room on the disk; a server needs some at its start, too."
        case .busy: "End the other program that has locked the file."
        case .refused:
            """
            The rows do not fit the schema file. Correct the rows, such as those with equal values in \
            the columns named here, or take the new rule out of the schema.
            """
        case .failed, .changed, .moved, .rolledBack, .unreachable:
            """
            The file, and its folder, have to belong to the user that the server runs as; martlet \
            doctor says more.
            """
        }
    }

    private struct Readers: DataSetReaders {
        let path: String
        let schema: Schema
        let unsendable: UnsendableRows
        var isRemote: Bool { false }

        func log() -> any LogSource {
            EmbeddedLog(path: path, vfs: nil, schema: schema, unsendable: unsendable)
        }

        func check() -> any CheckSource {
            EmbeddedCheck(path: path, vfs: nil, schema: schema, unsendable: unsendable)
        }

        func snapshotFile(
            in folder: String, of view: ViewMoment?, while isWanted: @escaping () -> Bool
        ) -> SnapshotFile {
            // The data set is a file already, and to read it delays nobody.
            SnapshotFile(path: path, isOneMoment: false, remove: {})
        }

        func watch() -> any StorageWatch { Watch(path: path) }

        func quiet() -> FileQuiet? { FileQuiet(path: path) }

        func externalReader() -> (any ExternalReader)? { nil }

        func outlet(of feed: DataSetFeed, name: String) -> Confined<CommitOutlet>? { nil }
    }

    private final class Watch: StorageWatch {
        private let watch: EmbeddedWatch

        init(path: String) {
            watch = EmbeddedWatch(path: path)
        }

        func look() throws(StorageFault) -> StorageLook { try watch.look() }

        func account() throws(StorageFault) -> StorageStatus {
            // A writer blocks all others, and they report it, so its age needs no check.
            StorageStatus(waiting: try watch.waiting(), oldestWriterSeconds: 0)
        }
    }
}
