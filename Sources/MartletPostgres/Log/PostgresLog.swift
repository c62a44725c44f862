package import MartletModel
internal import MartletProtocol
package import MartletServerCore
package import PostgresKit

/// Reads the log of a data set in PostgreSQL on a separate connection, which is opened when it is
/// first needed, and again after it was lost.
package final class PostgresLog: LogSource {
    private let connection: ReadingConnection
    private let schema: Schema
    /// The names that each difference checks; nil if there are no policies.
    private let names: TableNames?
    private let unsendable: UnsendableRows
    /// The moment at which external writes are in the log; nil if this log cannot add them.
    private let moment: StagingMoment?
    /// Makes a log with a function that connects.
    /// - Parameters:
    ///   - schema: The types whose rows differences contain.
    ///   - unsendable: Receives the rows that are left out of differences.
    ///   - connect: Makes a connection. One that only reads is enough.
    package convenience init(
        schema: Schema, unsendable: UnsendableRows = UnsendableRows(),
        connect: @escaping () throws(PostgresError) -> PostgresConnection
    ) {
        self.init(
            schema: schema, names: nil, unsendable: unsendable, moment: nil, connect: connect)
    }

    private init(
        schema: Schema, names: TableNames?, unsendable: UnsendableRows, moment: StagingMoment?,
        connect: @escaping () throws(PostgresError) -> PostgresConnection
    ) {
        self.schema = schema
        self.names = names
        self.unsendable = unsendable
        self.moment = moment
        connection = ReadingConnection(settings: DataSetSession.settings, connect: connect)
    }

    /// Makes a log of the database at an address.
    /// - Parameters:
    ///   - options: The options of its connections. These only read, except for those that add
    ///     external writes to the log if a difference would be ahead of it.
    ///   - names: The names that each difference checks; nil if there are no policies.
    ///   - now: Returns the milliseconds since 1970, for those entries; nil if the log must not
    ///     make any.
    package convenience init(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions(),
        schema: Schema, checking names: TableNames? = nil,
        unsendable: UnsendableRows = UnsendableRows(), now: (() -> Int64)? = nil
    ) {
        self.init(
            schema: schema, names: names, unsendable: unsendable,
            moment: now.map {
                StagingMoment(
                    address: address, unsendable: unsendable, now: $0, purpose: "difference")
            },
            connect: ReadingConnection.maker(address, options))
    }

    package func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry] {
        try connection.reading { (connection, _) throws(PostgresError) in
            try LogPages.entries(from: first, through: last, maxBytes: maxBytes, on: connection)
        }
    }

    package func extent() throws(StorageFault) -> LogExtent {
        try connection.reading { (connection, _) throws(PostgresError) in
            let row = try connection.query(
                "SELECT revision, hash, floor FROM _martlet.dataset WHERE number = 1")
            guard row.count == 1 else { throw PostgresError(.other, "_martlet.dataset is empty") }
            return LogExtent(
                head: LogHead(
                    revision: try row.integer(0, 0),
                    hash: LineageHash(stored: try row.binary(0, 1))),
                floor: try row.integer(0, 2))
        }
    }

    package func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry] {
        // Every answer asks this; most answers repeat nothing.
        guard !revisions.isEmpty else { return [] }
        return try connection.reading { (connection, _) throws(PostgresError) in
            let rows = try connection.query(
                "SELECT \(LogPages.columns) FROM _martlet.log WHERE revision = ANY ($1::bigint[])",
                [PendingWrites.integers(revisions)])
            var entries: [LogEntry] = []
            for row in 0..<rows.count { entries.append(try LogPages.entry(rows, row)) }
            return entries
        }
    }

    package func times(of revisions: [Revision]) throws(StorageFault) -> [Revision: Int64] {
        guard !revisions.isEmpty else { return [:] }
        return try connection.reading { (connection, _) throws(PostgresError) in
            let rows = try connection.query(
                "SELECT revision, time FROM _martlet.log WHERE revision = ANY ($1::bigint[])",
                [PendingWrites.integers(revisions)])
            var times: [Revision: Int64] = [:]
            for row in 0..<rows.count {
                times[try rows.integer(row, 0)] = try rows.integer(row, 1)
            }
            return times
        }
    }

    package func hash(at revision: Revision) throws(StorageFault) -> LineageHash? {
        try connection.reading { (connection, _) throws(PostgresError) in
            guard revision > 0 else {
                let rows = try connection.query(
                    "SELECT identity FROM _martlet.dataset WHERE number = 1")
                return rows.count == 1 ? LineageHash(origin: try rows.text(0, 0)) : nil
            }
            let rows = try connection.query(
                "SELECT hash FROM _martlet.log WHERE revision = $1", [.integer(revision)])
            return rows.count == 1 ? LineageHash(stored: try rows.binary(0, 0)) : nil
        }
    }

    package func confirmation(of device: Int64) throws(StorageFault) -> Revision? {
        try connection.reading { (connection, _) throws(PostgresError) in
            let rows = try connection.query(
                "SELECT revision FROM _martlet.purges WHERE device = $1 AND view > 0",
                [.integer(device)])
            return rows.count == 1 ? try rows.integer(0, 0) : nil
        }
    }

    package func difference(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        // The moment may be fixed twice if the connection was lost. The limit is read once.
        var asked: Revision?
        func once() -> Revision {
            let last = asked ?? limit()
            asked = last
            return last
        }
        let part = try connection.reading { (connection, model) throws(PostgresError) in
            try scan(connection, model).part(request, limit: once)
        }
        if let part { return part }
        return try consistentDifference(request, limit: once)
    }

    private func scan(_ connection: PostgresConnection, _ model: PostgresModel) -> DifferenceScan {
        DifferenceScan(
            connection: connection, model: model, schema: schema, names: names,
            unsendable: unsendable)
    }

    /// Reads a difference at a moment that is made for it by adding external writes to the log.
    private func consistentDifference(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        guard let moment else {
            throw StorageFault(
                .busy,
                "another program has written what is not in the log yet; a server takes it in")
        }
        do {
            let (connection, _) = try moment.open(schema.fingerprint)
            defer { connection.close() }
            let part = try scan(connection, PostgresModel(on: connection))
                .consistentPart(request, limit: limit)
            try connection.end(checking: names)
            return part
        } catch let error as PostgresError {
            throw StorageFault(error)
        } catch let fault as StorageFault {
            throw fault
        } catch {
            throw StorageFault(.failed, String(describing: error))
        }
    }
}

@available(*, unavailable)
extension PostgresLog: Sendable {}
