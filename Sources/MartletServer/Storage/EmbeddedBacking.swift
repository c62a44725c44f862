internal import MartletCore
internal import MartletProtocol
internal import MartletRedis
internal import MartletServerCore
internal import OpenSSLKit
internal import SQLiteKit
internal import SQLiteRecords

/// A data set in an SQLite file.
struct EmbeddedBacking: DataSetBacking {
    let path: String
    /// CREATE statements.
    let script: String

    func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet {
        let store = try EmbeddedStore(
            path: path, script: script, identity: Hexadecimal.text(secureRandomBytes(16)),
            now: now, unsendable: unsendable)
        let readers = Readers(path: path, schema: store.schema, unsendable: unsendable)
        let connection = try Connection(path: path, mode: .readWrite)
        return OpenedDataSet(
            storage: store, log: readers.log(),
            ddl: try SchemaMigration.ddl(of: connection, triggers: false), tables: 0,
            readers: readers)
    }

    private struct Readers: DataSetReaders {
        let path: String
        let schema: Schema
        let unsendable: UnsendableRows

        func log() -> any LogSource {
            EmbeddedLog(path: path, vfs: nil, schema: schema, unsendable: unsendable)
        }

        func check() -> any CheckSource {
            EmbeddedCheck(path: path, vfs: nil, schema: schema, unsendable: unsendable)
        }

        func snapshotFile(in folder: String, while isWanted: @escaping () -> Bool) -> SnapshotFile {
            // It is a file already, and reading it holds up nobody.
            SnapshotFile(path: path, remove: {})
        }

        func watch() -> any StorageWatch { Watch(path: path) }

        func outsideReader() -> (any OutsideReader)? { nil }

        func outlet(of feed: DataSetFeed, name: String) -> Confined<CommitOutlet>? { nil }
    }

    private final class Watch: StorageWatch {
        private let watch: EmbeddedWatch

        init(path: String) {
            watch = EmbeddedWatch(path: path)
        }

        func look() throws(StorageFault) -> StorageLook { try watch.look() }

        func account() throws(StorageFault) -> StorageAccount {
            // A writer holds up all others, and they say so; nobody needs to look for it.
            StorageAccount(waiting: try watch.waiting(), oldestWriterSeconds: 0)
        }
    }
}
