#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// Identifies the content of a file by its path, without opening it: one system call and no
/// descriptor.
///
/// Two changes within one tick of the file system's clock, some milliseconds, may leave equal stamps.
public struct FileStamp: Hashable, Sendable {
    private let device: UInt64
    private let number: UInt64
    private let seconds: Int64
    private let nanoseconds: Int64
    /// The file's length in bytes.
    public let size: Int64

    /// Reads the stamp of the file under a path, following links.
    /// - Returns: The stamp; nil if there is no file, or the system does not answer.
    public init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        device = UInt64(truncatingIfNeeded: status.st_dev)
        number = UInt64(truncatingIfNeeded: status.st_ino)
        #if canImport(Darwin)
            let time = status.st_mtimespec
        #else
            let time = status.st_mtim
        #endif
        seconds = Int64(time.tv_sec)
        nanoseconds = Int64(time.tv_nsec)
        size = Int64(status.st_size)
    }
}
