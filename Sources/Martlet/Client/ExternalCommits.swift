internal import MartletDevice
internal import MartletStore
internal import SQLiteKit

/// Tells commits of other processes from those of the device's own two connections.
///
/// A connection's data version changes with every commit except its own. So after a save, only the
/// local connection's version shows whether another process has written too; after applying, only
/// the applying connection's version does. The other connection's version is read again, and it is
/// read first: a commit between the two readings then shows in both.
struct ExternalCommits {
    private var local: Int64 = 0
    private var applying: Int64 = 0
    private var isFound = false

    /// Starts counting from now.
    mutating func begin(_ store: DeviceStore) {
        applying = version(store.applying.connection) ?? 0
        local = version(store.local.connection) ?? 0
    }

    /// Call after each commit of the local connection.
    mutating func saved(_ store: DeviceStore) {
        applying = version(store.applying.connection) ?? applying
        local = look(store.local.connection, since: local)
    }

    /// Call after each commit of the applying connection.
    mutating func applied(_ store: DeviceStore) {
        local = version(store.local.connection) ?? local
        applying = look(store.applying.connection, since: applying)
    }

    /// Checks for external commits. Neither connection may have committed since the last call.
    mutating func look(_ store: DeviceStore) {
        applying = look(store.applying.connection, since: applying)
        local = look(store.local.connection, since: local)
    }

    /// Returns whether another process has committed since the last call.
    mutating func takeFound() -> Bool {
        defer { isFound = false }
        return isFound
    }

    private mutating func look(_ connection: Connection, since known: Int64) -> Int64 {
        guard let now = version(connection), now != known else { return known }
        isFound = true
        return now
    }

    /// Returns nil if the file cannot be read now; the next check will tell.
    private func version(_ connection: Connection) -> Int64? {
        try? connection.dataVersion()
    }
}
