internal import MartletDevice
internal import MartletStore
internal import SQLiteKit

/// Tells commits of other processes from those of the device's own two connections.
///
/// A connection's data version changes with every commit but its own. So after a save only the
/// local connection's version can tell whether anyone else has written too, after applying only
/// the applying one's; the other's is taken anew. The one taken anew is read first: a commit that
/// comes between the two readings then shows in both.
struct ExternalCommits {
    private var local: Int64 = 0
    private var applying: Int64 = 0
    private var isFound = false

    /// Counts from now on.
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

    /// Looks while neither connection has committed since the last call.
    mutating func look(_ store: DeviceStore) {
        applying = look(store.applying.connection, since: applying)
        local = look(store.local.connection, since: local)
    }

    /// Whether others have committed since the last call.
    mutating func takeFound() -> Bool {
        defer { isFound = false }
        return isFound
    }

    private mutating func look(_ connection: Connection, since known: Int64) -> Int64 {
        guard let now = version(connection), now != known else { return known }
        isFound = true
        return now
    }

    /// nil where the file cannot be read now; the next look will tell.
    private func version(_ connection: Connection) -> Int64? {
        try? connection.dataVersion()
    }
}
