#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// An open file; closed when it goes. Every call blocks.
public struct OpenFile: ~Copyable, Sendable {
    let descriptor: Int32
    let faults: FileFaults?

    init(descriptor: Int32, faults: FileFaults?) {
        self.descriptor = descriptor
        self.faults = faults
    }

    deinit {
        // A failed close loses nothing: what must last was brought to the disk before.
        _ = close(descriptor)
    }

    /// Opens a file anywhere for reading, following links.
    public init(readingFrom path: String, faults: FileFaults? = nil) throws(SystemError) {
        try faults?.check(.open)
        // Without O_NONBLOCK a pipe would be waited for.
        let opened = Repeating.call { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard opened >= 0 else { throw .last(.open) }
        self.init(descriptor: opened, faults: faults)
    }

    /// What is known of the file.
    public func facts() throws(SystemError) -> FileFacts {
        try faults?.check(.inspect)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last(.inspect) }
        return FileFacts(status)
    }

    /// Reads on from where the last read ended.
    /// - Parameter limit: At most so many bytes.
    /// - Returns: No bytes at the end of the file.
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

    /// Reads anywhere in the file; where reading goes on from is as before.
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

    /// Everything from where the last read ended.
    public func rest() throws(SystemError) -> [UInt8] {
        let size = try facts().size
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: size))
        while true {
            // One byte more than there should be, so that the end shows with the first read.
            let missing = Int(clamping: size) - bytes.count
            let part = try next(atMost: max(4096, missing + 1))
            if part.isEmpty { return bytes }
            bytes += part
        }
    }

    /// Writes all bytes after those written before.
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

    /// Returns once the content is on the disk.
    public func synchronize() throws(SystemError) {
        try faults?.check(.synchronize)
        #if canImport(Darwin)
            // There fsync leaves the content in the drive's cache (man 2 fsync).
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard Repeating.call({ Int(fsync(descriptor)) }) == 0 else { throw .last(.synchronize) }
    }

    /// Takes the file for this opening alone, until it is closed or the process dies.
    /// - Returns: False when another opening has it.
    func lock() -> Bool {
        flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }
}
