internal import CSQLite

/// A disk in memory, of one simulated machine, that crashes and fails when told to.
///
/// It is a VFS of SQLite's (https://sqlite.org/vfs.html): open a connection with `vfs: vfsName`
/// and any path. What was written and not synced is lost in a crash, or part of it is, as on a
/// real disk; locks between connections are real; waiting takes no time; the clock is `now`. The
/// same calls with the same generator give the same files.
///
/// A disk and its connections are used by one thread at a time. Close the connections before
/// letting go of the disk.
public final class FaultDisk {
    /// What becomes of the changes made since the last sync.
    public enum Survival: Hashable, Sendable, CaseIterable {
        /// None reached the disk.
        case nothing
        /// All did.
        case everything
        /// Those up to some moment, the last one perhaps in part.
        case prefix
        /// Any of them, in any order.
        case subset
        /// Any sectors, of 512 bytes, of any of them.
        case sectors
    }

    public enum Failure: Hashable, Sendable {
        /// The machine goes down during the operation.
        case crash
        /// The operation fails; half of a write is done.
        case ioError
        /// The first write, or opening of a file, at that moment or later finds no room.
        case full
    }

    /// What the systems' names begin with.
    private let name: String
    private let disk: Disk
    private var system: VirtualFileSystem
    private var formerSystems: [VirtualFileSystem] = []

    /// - Parameters:
    ///   - name: No two disks of a process may have the same at one time.
    ///   - seed: Of the random numbers SQLite asks the disk for.
    ///   - now: Milliseconds since 1970.
    ///   - countsWork: Whether `work` is counted. SQLite's own counts of its statements' steps are then
    ///     taken away from them.
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

    /// The name to open connections with. It changes with every restart, so that a connection
    /// from before it can do nothing to the files.
    public var vfsName: String { system.name }

    /// Milliseconds since 1970, as SQLite sees it.
    public var now: Int64 {
        get { disk.now }
        set { disk.now = newValue }
    }

    /// Openings, writes, truncations, syncs and deletions until now.
    public var operationCount: Int { disk.operationCount }
    /// Reads until now; they are no operations.
    public var readCount: Int { disk.readCount }
    /// Syncs until now.
    public var syncCount: Int { disk.syncCount }
    /// What SQLite has done on the disk until now, if that is counted.
    public var work: DiskWork { disk.work }
    /// Called before each operation that is no write: whatever is committed has then been written,
    /// and can be seen in the files. It must not use the disk but for looking at its files.
    public var watcher: (() -> Void)? {
        get { disk.watcher }
        set { disk.watcher = newValue }
    }
    /// Whether the machine has crashed and not been restarted.
    public var isDown: Bool { disk.isDown }

    // MARK: - Failing

    /// Makes an operation fail.
    /// - Parameters:
    ///   - operations: Which one from now; 1 is the next.
    ///   - lasting: Whether all later ones fail too, until `heal()` or `restart`.
    public func failAfter(operations: Int, kind: Failure, lasting: Bool = false) {
        disk.failure = (max(1, operations), kind, lasting)
    }

    /// Makes a read fail.
    /// - Parameters:
    ///   - reads: Which one from now; 1 is the next.
    ///   - lasting: Whether all later ones fail too, until `heal()` or `restart`.
    public func failAfter(reads: Int, lasting: Bool = false) {
        disk.readFailure = (max(1, reads), lasting)
    }

    /// Takes back `failAfter`.
    public func heal() {
        disk.failure = nil
        disk.readFailure = nil
    }

    /// The machine goes down: from now on every operation fails.
    public func crash() {
        disk.crash()
    }

    /// The machine comes up again, with the files as the crash left them and no locks.
    /// Connections opened before stay dead. A machine that is up crashes first.
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

    /// A file's bytes as programs see them now; nil where there is no such file.
    public func contents(of path: String) -> [UInt8]? {
        disk.files[path]?.contents
    }

    /// Puts a file there, durably, in place of one that no connection has open.
    public func install(_ bytes: [UInt8], at path: String) {
        disk.install(path, bytes)
    }
}

@available(*, unavailable)
extension FaultDisk: Sendable {}
