internal import CSQLite

/// A disk in memory of one simulated machine, which crashes and fails on request.
///
/// It is a VFS of SQLite (https://sqlite.org/vfs.html). Open a connection with `vfs: vfsName` and
/// any path. As on a real disk, a crash loses some or all changes that were not synced. Locks
/// between connections are real, waiting takes no time, and the clock is `now`. The same calls with
/// the same generator give the same files.
///
/// One thread at a time may use a disk and its connections. Close the connections before you
/// release the disk.
public final class FaultDisk {
    /// The changes since the last sync that survive a crash.
    public enum Survival: Hashable, Sendable, CaseIterable {
        /// No change survives.
        case nothing
        /// All changes survive.
        case everything
        /// The changes up to some moment survive, the last one perhaps in part.
        case prefix
        /// Any of the changes survive, in any order.
        case subset
        /// Any sectors of 512 bytes of any of the changes survive.
        case sectors
    }

    public enum Failure: Hashable, Sendable {
        /// The machine crashes during the operation.
        case crash
        /// The operation fails. Of a write, half is done.
        case ioError
        /// The first write or opening of a file at that moment or later finds the disk full.
        case full
    }

    /// The start of the names of the disk's file systems.
    private let name: String
    private let disk: Disk
    private var system: VirtualFileSystem
    private var formerSystems: [VirtualFileSystem] = []

    /// - Parameters:
    ///   - name: The name. Two disks of a process must not have the same name at the same time.
    ///   - seed: The seed of the random numbers that SQLite requests from the disk.
    ///   - now: The time, in milliseconds since 1970.
    ///   - countsWork: Whether `work` is counted. Counting resets SQLite's own counts of its
    ///     statements' steps.
    public init(
        name: String, seed: UInt64 = 0, now: Int64 = 1_700_000_000_000, countsWork: Bool = false
    ) {
        let isCounted = countsWork && WorkMeter.isInstalled
        self.name = "\(isCounted ? WorkMeter.prefix : "")fault-disk-\(name)"
        disk = Disk(seed: seed, now: now)
        system = VirtualFileSystem(name: "\(self.name)-0", disk: disk)
    }

    deinit {
        disk.crash()
        for system in formerSystems + [system] { system.retire(freeing: disk.openHandles == 0) }
    }

    /// The name for opening connections. It changes with every restart, so that an earlier
    /// connection cannot change the files.
    public var vfsName: String { system.name }

    /// The time that SQLite gets, in milliseconds since 1970.
    public var now: Int64 {
        get { disk.now }
        set { disk.now = newValue }
    }

    /// The number of openings, writes, truncations, syncs and deletions so far.
    public var operationCount: Int { disk.operationCount }
    /// The number of reads so far, which do not count as operations.
    public var readCount: Int { disk.readCount }
    /// The number of syncs so far.
    public var syncCount: Int { disk.syncCount }
    /// The work of SQLite on the disk so far, if it is counted.
    public var work: DiskWork { disk.work }
    /// Called before each operation that is no write. All committed data has then been written and
    /// is in the files. The closure must only read the disk's files.
    public var watcher: (() -> Void)? {
        get { disk.watcher }
        set { disk.watcher = newValue }
    }
    /// Whether the machine has crashed and was not restarted.
    public var isDown: Bool { disk.isDown }

    // MARK: - Failing

    /// Makes an operation fail.
    /// - Parameters:
    ///   - operations: The number of the operation from now; 1 is the next.
    ///   - lasting: True if all later ones fail too, until `heal()` or `restart`.
    public func failAfter(operations: Int, kind: Failure, lasting: Bool = false) {
        disk.failure = (max(1, operations), kind, lasting)
    }

    /// Makes a read fail.
    /// - Parameters:
    ///   - reads: The number of the read from now; 1 is the next.
    ///   - lasting: True if all later ones fail too, until `heal()` or `restart`.
    public func failAfter(reads: Int, lasting: Bool = false) {
        disk.readFailure = (max(1, reads), lasting)
    }

    /// Cancels `failAfter`.
    public func heal() {
        disk.failure = nil
        disk.readFailure = nil
    }

    /// Crashes the machine. From then on every operation fails.
    public func crash() {
        disk.crash()
    }

    /// Restarts the machine, with the files as the crash left them and without locks. Earlier
    /// connections stay unusable. A running machine crashes first.
    public func restart(
        _ survival: Survival, using random: inout some RandomNumberGenerator
    ) {
        disk.restart(survival, using: &random)
        renewSystem()
    }

    /// Restarts with a survival picked at random.
    public func restart(using random: inout some RandomNumberGenerator) {
        let survival = Survival.allCases.randomElement(using: &random) ?? .nothing
        restart(survival, using: &random)
    }

    private func renewSystem() {
        system.unregister()
        formerSystems.append(system)
        system = VirtualFileSystem(name: "\(name)-\(disk.life)", disk: disk)
    }

    // MARK: - Files

    /// The paths of all files, sorted.
    public var paths: [String] { disk.files.keys.sorted() }

    /// Returns a file's bytes as programs see them now; nil if there is no such file.
    public func contents(of path: String) -> [UInt8]? {
        disk.files[path]?.contents
    }

    /// Stores a file durably. It may replace a file that no connection has open.
    public func install(_ bytes: [UInt8], at path: String) {
        disk.install(path, bytes)
    }
}

@available(*, unavailable)
extension FaultDisk: Sendable {}
