internal import CSQLite

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A registered `sqlite3_vfs` of a disk, for one of its lives.
final class VirtualFileSystem {
    let name: String
    let disk: Disk
    private let life: Int
    private let pointer: UnsafeMutablePointer<sqlite3_vfs>
    private let cName: UnsafeMutablePointer<CChar>

    private static let longestPath: Int32 = 512

    init(name: String, disk: Disk) {
        self.name = name
        self.disk = disk
        life = disk.life
        cName = strdup(name)
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: sqlite3_vfs())
        pointer.pointee.iVersion = 2
        pointer.pointee.szOsFile = Int32(MemoryLayout<OpenFile>.size)
        pointer.pointee.mxPathname = Self.longestPath
        pointer.pointee.zName = UnsafePointer(cName)
        // SQLite's calls pass this pointer back. It holds a reference, which is released together
        // with the memory.
        pointer.pointee.pAppData = Unmanaged.passRetained(self).toOpaque()
        setCallbacks()
        let code = sqlite3_vfs_register(pointer, 0)
        precondition(code == SQLITE_OK, "SQLite refused a VFS")
    }

    var isAlive: Bool { !disk.isDown && disk.life == life }

    func unregister() {
        sqlite3_vfs_unregister(pointer)
    }

    /// - Parameter freeing: True if no connection has a file open. A connection with an open file
    ///   would call into the memory, which is therefore not freed.
    func retire(freeing: Bool) {
        unregister()
        guard freeing, let data = pointer.pointee.pAppData else { return }
        pointer.deallocate()
        free(cName)
        Unmanaged<VirtualFileSystem>.fromOpaque(data).release()
    }

    static func of(_ pointer: UnsafeMutablePointer<sqlite3_vfs>?) -> VirtualFileSystem? {
        pointer?.pointee.pAppData.map {
            Unmanaged<VirtualFileSystem>.fromOpaque($0).takeUnretainedValue()
        }
    }

    private func setCallbacks() {
        pointer.pointee.xOpen = { vfs, path, memory, flags, outFlags in
            guard let memory, let system = VirtualFileSystem.of(vfs) else { return SQLITE_CANTOPEN }
            return system.open(path.map { String(cString: $0) }, memory, flags, outFlags)
        }
        pointer.pointee.xDelete = { vfs, path, syncsDirectory in
            guard let path, let system = VirtualFileSystem.of(vfs) else { return ResultCode.delete }
            return system.delete(String(cString: path), syncsDirectory: syncsDirectory != 0)
        }
        pointer.pointee.xAccess = { vfs, path, _, result in
            guard let path, let result, let system = VirtualFileSystem.of(vfs), system.isAlive
            else { return ResultCode.access }
            result.pointee = system.disk.files[String(cString: path)] == nil ? 0 : 1
            return SQLITE_OK
        }
        pointer.pointee.xFullPathname = { _, path, room, result in
            // Every path is a full path already.
            guard let path, let result, strlen(path) < room else { return SQLITE_CANTOPEN }
            strcpy(result, path)
            return SQLITE_OK
        }
        pointer.pointee.xRandomness = { vfs, count, result in
            guard let result, let system = VirtualFileSystem.of(vfs) else { return 0 }
            for index in 0..<Int(count) {
                result[index] = CChar(bitPattern: system.disk.nextRandomByte())
            }
            return count
        }
        pointer.pointee.xSleep = { _, microseconds in microseconds }
        pointer.pointee.xCurrentTime = { vfs, result in
            guard let result, let system = VirtualFileSystem.of(vfs) else { return SQLITE_ERROR }
            result.pointee = Double(system.julianMilliseconds) / 86_400_000
            return SQLITE_OK
        }
        pointer.pointee.xCurrentTimeInt64 = { vfs, result in
            guard let result, let system = VirtualFileSystem.of(vfs) else { return SQLITE_ERROR }
            result.pointee = system.julianMilliseconds
            return SQLITE_OK
        }
        pointer.pointee.xGetLastError = { _, _, _ in 0 }
    }

    /// The time in milliseconds since noon in Greenwich on 24 November 4714 BC, as SQLite counts.
    private var julianMilliseconds: Int64 { disk.now + 210_866_760_000_000 }

    private func open(
        _ path: String?, _ memory: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
        _ outFlags: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        let pointer = UnsafeMutableRawPointer(memory).assumingMemoryBound(to: OpenFile.self)
        // If there are no methods, SQLite does not close the file.
        pointer.initialize(to: OpenFile(base: sqlite3_file(pMethods: nil), handle: nil))
        guard isAlive else { return SQLITE_CANTOPEN }
        switch disk.count(.open) {
        case .done: break
        case .full:
            // An existing file needs no room.
            guard let path, disk.files[path] != nil else { return SQLITE_FULL }
        case .failed, .crashed: return SQLITE_CANTOPEN
        }
        let file = disk.open(
            path, create: flags & SQLITE_OPEN_CREATE != 0,
            exclusive: flags & SQLITE_OPEN_EXCLUSIVE != 0)
        guard let file else { return SQLITE_CANTOPEN }
        let handle = FileHandle(disk: disk, file: file, path: path, flags: flags)
        file.handles.append(handle)
        disk.openHandles += 1
        pointer.pointee.handle = Unmanaged.passRetained(handle)
        pointer.pointee.base.pMethods = UnsafePointer(OpenFile.methods)
        outFlags?.pointee = flags
        return SQLITE_OK
    }

    private func delete(_ path: String, syncsDirectory: Bool) -> Int32 {
        guard isAlive else { return ResultCode.delete }
        switch disk.count(.delete) {
        case .done, .full: break
        case .failed: return ResultCode.delete
        case .crashed:
            disk.noteDeletion(path)
            return ResultCode.delete
        }
        // This is SQLITE_IOERR_DELETE_NOENT, which is no error to SQLite.
        guard disk.files[path] != nil else { return 10 | 23 << 8 }
        disk.delete(path, syncsDirectory: syncsDirectory)
        return SQLITE_OK
    }
}
