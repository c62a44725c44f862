#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// What the operating system knows of a file or folder.
public struct FileFacts: Hashable, Sendable {
    /// What stands under a name.
    public enum Form: Hashable, Sendable {
        case file
        case folder
        case link
        case other
    }

    /// What it is.
    public let form: Form
    /// Its length in bytes.
    public let size: Int64
    /// Who may do what: the last nine bits of the mode, as `chmod` takes them.
    public let permissions: UInt16
    /// Whether it belongs to the user this process runs as.
    public let isOwn: Bool
    /// How many names it has; 0 once it was removed while open.
    let links: UInt64

    /// Whether users other than the owner may read, write or search it.
    public var isOpenToOthers: Bool { permissions & 0o077 != 0 }

    /// Whether a path is on a file system that can only be read. False if the system does not say.
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
