#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// The properties of a file or folder, as the operating system reports them.
public struct FileFacts: Hashable, Sendable {
    /// The kind of thing that a name refers to.
    public enum Form: Hashable, Sendable {
        case file
        case folder
        case link
        case other
    }

    /// The kind of the file.
    public let form: Form
    /// The length in bytes.
    public let size: Int64
    /// The permissions: the last nine bits of the mode, as `chmod` takes them.
    public let permissions: UInt16
    /// Whether the file belongs to the user of this process.
    public let isOwn: Bool
    /// The number of its names; 0 if it was removed while it was open.
    let links: UInt64

    /// Whether users other than the owner can read, write or search the file.
    public var isOpenToOthers: Bool { permissions & 0o077 != 0 }

    /// Returns whether a path is on a read-only file system; false if the system does not say.
    public static func isOnReadOnlyDisk(_ path: String) -> Bool {
        var facts = statvfs()
        return statvfs(path, &facts) == 0 && UInt64(facts.f_flag) & UInt64(ST_RDONLY) != 0
    }

    init(_ status: stat) {
        form =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            case S_IFLNK: .link
            default: .other
            }
        size = Int64(status.st_size)
        permissions = UInt16(truncatingIfNeeded: status.st_mode & 0o777)
        isOwn = status.st_uid == geteuid()
        links = UInt64(status.st_nlink)
    }
}
