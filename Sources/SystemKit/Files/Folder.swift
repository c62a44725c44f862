#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// An open folder. Its files are opened relative to it, so calls reach the same folder even if it
/// is renamed meanwhile. Symbolic links in it are not followed. Every call blocks.
///
/// A name is one component, without “/”; the caller ensures that.
public struct Folder: ~Copyable {
    let descriptor: Int32
    let faults: FileFaults?

    /// Opens a folder.
    public init(path: String, faults: FileFaults? = nil) throws(SystemError) {
        try faults?.check(.openFolder)
        let opened = Repeating.call { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard opened >= 0 else { throw .last(.openFolder) }
        descriptor = opened
        self.faults = faults
    }

    deinit {
        _ = close(descriptor)
    }

    /// Creates a folder and the missing folders above it. Only the owner can open them. Does
    /// nothing if the folder exists.
    public static func make(path: String, faults: FileFaults? = nil) throws(SystemError) {
        try faults?.check(.makeFolder)
        if mkdir(path, 0o700) == 0 { return }
        switch errno {
        case EEXIST:
            // If it is not a folder, opening it fails.
            return
        case ENOENT:
            guard let parent = parent(of: path) else { throw .last(.makeFolder) }
            try make(path: parent, faults: faults)
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .last(.makeFolder) }
        default:
            throw .last(.makeFolder)
        }
    }

    private static func parent(of path: String) -> String? {
        var components = path.split(separator: "/", omittingEmptySubsequences: true)
        guard components.count > 1 else { return nil }
        components.removeLast()
        return (path.hasPrefix("/") ? "/" : "") + components.joined(separator: "/")
    }

    /// Returns the properties of the folder itself.
    public func facts() throws(SystemError) -> FileFacts {
        try faults?.check(.inspect)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last(.inspect) }
        return FileFacts(status)
    }

    /// Returns the properties of the file with a name, without following a link; nil if there is
    /// none.
    public func facts(of name: String) throws(SystemError) -> FileFacts? {
        try faults?.check(.inspect)
        var status = stat()
        if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return FileFacts(status) }
        if errno == ENOENT { return nil }
        throw .last(.inspect)
    }

    /// Returns the names in the folder, in no order, without “.” and “..” and without pending files
    /// (`removeAbandonedFiles`). Names that are not UTF-8 are left out.
    public func names() throws(SystemError) -> [String] {
        try allNames().filter { !PendingFile.isName($0) }
    }

    func allNames() throws(SystemError) -> [String] {
        try faults?.check(.list)
        // The stream needs its own descriptor: reading moves its position, and closing the stream
        // closes it.
        let opened = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { throw .last(.list) }
        guard let stream = fdopendir(opened) else {
            let failure = SystemError.last(.list)
            _ = close(opened)
            throw failure
        }
        defer { closedir(stream) }
        guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return [] }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw .last(.list) }
                return names
            }
            // Only as many bytes of the entry can be read as its name needs.
            let start = UnsafeRawPointer(entry).advanced(by: offset)
            let name = String(validatingCString: start.assumingMemoryBound(to: CChar.self))
            if let name, name != ".", name != ".." { names.append(name) }
        }
    }

    /// Opens a file for reading. Returns nil if there is no file with that name.
    public func file(_ name: String) throws(SystemError) -> OpenFile? {
        try faults?.check(.open)
        let flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let opened = Repeating.call { openat(descriptor, name, flags) }
        if opened >= 0 { return OpenFile(descriptor: opened, faults: faults) }
        if errno == ENOENT { return nil }
        throw .last(.open)
    }

    /// Opens a file for appending. If it is missing, creates it; only its owner can then open it.
    /// - Parameter keeping: The number of its bytes to keep; nil keeps all, and 0 empties it.
    public func appending(to name: String, keeping: Int64? = nil) throws(SystemError) -> OpenFile {
        try faults?.check(.create)
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC
        let opened = Repeating.call { openat(descriptor, name, flags, 0o600) }
        guard opened >= 0 else { throw .last(.create) }
        let file = OpenFile(descriptor: opened, faults: faults)
        if let keeping {
            try faults?.check(.write)
            guard Repeating.call({ ftruncate(opened, off_t(keeping)) }) == 0 else {
                throw .last(.write)
            }
        }
        return file
    }

    /// Renames a file, and replaces a file that has the new name. The change is durable when this
    /// returns. The caller must synchronise the content before.
    public func rename(_ name: String, to other: String) throws(SystemError) {
        try faults?.check(.rename)
        guard renameat(descriptor, name, descriptor, other) == 0 else { throw .last(.rename) }
        try synchronize()
    }

    /// Removes a file. The removal is durable when this returns.
    /// - Returns: False if there is no file with that name.
    @discardableResult
    public func remove(_ name: String) throws(SystemError) -> Bool {
        guard try unlink(name) else { return false }
        try synchronize()
        return true
    }

    /// Removes a file. A power cut may bring it back.
    func unlink(_ name: String) throws(SystemError) -> Bool {
        try faults?.check(.remove)
        if unlinkat(descriptor, name, 0) == 0 { return true }
        if errno == ENOENT { return false }
        throw .last(.remove)
    }

    /// Writes the folder's names to the disk, and returns when they are stored.
    func synchronize() throws(SystemError) {
        try faults?.check(.synchronize)
        guard Repeating.call({ fsync(descriptor) }) == 0 else { throw .last(.synchronize) }
    }
}
