internal import MartletRedis
internal import MartletServerCore
internal import SystemKit

/// The storage of a data set: a SQLite file of its own, or a PostgreSQL database.
///
/// While a data set is served, this is the only place above `ServerStorage` in which the two differ.
protocol DataSetBacking: Sendable {
    /// Opens the data set for its writer. It is called once, on the writer's queue, and blocks.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Throws: Errors that say what the operator should do.
    func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet
}

/// An open data set. The storage and the log stay on the writer's queue.
struct OpenedDataSet {
    let storage: any ServerStorage
    /// The source with which the writer reads the log.
    let log: any LogSource
    /// CREATE statements that make a device's tables.
    let ddl: String
    /// The state of the tables as they were opened. If a look finds another state, the data set is
    /// reopened.
    let tables: Int64
    let readers: any DataSetReaders
}

/// Makes the sources that read a data set next to its writer.
///
/// Each source has a connection of its own, which it opens when it first needs it. It is confined
/// to the queue of its maker.
protocol DataSetReaders: Sendable {
    /// True if it is worthwhile to connect before a request needs the connection.
    var isRemote: Bool { get }
    func log() -> any LogSource
    func check() -> any CheckSource
    /// Returns a file of the data set at one moment, from which snapshots are made. The call
    /// blocks.
    ///
    /// - Parameters:
    ///   - folder: The folder in which the file may be made. An earlier file there is replaced.
    ///   - view: The view whose records are wanted; nil for all records.
    ///   - isWanted: Called repeatedly. When it returns false, this ends with an error.
    func snapshotFile(
        in folder: String, of view: ViewMoment?, while isWanted: @escaping () -> Bool
    ) throws -> SnapshotFile
    /// Returns the watch for writes of other processes and programs.
    func watch() -> any StorageWatch
    /// Returns a check that tells at little cost, on any thread, whether anything was written. Nil
    /// if only a look can tell.
    func quiet() -> FileQuiet?
    /// Returns the reader of external writes; nil if they are noted without one.
    func externalReader() throws -> (any ExternalReader)?
    /// Returns the outlet that informs other processes of this one's commits; nil without Redis.
    func outlet(of feed: DataSetFeed, name: String) async throws -> Confined<CommitOutlet>?
}

/// Looks several times a second for writes of other processes and programs. It is confined to the
/// queue of its maker.
protocol StorageWatch: AnyObject {
    func look() throws(StorageFault) -> StorageLook
    /// Returns the figures for operators. It is not called for every change.
    func account() throws(StorageFault) -> StorageStatus
}

/// The state of external writes.
struct StorageStatus: Sendable {
    /// The number of changes that are in no entry of the log yet.
    var waiting: Int
    /// The age in seconds of the oldest open transaction that has written something.
    var oldestWriterSeconds: Double
    /// The state of the replication slot from which external writes are read; nil if there is none.
    var slot: SlotStatus?
}

/// The state of a replication slot.
struct SlotStatus {
    /// True if a server reads it.
    var isActive: Bool
    /// True if it is gone, or has lost changes that it had not sent.
    var isLost: Bool
    /// The bytes of the write-ahead log that PostgreSQL keeps for it.
    var retainedBytes: Int64
    /// The bytes of the write-ahead log that no server has read yet.
    var lagBytes: Int64
}

/// Reads external writes from where the storage keeps them, if they need a reader. It is confined
/// to the queue of its maker.
protocol ExternalReader: AnyObject {
    /// Reads the writes that have arrived, and waits for them at most for `limit`.
    ///
    /// - Returns: True if there were any; nil if another process reads, and this one should ask
    ///   later.
    func step(within limit: Duration) throws(StorageFault) -> Bool?
    /// Returns sentences for the operator, each of them once.
    func takeNotes() -> [String]
    /// Sentences about writes that are not read, with the remedy.
    var faults: [String] { get }
}

/// A view whose records a snapshot has.
struct ViewMoment {
    let number: Int64
    /// Brings the view up to the log's end, and runs a function before anything else is written.
    let reading: ConsistentReading
}

/// A file from which snapshots are made.
struct SnapshotFile {
    let path: String
    /// True if it has the rows of one moment only.
    let isOneMoment: Bool
    /// Removes the file, if that is needed, after the last use.
    let remove: () -> Void
}
