#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A refusal by the operating system.
public struct SystemError: Error, Hashable, Sendable {
    /// The operation that failed.
    public let operation: FileOperation
    /// The error number (POSIX `errno`).
    public let number: Int32

    /// Creates an error; `number` is an `errno`.
    public init(_ operation: FileOperation, number: Int32) {
        self.operation = operation
        self.number = number
    }

    /// Returns the error that the C library has last stored for this thread.
    static func last(_ operation: FileOperation) -> SystemError {
        SystemError(operation, number: errno)
    }

    /// Whether there is no such file or folder.
    public var isMissing: Bool { number == ENOENT }
    /// Whether the name exists already.
    public var isExisting: Bool { number == EEXIST }
    /// Whether the disk or the user's quota is full.
    public var isDiskFull: Bool { number == ENOSPC || number == EDQUOT }
    /// Whether this user lacks the permission.
    public var isNotPermitted: Bool { number == EACCES || number == EPERM }
    /// Whether the file system is read-only.
    public var isReadOnly: Bool { number == EROFS }
    /// Whether the caller cancelled the operation.
    public var isCancelled: Bool { number == ECANCELED }
    /// Whether a file was found in place of a folder.
    public var isNotAFolder: Bool { number == ENOTDIR }
    /// Whether a folder or a link was found in place of a file.
    public var isNotAFile: Bool { number == EISDIR || number == ELOOP }
    /// Whether the name is too long for the file system.
    public var isNameTooLong: Bool { number == ENAMETOOLONG }
}

extension SystemError: CustomStringConvertible {
    public var description: String {
        "\(operation): \(String(cString: strerror(number))) (error \(number))"
    }
}
