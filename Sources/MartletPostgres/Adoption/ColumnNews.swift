import MartletCore
import MartletProtocol
import MartletServerCore
package import PostgresKit

/// What became of the columns of synchronised tables since they were last read: new ones are
/// announced to devices, with the values they gave to old rows.
struct ColumnNews {
    private let log: LogAppender
    private let schema: PostgresSchema
    /// Sentences about what changed.
    private(set) var notes: [String] = []

    init(_ log: LogAppender, _ schema: PostgresSchema) {
        self.log = log
        self.schema = schema
    }

    /// Compares the columns with those noted, enters what is new, and notes them as they are.
    /// A table of which nothing is noted yet has no news.
    mutating func announce() throws {
        var isOther = false
        for (type, table) in schema.tables.enumerated() {
            let known = try known(table)
            let names = ([table.key] + table.columns).map(\.name)
            guard known != Set(names) else { continue }
            isOther = true
            if !known.isEmpty {
                let gone = known.subtracting(names).sorted()
                let added = table.columns.filter { !known.contains($0.name) }
                for name in gone {
                    notes.append("table “\(table.type.name)” has no column “\(name)” any more")
                }
                for column in added {
                    notes.append("table “\(table.type.name)” has a new column “\(column.name)”")
                }
                if !added.isEmpty { try announce(added, of: type) }
            }
            _ = try log.connection.query(
                "DELETE FROM _martlet.columns WHERE type = $1", [.integer(table.number)])
            _ = try log.connection.query(
                "INSERT INTO _martlet.columns (type, name) SELECT $1, unnest($2::text[])",
                [
                    .integer(table.number), .array(PostgresArray(names.map { .text($0) })),
                ])
        }
        if isOther {
            _ = try log.connection.query("UPDATE _martlet.dataset SET tables = tables + 1")
        }
    }

    private func known(_ table: PostgresTable) throws(PostgresError) -> Set<String> {
        let rows = try log.connection.query(
            "SELECT name FROM _martlet.columns WHERE type = $1", [.integer(table.number)])
        var names: Set<String> = []
        for row in 0..<rows.count { names.insert(try rows.text(row, 0)) }
        return names
    }

    /// The rows keep their revisions: nobody changed them, and no edit that waits on a device is
    /// stale for it. A row that no device can be sent has nothing to be announced of.
    private func announce(_ columns: [PostgresColumn], of type: Int) throws {
        var pending: [RecordEntry] = []
        let rows = try TableRows(schema.tables[type], columns: columns, on: log.connection)
        try rows.forEach(
            unsendable: { _, _ in },
            { id, row in
                let kept = zip(row.names, row.values).filter { $0.1 != .null }
                guard !kept.isEmpty else { return }
                pending.append(
                    RecordEntry(
                        id: id, revision: nil,
                        attributes: Attributes(names: kept.map(\.0), values: kept.map(\.1))))
                if pending.count == RowEntries.recordsPerSet {
                    try enter(pending, of: type)
                    pending = []
                }
            })
        try enter(pending, of: type)
    }

    /// Enters those that are records of the log; of a row that another program made just now, the
    /// log has yet to be told.
    private func enter(_ pending: [RecordEntry], of type: Int) throws {
        guard !pending.isEmpty else { return }
        let table = schema.tables[type]
        let ids = PostgresValue.array(
            PostgresArray(pending.map { .text($0.id.description) }))
        let rows = try log.connection.query(
            """
            SELECT id, revision FROM _martlet.records \
            WHERE type = $1 AND id = ANY ($2::text[]) AND NOT deleted
            """, [.integer(table.number), ids])
        var revisions: [String: Int64] = [:]
        for row in 0..<rows.count {
            revisions[try rows.text(row, 0)] = try rows.integer(row, 1)
        }
        let entries = pending.compactMap { entry in
            revisions[entry.id.description].map {
                RecordEntry(id: entry.id, revision: $0, attributes: entry.attributes)
            }
        }
        guard !entries.isEmpty else { return }
        _ = try log.connection.query(
            "INSERT INTO _martlet.announced (revision, type, id) SELECT $1, $2, unnest($3::text[])",
            [
                .integer(log.head.revision + 1), .integer(table.number),
                .array(PostgresArray(entries.map { .text($0.id.description) })),
            ])
        try log.enter([
            TypeChanges(name: table.type.name, update: entries.map(\.id), entries: entries)
        ])
    }
}

extension PostgresSchema {
    /// Reads the tables as they are now, as a server does when it starts: Martlet's tables are
    /// brought to this release's form, and columns that are new are announced to devices.
    /// - Parameter now: Milliseconds since 1970.
    /// - Throws: `AdoptionError`, `PostgresError`.
    package static func refresh(
        _ connection: PostgresConnection, now: Int64
    ) throws -> PostgresSchema {
        try MartletTables.upgrade(on: connection)
        return try connection.transaction {
            let log = try LogAppender(on: connection, now: now)
            let schema = try read(connection)
            var news = ColumnNews(log, schema)
            try news.announce()
            try log.finish()
            return schema.adding(notes: news.notes)
        }
    }

    private func adding(notes more: [String]) -> PostgresSchema {
        PostgresSchema(
            schema: schema, tables: tables, deviceScript: deviceScript, notes: notes + more,
            version: version, capture: capture)
    }
}
