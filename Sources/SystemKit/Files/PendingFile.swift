internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A file that is being written under a temporary name, until it replaces another file.
///
/// Its writer holds a lock on it. The lock ends with the process. If a pending file can be locked, its
/// writer is gone.
struct PendingFile: ~Copyable {
    private static let prefix = ".martlet-"
    private static let suffix = ".draft"
    private static let count = Atomic<UInt64>(0)
    /// The number of names that are tried. A name that is taken was left behind by an earlier
    /// process with the same number.
    private static let attempts = 10_000

    let name: String
    let file: OpenFile

    static func isName(_ name: String) -> Bool {
        name.hasPrefix(prefix) && name.hasSuffix(suffix)
    }

    /// Creates an empty file, open to its owner alone.
    init(in folder: borrowing Folder) throws(SystemError) {
        for _ in 0..<Self.attempts {
            let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
            let name = "\(Self.prefix)\(getpid())-\(number)\(Self.suffix)"
            try folder.faults?.check(.create)
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
            let opened = Repeating.call { openat(folder.descriptor, name, flags, 0o600) }
            guard opened >= 0 else {
                if errno == EEXIST { continue }
                throw .last(.create)
            }
            let file = OpenFile(descriptor: opened, faults: folder.faults)
            // Another process may have taken the file for an abandoned one, and removed it before
            // it was locked.
            do throws(SystemError) {
                guard file.lock(), try file.facts().links > 0 else { continue }
            } catch {
                _ = try? folder.unlink(name)
                throw error
            }
            self.name = name
            self.file = file
            return
        }
        throw SystemError(.create, number: EEXIST)
    }
}

extension Folder {
    /// Stores a file with these bytes under a name, and replaces the file before. Only its owner
    /// can open it.
    ///
    /// If the process dies or the power fails, the name refers to the whole old file or the whole
    /// new one: the bytes are first written to the disk under another name (POSIX rename is
    /// atomic). The same holds after an error. If the error came from synchronising the folder, it
    /// is unknown which of the two it is.
    public func write(_ bytes: [UInt8], as name: String) throws(SystemError) {
        let pending = try PendingFile(in: self)
        do throws(SystemError) {
            try pending.file.append(bytes)
            try rename(pending, to: name)
        } catch {
            discard(pending)
            throw error
        }
        try synchronize()
    }

    /// Stores a copy of an open file under a name, as `write` does, part by part.
    /// - Parameter isWanted: Called before each part; if it returns false, the copy is abandoned
    ///   and the name is unchanged.
    public func write(
        copyOf source: borrowing OpenFile, as name: String, while isWanted: () -> Bool = { true }
    ) throws(SystemError) {
        let pending = try PendingFile(in: self)
        do throws(SystemError) {
            while true {
                guard isWanted() else { throw SystemError(.write, number: ECANCELED) }
                let part = try source.next(atMost: 1 << 20)
                if part.isEmpty { break }
                try pending.file.append(part)
            }
            try rename(pending, to: name)
        } catch {
            discard(pending)
            throw error
        }
        try synchronize()
    }

    private func rename(_ pending: borrowing PendingFile, to name: String) throws(SystemError) {
        try pending.file.synchronize()
        try faults?.check(.rename)
        guard renameat(descriptor, pending.name, descriptor, name) == 0 else {
            throw .last(.rename)
        }
    }

    /// Removes a pending file. If that fails, a later call of `removeAbandonedFiles` removes it.
    private func discard(_ pending: borrowing PendingFile) {
        _ = try? unlink(pending.name)
    }

    /// Removes pending files whose writers are gone, for example because a process was killed while it
    /// wrote.
    /// - Returns: The number of files removed.
    @discardableResult
    public func removeAbandonedFiles() throws(SystemError) -> Int {
        var count = 0
        for name in try allNames() where PendingFile.isName(name) {
            guard let file = try file(name), file.lock() else { continue }
            if try unlink(name) { count += 1 }
        }
        // If a power cut brings one back, the next call finds it again.
        return count
    }
}
