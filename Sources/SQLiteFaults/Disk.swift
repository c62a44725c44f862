internal import CSQLite
internal import RandomKit

/// The state of a simulated disk: its directory and files, the failure to come, and its lives.
///
/// All of it is used by one thread at a time.
final class Disk {
    /// The directory as programs see it.
    private(set) var files: [String: StoredFile] = [:]
    /// The directory as a crash would leave it, apart from the changes below.
    private var durableFiles: [String: StoredFile] = [:]
    private var pendingNames: [(number: Int, path: String, file: StoredFile?)] = []

    /// The number of the disk's life. It grows with every restart.
    private(set) var life = 0
    private(set) var isDown = false
    private(set) var operationCount = 0
    private(set) var syncCount = 0
    var openHandles = 0
    var work = DiskWork()
    var failure: (countdown: Int, kind: FaultDisk.Failure, isLasting: Bool)?
    private(set) var readCount = 0
    var readFailure: (countdown: Int, isLasting: Bool)?
    var watcher: (() -> Void)?
    var now: Int64
    private var random: SplitMix64

    init(seed: UInt64, now: Int64) {
        random = SplitMix64(seed: seed)
        self.now = now
    }

    func nextRandomByte() -> UInt8 {
        UInt8(truncatingIfNeeded: random.next() >> 32)
    }

    // MARK: - Operations

    enum Operation {
        case open, write, truncate, sync, delete
    }

    enum Outcome {
        case done
        case failed
        case full
        /// The machine crashes during the operation.
        case crashed
    }

    /// Counts an operation and returns its outcome.
    func count(_ operation: Operation) -> Outcome {
        if operation != .write { watcher?() }
        operationCount += 1
        guard var failure else { return .done }
        failure.countdown = max(0, failure.countdown - 1)
        self.failure = failure
        guard failure.countdown == 0 else { return .done }
        switch failure.kind {
        case .crash:
            self.failure = nil
            isDown = true
            return .crashed
        case .full:
            // A full disk refuses only operations that need room.
            guard operation == .write || operation == .open else { return .done }
            if !failure.isLasting { self.failure = nil }
            return .full
        case .ioError:
            if !failure.isLasting { self.failure = nil }
            return .failed
        }
    }

    /// Counts a read and returns whether it succeeds.
    func countRead() -> Bool {
        readCount += 1
        guard let failure = readFailure else { return true }
        readFailure?.countdown = max(0, failure.countdown - 1)
        guard failure.countdown <= 1 else { return true }
        if !failure.isLasting { readFailure = nil }
        return false
    }

    func open(_ path: String?, create: Bool, exclusive: Bool) -> StoredFile? {
        guard let path else { return StoredFile(isTemporary: true) }
        if let file = files[path] { return create && exclusive ? nil : file }
        guard create else { return nil }
        let file = StoredFile(isTemporary: false)
        files[path] = file
        pendingNames.append((operationCount, path, file))
        return file
    }

    func sync(_ handle: FileHandle) {
        syncCount += 1
        if handle.syncsDirectory {
            handle.syncsDirectory = false
            syncDirectory()
        }
        handle.file.sync()
    }

    func delete(_ path: String, syncsDirectory: Bool) {
        files[path] = nil
        pendingNames.append((operationCount, path, nil))
        if syncsDirectory { syncDirectory() }
    }

    /// Notes a deletion that a crash interrupted. The disk may have it or not.
    func noteDeletion(_ path: String) {
        pendingNames.append((operationCount, path, nil))
    }

    /// Removes a file that exists only as long as its handle.
    func forget(_ path: String) {
        files[path] = nil
        durableFiles[path] = nil
        pendingNames.removeAll { $0.path == path }
    }

    private func syncDirectory() {
        durableFiles = files
        pendingNames.removeAll()
    }

    func install(_ path: String, _ bytes: [UInt8]) {
        let file = StoredFile(bytes: bytes)
        files[path] = file
        durableFiles[path] = file
        pendingNames.removeAll { $0.path == path }
    }

    // MARK: - Crashing

    func crash() {
        isDown = true
        failure = nil
        readFailure = nil
    }

    func restart(_ survival: FaultDisk.Survival, using random: inout some RandomNumberGenerator) {
        let judge = SurvivalJudge(
            survival, pending: pendingNumbers(), using: &random)
        var names = durableFiles
        for (number, path, file) in pendingNames where judge.keepsName(number, using: &random) {
            names[path] = file
        }
        var survivors: [String: StoredFile] = [:]
        // The order is fixed, so that a seed always gives the same result.
        for path in names.keys.sorted() {
            survivors[path] = names[path]?.survivor { number, change in
                judge.kept(number, change, using: &random)
            }
        }
        files = survivors
        durableFiles = survivors
        pendingNames = []
        failure = nil
        readFailure = nil
        isDown = false
        life += 1
    }

    private func pendingNumbers() -> [Int] {
        var numbers = pendingNames.map(\.number)
        // A file that was deleted but not durably still has its changes.
        var seen: Set<ObjectIdentifier> = []
        for file in Array(files.values) + Array(durableFiles.values)
        where seen.insert(ObjectIdentifier(file)).inserted {
            numbers += file.pending.map(\.number)
        }
        return numbers.sorted()
    }
}
