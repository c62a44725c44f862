import MartletModel
package import MartletServerCore
import SQLiteKit

/// Looks for writes to a data set's file by other programs, on a connection of its own. It is
/// confined to the queue of its holder, and blocks.
package final class EmbeddedWatch {
    private let path: String
    private let vfs: String?
    private var connection: Connection?
    private var version: Int64?
    private var found: StorageLook?
    private var tables = OpenedTables()

    /// Makes a watch.
    ///
    /// - Parameter store: The data set's storage. The watch takes only its path from it.
    package convenience init(store: EmbeddedStore) {
        self.init(path: store.path, vfs: store.vfs)
    }

    package init(path: String, vfs: String? = nil) {
        self.path = path
        self.vfs = vfs
    }

    /// Returns the present state. It costs one small query if no program has written since the last
    /// look.
    ///
    /// - Throws: `StorageFault` if the file cannot be read; `.moved` if it is no longer at its
    ///   path.
    package func look() throws(StorageFault) -> StorageLook {
        if connection?.hasMoved == true { throw .moved }
        do throws(SQLiteError) {
            let open = try opened()
            let version = try open.integer("PRAGMA data_version") ?? 0
            if let found, version == self.version { return found }
            let look = try read(open)
            found = look
            self.version = version
            return look
        } catch {
            connection = nil
            found = nil
            throw StorageFault(error)
        }
    }

    /// Returns the number of changes that are in no entry of the log yet.
    ///
    /// - Throws: `StorageFault` if the file cannot be read.
    package func waiting() throws(StorageFault) -> Int {
        do throws(SQLiteError) {
            let open = try opened()
            return Int(try open.integer("SELECT count(*) FROM martlet_outside") ?? 0)
        } catch {
            connection = nil
            throw StorageFault(error)
        }
    }

    private func opened() throws(SQLiteError) -> Connection {
        if let connection { return connection }
        let made = try Connection(path: path, mode: .readWrite, vfs: vfs)
        connection = made
        found = nil
        return made
    }

    private func read(_ connection: Connection) throws(SQLiteError) -> StorageLook {
        // If it is, the writer cannot take external writes in.
        let isChanged = try tables.fault(on: connection) != nil
        let statement = try connection.statement(
            """
            SELECT revision, hash, \
            ifnull((SELECT value FROM martlet_meta WHERE key = 'floor'), 0), \
            EXISTS (SELECT 1 FROM martlet_outside) FROM martlet_dataset
            """)
        defer { statement.reset() }
        guard try statement.step() else {
            throw SQLiteError.mismatch("martlet_dataset is empty")
        }
        return StorageLook(
            head: LogHead(
                revision: statement.integer(0), hash: LineageHash(stored: statement.blob(1))),
            floor: statement.integer(2), hasExternalWrites: !isChanged && statement.integer(3) != 0,
            tables: isChanged ? 1 : 0)
    }
}

@available(*, unavailable)
extension EmbeddedWatch: Sendable {}
