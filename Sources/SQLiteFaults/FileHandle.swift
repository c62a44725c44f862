internal import CSQLite

/// A file that a connection has opened, with the connection's locks.
final class FileHandle {
    let disk: Disk
    let file: StoredFile
    /// The path; nil for a file without a name.
    let path: String?
    let deletesOnClose: Bool
    /// Whether the next sync is one of the directory too. SQLite's own VFS for Unix does so at the first
    /// sync of every handle of a journal or WAL that may have been made, also if the file was there.
    var syncsDirectory: Bool
    /// The disk's life in which the file was opened. In a later one the handle is unusable.
    private let life: Int

    /// SQLITE_LOCK_NONE to SQLITE_LOCK_EXCLUSIVE (https://sqlite.org/lockingv3.html).
    private(set) var level: Int32 = SQLITE_LOCK_NONE
    var sharedMemory: SharedMemory?
    var sharedSlots: UInt16 = 0
    var exclusiveSlots: UInt16 = 0

    init(disk: Disk, file: StoredFile, path: String?, flags: Int32) {
        self.disk = disk
        self.file = file
        self.path = path
        deletesOnClose = flags & SQLITE_OPEN_DELETEONCLOSE != 0
        let journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL
        syncsDirectory = flags & SQLITE_OPEN_CREATE != 0 && flags & journals != 0
        life = disk.life
    }

    var isAlive: Bool { !disk.isDown && disk.life == life }

    func close() {
        unmapSharedMemory(delete: false)
        level = SQLITE_LOCK_NONE
        file.handles.removeAll { $0 === self }
        if deletesOnClose, let path, isAlive { disk.forget(path) }
    }

    // MARK: - Locks

    func lock(_ wanted: Int32) -> Int32 {
        guard level < wanted else { return SQLITE_OK }
        switch wanted {
        case SQLITE_LOCK_SHARED:
            guard !anotherHolds(SQLITE_LOCK_PENDING) else {
                return SQLITE_BUSY
            }
            level = SQLITE_LOCK_SHARED
        case SQLITE_LOCK_RESERVED:
            guard !anotherHolds(SQLITE_LOCK_RESERVED) else {
                return SQLITE_BUSY
            }
            level = SQLITE_LOCK_RESERVED
        default:
            guard !anotherHolds(SQLITE_LOCK_RESERVED) else {
                return SQLITE_BUSY
            }
            // The pending lock keeps new readers out until the present ones are gone.
            level = SQLITE_LOCK_PENDING
            guard !anotherHolds(SQLITE_LOCK_SHARED) else {
                return SQLITE_BUSY
            }
            level = wanted
        }
        return SQLITE_OK
    }

    private func anotherHolds(_ level: Int32) -> Bool {
        file.handles.contains { $0 !== self && $0.level >= level }
    }

    func unlock(_ wanted: Int32) {
        level = min(level, wanted)
    }

    var isReservedByAnyone: Bool {
        file.handles.contains { $0.level >= SQLITE_LOCK_RESERVED }
    }

    // MARK: - Shared memory

    func region(_ index: Int, size: Int, extend: Bool) -> UnsafeMutableRawPointer? {
        if sharedMemory == nil {
            let memory = file.sharedMemory ?? SharedMemory()
            file.sharedMemory = memory
            sharedMemory = memory
            memory.join(self)
        }
        return sharedMemory?.region(index, size: size, extend: extend)
    }

    func unmapSharedMemory(delete: Bool) {
        guard let memory = sharedMemory else { return }
        sharedSlots = 0
        exclusiveSlots = 0
        sharedMemory = nil
        // On a real disk the file of shared memory remains too, but the first connection that is
        // alone rebuilds its content.
        if memory.leave(self), file.sharedMemory === memory { file.sharedMemory = nil }
    }
}
