internal import CSQLite

/// The memory that the connections to one database in WAL mode share, and its eight locks
/// (https://sqlite.org/walformat.html#wal_locks).
///
/// Handles keep it alive, because those of a crashed machine may still read it.
final class SharedMemory {
    private var regions: [UnsafeMutableRawPointer] = []
    private var sizes: [Int] = []
    private var users: [FileHandle] = []

    deinit {
        for region in regions { region.deallocate() }
    }

    func join(_ handle: FileHandle) {
        users.append(handle)
    }

    /// Returns whether no handle is left.
    func leave(_ handle: FileHandle) -> Bool {
        users.removeAll { $0 === handle }
        return users.isEmpty
    }

    /// Returns a region, and creates it if that is allowed; nil if it does not exist.
    func region(_ index: Int, size: Int, extend: Bool) -> UnsafeMutableRawPointer? {
        while extend, regions.count <= index {
            let region = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
            region.initializeMemory(as: UInt8.self, repeating: 0, count: size)
            regions.append(region)
            sizes.append(size)
        }
        return index < regions.count ? regions[index] : nil
    }

    /// Takes or releases locks, given as a mask of slots; all of them or none.
    func lock(_ handle: FileHandle, slots: UInt16, flags: Int32) -> Int32 {
        if flags & SQLITE_SHM_UNLOCK != 0 {
            handle.sharedSlots &= ~slots
            handle.exclusiveSlots &= ~slots
            return SQLITE_OK
        }
        if flags & SQLITE_SHM_EXCLUSIVE != 0 {
            let isTaken = users.contains {
                $0 !== handle && ($0.sharedSlots | $0.exclusiveSlots) & slots != 0
            }
            if isTaken { return SQLITE_BUSY }
            handle.exclusiveSlots |= slots
        } else {
            let isTaken = users.contains { $0 !== handle && $0.exclusiveSlots & slots != 0 }
            if isTaken { return SQLITE_BUSY }
            handle.sharedSlots |= slots
        }
        return SQLITE_OK
    }
}
