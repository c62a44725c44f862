internal import CSQLite

/// The counted work of SQLite on a disk, which is the same in every run and on every machine.
public struct DiskWork: Hashable, Sendable {
    /// The number of completed runs of statements.
    public var statements = 0
    /// The number of steps of SQLite's virtual machine in these runs.
    public var steps = 0
    /// The number of pages that these runs requested, whether they were in memory or not.
    public var pages = 0

    public init() {}

    /// Returns the work since an earlier count.
    public func since(_ earlier: DiskWork) -> DiskWork {
        var work = self
        work.statements -= earlier.statements
        work.steps -= earlier.steps
        work.pages -= earlier.pages
        return work
    }
}

/// Counts the work of all connections on certain disks, whichever code opens them.
enum WorkMeter {
    static let prefix = "metered-"

    /// Makes SQLite call this type for each opened connection. It is installed once per process.
    static let isInstalled: Bool = {
        let hook:
            @convention(c) (
                OpaquePointer?, UnsafeMutablePointer<UnsafePointer<CChar>?>?, OpaquePointer?
            ) -> CInt = { connection, _, _ in
                if let connection { WorkMeter.watch(connection) }
                return SQLITE_OK
            }
        // SQLite calls it with three arguments, despite its declaration
        // (https://sqlite.org/c3ref/auto_extension.html).
        let code = sqlite3_auto_extension(
            unsafeBitCast(hook, to: (@convention(c) () -> Void).self))
        return code == SQLITE_OK
    }()

    private static func watch(_ connection: OpaquePointer) {
        var system: UnsafeMutablePointer<sqlite3_vfs>?
        let code = sqlite3_file_control(
            connection, "main", SQLITE_FCNTL_VFS_POINTER, &system)
        guard code == SQLITE_OK, let system, let name = system.pointee.zName,
            String(cString: name).hasPrefix(prefix)
        else { return }
        // SQLite calls at the end of each run of a statement (https://sqlite.org/c3ref/c_trace.html).
        sqlite3_trace_v2(
            connection, UInt32(SQLITE_TRACE_PROFILE),
            { _, context, statement, _ in
                guard let context, let statement else { return 0 }
                let pointer = OpaquePointer(statement)
                VirtualFileSystem.of(context.assumingMemoryBound(to: sqlite3_vfs.self))?.disk
                    .count(pointer)
                return 0
            }, system)
    }
}

extension Disk {
    /// Counts the work of a statement since its last count.
    fileprivate func count(_ statement: OpaquePointer) {
        work.statements += 1
        work.steps += Int(sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1))
        let connection = sqlite3_db_handle(statement)
        for status in [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS] {
            var current: Int32 = 0
            var highest: Int32 = 0
            sqlite3_db_status(connection, status, &current, &highest, 1)
            work.pages += Int(current)
        }
    }
}
