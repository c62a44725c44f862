#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// An open folder, whose files are reached through it: not even renaming the folder meanwhile leads
/// elsewhere. Links that stand for files in it are not followed. Every call blocks.
///
/// A name is one component, without “/”; the caller sees to that.
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

    /// Makes a folder, and those above it where they are missing, each open to its owner alone.
    /// Does nothing where the folder is there already.
    public static func make(path: String, faults: FileFaults? = nil) throws(SystemError) {
        try faults?.check(.makeFolder)
        if mkdir(path, 0o700) == 0 { return }
        switch errno {
        case EEXIST:
            // That a folder is what stands there shows when it is opened.
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

    /// What is known of the folder itself.
    public func facts() throws(SystemError) -> FileFacts {
        try faults?.check(.inspect)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last(.inspect) }
        return FileFacts(status)
    }

    /// What stands under a name, without following a link; nil where nothing does.
    public func facts(of name: String) throws(SystemError) -> FileFacts? {
        try faults?.check(.inspect)
        var status = stat()
        if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return FileFacts(status) }
        if errno == ENOENT { return nil }
        throw .last(.inspect)
    }

    /// The names in the folder, in no order, without “.” and “..” and without drafts
    /// (`removeAbandonedDrafts`). Names that are not UTF-8 are left out.
    public func names() throws(SystemError) -> [String] {
        try allNames().filter { !Draft.isName($0) }
    }

    func allNames() throws(SystemError) -> [String] {
        try faults?.check(.list)
        // A descriptor of its own: reading moves its position, and closing the stream closes it.
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
            // Only as much of the entry as its name needs is there to be read.
            let start = UnsafeRawPointer(entry).advanced(by: offset)
            let name = String(validatingCString: start.assumingMemoryBound(to: CChar.self))
            if let name, name != ".", name != ".." { names.append(name) }
        }
    }

    /// Opens a file for reading; nil where nothing has that name.
    public func file(_ name: String) throws(SystemError) -> OpenFile? {
        try faults?.check(.open)
        let flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let opened = Repeating.call { openat(descriptor, name, flags) }
        if opened >= 0 { return OpenFile(descriptor: opened, faults: faults) }
        if errno == ENOENT { return nil }
        throw .last(.open)
    }

    /// Opens a file for writing behind what it has, making it, open to its owner alone, where it is
    /// missing.
    /// - Parameter keeping: How many bytes of it stay; nil for all, 0 to write it anew.
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

    /// Gives a file another name, in the place of what has it; for good once this returns. That the
    /// content is on the disk before is the caller's part.
    public func rename(_ name: String, to other: String) throws(SystemError) {
        try faults?.check(.rename)
        guard renameat(descriptor, name, descriptor, other) == 0 else { throw .last(.rename) }
        try synchronize()
    }

    /// Removes a file, for good once this returns.
    /// - Returns: False where nothing has that name.
    @discardableResult
    public func remove(_ name: String) throws(SystemError) -> Bool {
        guard try unlink(name) else { return false }
        try synchronize()
        return true
    }

    /// Removes a file, which a power cut may bring back.
    func unlink(_ name: String) throws(SystemError) -> Bool {
        try faults?.check(.remove)
        if unlinkat(descriptor, name, 0) == 0 { return true }
        if errno == ENOENT { return false }
        throw .last(.remove)
    }

    /// Returns once the folder's names are on the disk as they are now.
    func synchronize() throws(SystemError) {
        try faults?.check(.synchronize)
        guard Repeating.call({ fsync(descriptor) }) == 0 else { throw .last(.synchronize) }
    }
}
