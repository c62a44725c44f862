#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// An open file. It is closed when the value is destroyed. Every call blocks.
public struct OpenFile: ~Copyable, Sendable {
    let descriptor: Int32
    let faults: FileFaults?

    init(descriptor: Int32, faults: FileFaults?) {
        self.descriptor = descriptor
        self.faults = faults
    }

    deinit {
        // A failed close loses nothing, because durable content was synchronised before.
        _ = close(descriptor)
    }

    /// Opens the file at a path for reading, and follows links.
    public init(readingFrom path: String, faults: FileFaults? = nil) throws(SystemError) {
        try faults?.check(.open)
        // Without O_NONBLOCK, opening a pipe would wait.
        let opened = Repeating.call { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard opened >= 0 else { throw .last(.open) }
        self.init(descriptor: opened, faults: faults)
    }

    /// Returns the properties of the file.
    public func facts() throws(SystemError) -> FileFacts {
        try faults?.check(.inspect)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last(.inspect) }
        return FileFacts(status)
    }

    /// Reads from the end of the last read.
    /// - Parameter limit: The maximum number of bytes.
    /// - Returns: The bytes; none at the end of the file.
    public func next(atMost limit: Int) throws(SystemError) -> [UInt8] {
        try faults?.check(.read)
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let got = Repeating.call {
                read(descriptor, buffer.baseAddress, buffer.count)
            }
            if got < 0 { failure = .last(.read) }
            count = max(0, got)
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads at an offset. The position of `next` does not change.
    /// - Returns: `count` bytes, fewer at the end of the file.
    public func bytes(at offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        try faults?.check(.read)
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                let got = Repeating.call {
                    pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(filled))
                }
                guard got > 0 else {
                    if got < 0 { failure = .last(.read) }
                    break
                }
                filled += got
            }
        }
        if let failure { throw failure }
        return bytes
    }

    /// Reads from the end of the last read to the end of the file.
    public func rest() throws(SystemError) -> [UInt8] {
        let size = try facts().size
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: size))
        while true {
            // One byte more than the size, so that the first read shows the end.
            let missing = Int(clamping: size) - bytes.count
            let part = try next(atMost: max(4096, missing + 1))
            if part.isEmpty { return bytes }
            bytes += part
        }
    }

    /// Appends all bytes.
    public func append(_ bytes: [UInt8]) throws(SystemError) {
        try faults?.check(.write)
        let failure = bytes.withUnsafeBytes { buffer -> SystemError? in
            var rest = buffer[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let done = Repeating.call {
                    write(descriptor, part.baseAddress, part.count)
                }
                guard done >= 0 else { return .last(.write) }
                rest = rest.dropFirst(done)
            }
            return nil
        }
        if let failure { throw failure }
    }

    /// Writes the content to the disk, and returns when it is stored.
    public func synchronize() throws(SystemError) {
        try faults?.check(.synchronize)
        #if canImport(Darwin)
            // On these systems, fsync leaves the content in the drive's cache (man 2 fsync).
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard Repeating.call({ Int(fsync(descriptor)) }) == 0 else { throw .last(.synchronize) }
    }

    /// Locks the file for this descriptor, until it is closed or the process dies.
    /// - Returns: False if another descriptor has the lock.
    func lock() -> Bool {
        flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }
}
