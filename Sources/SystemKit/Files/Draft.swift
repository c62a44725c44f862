internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A file that is being written under a name of its own, until it takes the place of another.
///
/// Its writer holds it locked. The lock goes with the process, so a draft that can be locked is one
/// whose writer is gone.
struct Draft: ~Copyable {
    private static let prefix = ".martlet-"
    private static let suffix = ".draft"
    private static let count = Atomic<UInt64>(0)
    /// Names tried before giving up; each one taken was left behind by a process of this number.
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
            // Between its creation and its locking another process may have thought it abandoned,
            // and removed it.
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
    /// Puts a file with these bytes under a name, in the place of what was there. It is open to its
    /// owner alone.
    ///
    /// Whenever the process dies or the power fails, the name stands for the old file or the new
    /// one, whole: the bytes are on the disk under another name first (POSIX rename is atomic).
    /// After an error too; which of the two it is, is open if bringing the folder to the disk
    /// failed.
    public func write(_ bytes: [UInt8], as name: String) throws(SystemError) {
        let draft = try Draft(in: self)
        do throws(SystemError) {
            try draft.file.append(bytes)
            try place(draft, as: name)
        } catch {
            discard(draft)
            throw error
        }
        try synchronize()
    }

    /// Puts a copy of an open file under a name, as `write` does, a part at a time.
    /// - Parameter isWanted: Asked before each part; once it says no, nothing has happened.
    public func write(
        copyOf source: borrowing OpenFile, as name: String, while isWanted: () -> Bool = { true }
    ) throws(SystemError) {
        let draft = try Draft(in: self)
        do throws(SystemError) {
            while true {
                guard isWanted() else { throw SystemError(.write, number: ECANCELED) }
                let part = try source.next(atMost: 1 << 20)
                if part.isEmpty { break }
                try draft.file.append(part)
            }
            try place(draft, as: name)
        } catch {
            discard(draft)
            throw error
        }
        try synchronize()
    }

    private func place(_ draft: borrowing Draft, as name: String) throws(SystemError) {
        try draft.file.synchronize()
        try faults?.check(.rename)
        guard renameat(descriptor, draft.name, descriptor, name) == 0 else { throw .last(.rename) }
    }

    /// Where this fails, the draft is abandoned, and removed as such some time.
    private func discard(_ draft: borrowing Draft) {
        _ = try? unlink(draft.name)
    }

    /// Removes drafts whose writers are gone: a process was killed while it wrote.
    /// - Returns: How many there were.
    @discardableResult
    public func removeAbandonedDrafts() throws(SystemError) -> Int {
        var count = 0
        for name in try allNames() where Draft.isName(name) {
            guard let file = try file(name), file.lock() else { continue }
            if try unlink(name) { count += 1 }
        }
        // What a power cut brings back is found again the next time.
        return count
    }
}
