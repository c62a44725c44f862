internal import SQLiteKit

/// The copy of a file made before its first version, to go back to.
///
/// It stands beside the file as long as the versions run. Every opening that has versions to run
/// makes it anew: after a crash in between, the file as it was found counts.
final class MigrationCopy {
    private let original: Connection
    private let path: String
    private let vfs: String?
    /// Tells whether anybody else has written since the copy was made.
    private var version: Int64?

    init(of original: Connection, vfs: String?) {
        self.original = original
        self.vfs = vfs
        let isInMemory = original.path.isEmpty || original.path == ":memory:"
        path = isInMemory ? ":memory:" : original.path + "-martlet-copy"
    }

    /// Copies the file, in one moment's state.
    /// - Throws: `StoreError` where there is no room, say; no copy is left then.
    func make() throws {
        guard path != ":memory:" else {
            throw StoreError(
                .misuse,
                "A database in memory has no copy to go back to; choose another fallback.")
        }
        do {
            try DatabaseFile.remove(path, vfs: vfs)
            // The version before the copy: a write in between then counts as one after it.
            version = try original.dataVersion()
            try Connection(path: path, vfs: vfs).copy(from: original)
        } catch {
            version = nil
            try? DatabaseFile.remove(path, vfs: vfs)
            throw StoreError(error)
        }
    }

    /// Makes the file what the copy is, in one transaction.
    /// - Returns: False where the copy cannot be put back, or must not, because another program
    ///   has written to the file since: its work would be lost.
    func putBack() throws -> Bool {
        guard let version, try original.dataVersion() == version else { return false }
        do {
            try original.copy(from: Connection(path: path, mode: .readWrite, vfs: vfs))
            return true
        } catch {
            return false
        }
    }

    /// Removes the copy, where there is one.
    func remove() throws {
        guard path != ":memory:" else { return }
        do {
            // Also what is left of it where a crash came between two removals.
            try DatabaseFile.remove(path, vfs: vfs)
        } catch {
            throw StoreError(error)
        }
    }
}
