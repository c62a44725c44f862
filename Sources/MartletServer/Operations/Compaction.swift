internal import Foundation
internal import MartletEmbedded
package import MartletModel
internal import MartletPostgres
internal import MartletProtocol
internal import MartletServerCore
package import PostgresKit
internal import SQLiteKit

/// Empties old entries of a log on an operator's command. The calls block.
package struct Compaction {
    /// The result of a compaction.
    package struct Result: Hashable, Sendable {
        /// The number of entries that lost their bodies.
        package var emptied = 0
        /// The revision below which a device gets the changed rows in place of entries.
        package var floor: Revision = 0
        package var revision: Revision = 0
    }

    /// Compacts a data set in a file, and gives the space back to the system.
    ///
    /// No server may run on the folder, because it would not notice the compaction.
    ///
    /// - Throws: `ServerFailure`, `SQLiteError`, `StorageFault`.
    package static func run(
        directory: String, dataSet: String, keeping newest: Int64, now: Int64
    ) throws -> Result {
        try DataSetName.check(dataSet)
        let path = "\(directory)/\(dataSet).sqlite"
        guard FileManager.default.fileExists(atPath: path) else {
            throw ServerFailure(
                "There is no data set “\(dataSet)” in “\(directory)”; check --data and --dataset.")
        }
        let lock = try DirectoryLock(directory: directory)
        defer { withExtendedLifetime(lock) {} }
        let result: Result
        do {
            let store = try EmbeddedStore(
                path: path, script: nil, identity: try DataSetFile(path).head().identity, now: now)
            result = try compact(try DataSetNode(store: store), keeping: newest)
        }
        let connection = try Connection(path: path, mode: .readWrite)
        try connection.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        return result
    }

    /// Compacts a data set in a database; servers may run on it.
    /// - Throws: `ServerFailure`, `PostgresError`, `StorageFault`.
    package static func run(
        postgres address: PostgresAddress, keeping newest: Int64
    ) throws -> Result {
        let store = try PostgresStore(address, ServedDatabase.options(name: "martlet compact"))
        let log = PostgresLog(
            address, ServedDatabase.options(name: "martlet compact"), schema: store.schema,
            unsendable: UnsendableRows())
        let node = try DataSetNode(
            storage: store, log: log, rules: .everything, cacheBytes: 1 << 20)
        let result = try compact(node, keeping: newest)
        let connection = try PostgresConnection(
            address, PostgresOptions(statement: nil, answer: nil, name: "martlet compact"))
        defer { connection.close() }
        _ = try connection.query("VACUUM (ANALYZE) _martlet.log")
        return result
    }

    private static func compact(_ node: DataSetNode, keeping newest: Int64) throws -> Result {
        var result = Result()
        while true {
            let step = node.compact(keeping: newest)
            if let fault = node.takeFault() { throw ServerFailure(fault.description) }
            result.emptied += step.emptied
            result.floor = step.floor
            result.revision = node.feed.head.revision
            if step.isDone { return result }
        }
    }
}
