internal import Foundation
internal import MartletEmbedded
package import MartletServerCore
internal import SQLiteKit

/// Lists which devices have confirmed that nothing is left in them of records which their users may
/// not see. It changes nothing, and a server may run. The calls block.
package enum PurgeReport {
    /// Returns the devices of each data set of a data folder.
    ///
    /// - Throws: `ServerFailure` if there is no such folder, or if a file has another format or cannot be
    ///   read.
    package static func files(
        in directory: String
    ) throws -> [(dataSet: String, devices: [DevicePurge])] {
        guard FileManager.default.fileExists(atPath: directory) else {
            throw ServerFailure("There is no folder “\(directory)”; check --data.")
        }
        return try DataSetDirectory.names(in: directory).map { name in
            do {
                return (name, try devices(name, "\(directory)/\(name).sqlite"))
            } catch let error as SQLiteError {
                throw ServerFailure(
                    "The data set “\(name)” cannot be read: \(error.message). martlet doctor --data says more."
                )
            }
        }
    }

    private static func devices(_ name: String, _ path: String) throws -> [DevicePurge] {
        let connection = try Connection(
            path: path, mode: .readOnly, busyTimeoutMilliseconds: 10_000)
        let format = try connection.integer("SELECT value FROM martlet_meta WHERE key = 'format'")
        guard format == EmbeddedTables.format else {
            throw ServerFailure(
                "“\(name)” has tables of format \(format ?? 0), not \(EmbeddedTables.format). A server"
                    + " of this release has to open it first.")
        }
        return try DevicePurges(prefix: "martlet_").list { (query) throws(SQLiteError) in
            let rows = try connection.statement(query)
            return try rows.rows { (row) throws(SQLiteError) in
                (0..<row.columnCount).map { row.isNull($0) ? nil : row.text($0) }
            }
        }
    }
}
