#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A refusal by the operating system.
public struct SystemError: Error, Hashable, Sendable {
    /// What was asked of it.
    public let operation: FileOperation
    /// The error number (POSIX `errno`).
    public let number: Int32

    /// A refusal; `number` is an `errno`.
    public init(_ operation: FileOperation, number: Int32) {
        self.operation = operation
        self.number = number
    }

    /// The refusal that the C library has just noted for this thread.
    static func last(_ operation: FileOperation) -> SystemError {
        SystemError(operation, number: errno)
    }

    /// There is no such file or folder.
    public var isMissing: Bool { number == ENOENT }
    /// Something of that name is there already.
    public var isExisting: Bool { number == EEXIST }
    /// The disk or the user's share of it is used up.
    public var isDiskFull: Bool { number == ENOSPC || number == EDQUOT }
    /// This user may not.
    public var isNotPermitted: Bool { number == EACCES || number == EPERM }
    /// Nobody may change anything there.
    public var isReadOnly: Bool { number == EROFS }
    /// The caller wanted no more of it.
    public var isCancelled: Bool { number == ECANCELED }
    /// A file stands where a folder is needed.
    public var isNotAFolder: Bool { number == ENOTDIR }
    /// A folder or a link stands where a file is needed.
    public var isNotAFile: Bool { number == EISDIR || number == ELOOP }
    /// The file system takes no name as long as that.
    public var isNameTooLong: Bool { number == ENAMETOOLONG }
}

extension SystemError: CustomStringConvertible {
    public var description: String {
        "\(operation): \(String(cString: strerror(number))) (error \(number))"
    }
}
