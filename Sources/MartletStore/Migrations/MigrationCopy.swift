internal import SQLiteKit

/// A copy of a file, made before its first version to return to it.
///
/// It is next to the file while the versions run. Every opening that has versions to run recreates
/// it, so after a crash it has the file's state when the next opening began.
final class MigrationCopy {
    private let original: Connection
    private let path: String
    private let vfs: String?
    /// The file's data version at the copy, which shows whether another connection has written
    /// since.
    private var version: Int64?

    init(of original: Connection, vfs: String?) {
        self.original = original
        self.vfs = vfs
        let isInMemory = original.path.isEmpty || original.path == ":memory:"
        path = isInMemory ? ":memory:" : original.path + "-martlet-copy"
    }

    /// Copies the file, as it is at one moment.
    /// - Throws: `StoreError` if the copy fails, such as on a full disk; no copy is left then.
    func make() throws {
        guard path != ":memory:" else {
            throw StoreError(
                .misuse,
                "A database in memory has no copy to go back to; choose another fallback.")
        }
        do {
            try DatabaseFile.remove(path, vfs: vfs)
            // The version is read before the copy, so that a write between the two counts as one
            // after the copy.
            version = try original.dataVersion()
            try Connection(path: path, vfs: vfs).copy(from: original)
        } catch {
            version = nil
            try? DatabaseFile.remove(path, vfs: vfs)
            throw StoreError(error)
        }
    }

    /// Replaces the file's contents by the copy's, in one transaction.
    /// - Returns: False if the copy cannot be put back, or must not be, because another program has
    ///   written to the file since and would lose its work.
    func putBack() throws -> Bool {
        guard let version, try original.dataVersion() == version else { return false }
        do {
            try original.copy(from: Connection(path: path, mode: .readWrite, vfs: vfs))
            return true
        } catch {
            return false
        }
    }

    /// Removes the copy, if there is one.
    func remove() throws {
        guard path != ":memory:" else { return }
        do {
            // This also removes the rest of a copy if a crash interrupted an earlier removal.
            try DatabaseFile.remove(path, vfs: vfs)
        } catch {
            throw StoreError(error)
        }
    }
}
