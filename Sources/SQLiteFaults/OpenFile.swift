internal import CSQLite

/// SQLite's structure of an open file. It begins with SQLite's own part, as SQLite requires.
struct OpenFile {
    var base: sqlite3_file
    /// The handle, with a reference that closing releases.
    var handle: Unmanaged<FileHandle>?

    // This is written once, here, and SQLite only reads it.
    nonisolated(unsafe) static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        methods.initialize(to: sqlite3_io_methods())
        // Version 2 has shared memory and no memory mapping.
        methods.pointee.iVersion = 2
        setFileCallbacks(&methods.pointee)
        setLockCallbacks(&methods.pointee)
        return methods
    }()

    private static func handle(_ file: UnsafeMutablePointer<sqlite3_file>?) -> FileHandle? {
        guard let file else { return nil }
        return UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self)
            .pointee.handle?.takeUnretainedValue()
    }

    /// Returns the handle; nil if its machine has crashed since.
    private static func alive(_ file: UnsafeMutablePointer<sqlite3_file>?) -> FileHandle? {
        handle(file).flatMap { $0.isAlive ? $0 : nil }
    }

    private static func setFileCallbacks(_ methods: inout sqlite3_io_methods) {
        methods.xClose = { file in
            guard let file else { return SQLITE_OK }
            let pointer = UnsafeMutableRawPointer(file).assumingMemoryBound(to: OpenFile.self)
            guard let handle = pointer.pointee.handle else { return SQLITE_OK }
            pointer.pointee.handle = nil
            let object = handle.takeRetainedValue()
            object.close()
            object.disk.openHandles -= 1
            return SQLITE_OK
        }
        methods.xRead = { file, target, count, offset in
            guard let handle = OpenFile.alive(file), let target, handle.disk.countRead() else {
                return ResultCode.read
            }
            let room = UnsafeMutableRawBufferPointer(start: target, count: Int(count))
            let read = handle.file.read(into: room, at: Int(offset))
            return read == Int(count) ? SQLITE_OK : ResultCode.shortRead
        }
        methods.xWrite = { file, source, count, offset in
            guard let handle = OpenFile.alive(file), let source else { return ResultCode.write }
            return handle.write(
                UnsafeRawBufferPointer(start: source, count: Int(count)), at: Int(offset))
        }
        methods.xTruncate = { file, size in
            guard let handle = OpenFile.alive(file) else { return ResultCode.truncate }
            return handle.truncate(to: Int(size))
        }
        methods.xSync = { file, _ in
            guard let handle = OpenFile.alive(file) else { return ResultCode.sync }
            switch handle.disk.count(.sync) {
            case .failed, .crashed: return ResultCode.sync
            case .done, .full:
                handle.disk.sync(handle)
                return SQLITE_OK
            }
        }
        methods.xFileSize = { file, result in
            guard let handle = OpenFile.alive(file), let result else { return ResultCode.fileSize }
            result.pointee = sqlite3_int64(handle.file.size)
            return SQLITE_OK
        }
        methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
        methods.xSectorSize = { _ in Int32(StoredFile.sectorSize) }
        // As in SQLite's own VFS for Unix, a crash does not change the bytes next to a write.
        methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    }

    private static func setLockCallbacks(_ methods: inout sqlite3_io_methods) {
        methods.xLock = { file, level in
            OpenFile.alive(file)?.lock(level) ?? ResultCode.lock
        }
        methods.xUnlock = { file, level in
            OpenFile.handle(file)?.unlock(level)
            return SQLITE_OK
        }
        methods.xCheckReservedLock = { file, result in
            guard let handle = OpenFile.alive(file), let result else { return ResultCode.lock }
            result.pointee = handle.isReservedByAnyone ? 1 : 0
            return SQLITE_OK
        }
        methods.xShmMap = { file, index, size, extend, result in
            guard let handle = OpenFile.alive(file), let result else {
                return ResultCode.sharedMemoryMap
            }
            result.pointee = handle.region(Int(index), size: Int(size), extend: extend != 0)
            return SQLITE_OK
        }
        methods.xShmLock = { file, first, count, flags in
            guard let handle = OpenFile.alive(file), let memory = handle.sharedMemory else {
                return ResultCode.sharedMemoryLock
            }
            let slots = UInt16((1 << count) - 1) << UInt16(first)
            return memory.lock(handle, slots: slots, flags: flags)
        }
        // One thread at a time uses a disk, so no barrier is needed.
        methods.xShmBarrier = { _ in }
        methods.xShmUnmap = { file, delete in
            OpenFile.handle(file)?.unmapSharedMemory(delete: delete != 0)
            return SQLITE_OK
        }
    }
}

extension FileHandle {
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int32 {
        switch disk.count(.write) {
        case .done:
            file.write(bytes, at: offset, number: disk.operationCount)
            return SQLITE_OK
        case .full:
            return SQLITE_FULL
        case .failed:
            let half = UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2))
            file.write(half, at: offset, number: disk.operationCount)
            return ResultCode.write
        case .crashed:
            file.note(.write(offset: offset, bytes: Array(bytes)), disk.operationCount)
            return ResultCode.write
        }
    }

    func truncate(to size: Int) -> Int32 {
        switch disk.count(.truncate) {
        case .done, .full:
            file.truncate(to: size, number: disk.operationCount)
            return SQLITE_OK
        case .failed:
            return ResultCode.truncate
        case .crashed:
            file.note(.truncate(size: size), disk.operationCount)
            return ResultCode.truncate
        }
    }
}
