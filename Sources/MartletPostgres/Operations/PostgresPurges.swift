package import MartletServerCore
package import PostgresKit

/// Lists the devices of a database's data set with what they have confirmed.
package enum PostgresPurges {
    /// Returns the devices; see `DevicePurges`.
    ///
    /// - Throws: `AdoptionError` if the database has no data set of this release's format;
    ///   `PostgresError`.
    package static func list(
        on connection: PostgresConnection
    ) throws -> (dataSet: String, devices: [DevicePurge]) {
        guard let dataSet = try MartletTables.dataSet(on: connection),
            dataSet.format == MartletTables.format
        else {
            throw AdoptionError(
                "the database has no data set of format \(MartletTables.format)",
                "let a server of this release open it first")
        }
        let devices = try DevicePurges(prefix: "_martlet.").list { (query) throws(PostgresError) in
            let rows = try connection.query(query)
            var list: [[String?]] = []
            for row in 0..<rows.count {
                var texts: [String?] = []
                for column in 0..<rows.columnCount {
                    texts.append(rows.isNull(row, column) ? nil : try rows.text(row, column))
                }
                list.append(texts)
            }
            return list
        }
        return (dataSet.name, devices)
    }
}
