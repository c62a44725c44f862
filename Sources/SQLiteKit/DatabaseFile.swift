internal import CSQLite

/// Operations of a VFS on a database's file, for files next to a database that the kit's user makes
/// and removes.
public enum DatabaseFile {
    /// Returns whether a file exists.
    /// - Throws: `SQLiteError` if the VFS cannot tell.
    public static func exists(_ path: String, vfs: String? = nil) throws(SQLiteError) -> Bool {
        let system = try find(vfs)
        var result: Int32 = 0
        let code = system.pointee.xAccess(
            system, try fullPath(path, system), SQLITE_ACCESS_EXISTS, &result)
        guard code == SQLITE_OK else { throw error(code, "cannot be looked for") }
        return result != 0
    }

    /// Removes a file that no connection has open, and the files that SQLite may have left next to
    /// it. Does nothing if there is none.
    /// - Throws: `SQLiteError` if the VFS cannot remove it.
    public static func remove(_ path: String, vfs: String? = nil) throws(SQLiteError) {
        let system = try find(vfs)
        // The database is first, because the other files mean nothing without it.
        for suffix in ["", "-wal", "-shm", "-journal"] where try exists(path + suffix, vfs: vfs) {
            let code = system.pointee.xDelete(system, try fullPath(path + suffix, system), 1)
            guard code == SQLITE_OK || code == SQLITE_IOERR | 23 << 8 else {  // DELETE_NOENT
                throw error(code, "cannot be removed")
            }
        }
    }

    private static func find(
        _ vfs: String?
    ) throws(SQLiteError) -> UnsafeMutablePointer<sqlite3_vfs> {
        sqlite3_initialize()
        guard let system = sqlite3_vfs_find(vfs) else {
            throw SQLiteError(extendedCode: SQLITE_ERROR, message: "no such VFS: \(vfs ?? "")")
        }
        return system
    }

    /// Returns the absolute path, as the VFS expects it.
    private static func fullPath(
        _ path: String, _ system: UnsafeMutablePointer<sqlite3_vfs>
    ) throws(SQLiteError) -> [CChar] {
        var buffer = [CChar](repeating: 0, count: Int(system.pointee.mxPathname) + 1)
        let code = system.pointee.xFullPathname(system, path, Int32(buffer.count), &buffer)
        // OK_SYMLINK: the path led through a link.
        guard code == SQLITE_OK || code == SQLITE_OK | 2 << 8 else {
            throw error(code, "has a path that cannot be used")
        }
        return buffer
    }

    private static func error(_ code: Int32, _ what: String) -> SQLiteError {
        SQLiteError(extendedCode: code, message: "the database file \(what)")
    }
}
