internal import MartletRedis
internal import MartletServerCore
internal import SystemKit

/// What a data set is kept in: an SQLite file of its own, or a PostgreSQL database.
///
/// The one place above `ServerStorage` where the two differ.
protocol DataSetBacking: Sendable {
    /// Opens the data set for its writer. Called once, on the writer's queue; blocks.
    /// - Parameter now: Milliseconds since 1970.
    /// - Throws: What says to the operator what to do.
    func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet
}

/// An open data set. The storage and the log stay on the writer's queue.
struct OpenedDataSet {
    let storage: any ServerStorage
    /// What the writer reads the log with.
    let log: any LogSource
    /// CREATE statements that make a device's tables.
    let ddl: String
    /// The state of the tables as opened; where a look finds another, the data set is opened again.
    let tables: Int64
    let readers: any DataSetReaders
}

/// Makes what reads a data set beside its writer. What is made has a connection of its own, opened
/// when it is first needed, and is confined to whoever made it.
protocol DataSetReaders: Sendable {
    /// Whether it is worth connecting before a request needs it.
    var isRemote: Bool { get }
    func log() -> any LogSource
    func check() -> any CheckSource
    /// A file of the data set at one moment, to make snapshots of; blocks.
    /// - Parameters:
    ///   - folder: Where it may be made; what is there of an earlier one is replaced.
    ///   - isWanted: Asked again and again; once it says no, this ends with an error.
    func snapshotFile(in folder: String, while isWanted: @escaping () -> Bool) throws
        -> SnapshotFile
    /// What looks for others' writes.
    func watch() -> any StorageWatch
    /// Returns a function that says at little cost, on any thread, whether nothing was written
    /// since its last call; nil if only a look can tell.
    func quiet() -> (@Sendable () -> Bool)?
    /// What reads other programs' writes; nil where they are noted without.
    func externalReader() throws -> (any ExternalReader)?
    /// What tells other processes of this one's commits; nil where there is no Redis.
    func outlet(of feed: DataSetFeed, name: String) async throws -> Confined<CommitOutlet>?
}

/// Looks, several times a second, for what others wrote; confined to whoever made it.
protocol StorageWatch: AnyObject {
    func look() throws(StorageFault) -> StorageLook
    /// What operators are told: not asked for every change.
    func account() throws(StorageFault) -> StorageStatus
}

/// How other programs' writes stand.
struct StorageStatus: Sendable {
    /// Changes that are in no entry of the log yet.
    var waiting: Int
    /// How long the oldest transaction has been open that has written something, in seconds.
    var oldestWriterSeconds: Double
    /// How a replication slot stands that other programs' writes are read from.
    var slot: SlotStatus?
}

/// How a replication slot stands.
struct SlotStatus {
    /// Whether a server reads it.
    var isActive: Bool
    /// Whether it is gone, or has lost what it had yet to send.
    var isLost: Bool
    /// Bytes of the write-ahead log that are kept for it.
    var retainedBytes: Int64
    /// Bytes of the write-ahead log that nobody has read yet.
    var lagBytes: Int64
}

/// Reads other programs' writes from where the storage keeps them, where somebody has to; confined to
/// whoever made it.
protocol ExternalReader: AnyObject {
    /// Takes what has come, waiting for it no longer than said.
    /// - Returns: Whether anything was found; nil where another process reads, and this one asks
    ///   again later.
    func step(within limit: Duration) throws(StorageFault) -> Bool?
    /// Sentences for the operator, each once.
    func takeNotes() -> [String]
    /// Sentences about writes that are not read, with what to do.
    var faults: [String] { get }
}

/// A file that snapshots are made of.
struct SnapshotFile {
    let path: String
    /// Called when it is no longer needed.
    let remove: () -> Void
}
