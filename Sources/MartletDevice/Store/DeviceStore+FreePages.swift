internal import MartletStore
internal import SQLiteKit

/// Returns the file's free pages to the disk in small steps.
extension DeviceStore {
    /// Returns some of the free pages, in one transaction. While there are traces of hidden records, no page is
    /// returned: others would move to its place, and the removal of traces would miss them.
    /// - Parameters:
    ///   - most: The pages of one step.
    ///   - kept: The free pages that stay for later use.
    /// - Returns: Whether there are more; always false for a file that an older version made, which
    ///   cannot shrink.
    package func giveBackPages(most: Int, keeping kept: Int) throws -> Bool {
        try checkWritable()
        let connection = applying.connection
        guard try connection.integer("PRAGMA auto_vacuum") == 2 else { return false }
        return try connection.transaction {
            let free = Int(try connection.integer("PRAGMA freelist_count") ?? 0) - kept
            guard try free > 0 && !standing.hasTraces else { return false }
            try connection.execute("PRAGMA incremental_vacuum(\(min(free, most)))")
            return free > most
        }
    }
}
