import MartletModel
import MartletProtocol
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Opens a data set's file: creates Martlet's tables, brings the user's tables to the script, and
/// enters the rows that Martlet does not know yet.
struct EmbeddedOpening {
    let connection: Connection

    init(path: String, vfs: String?) throws(SQLiteError) {
        connection = try EmbeddedSession.connect(path: path, vfs: vfs)
    }

    /// Does all of it in one transaction, or nothing, and returns the schema.
    func prepare(script: String?, identity: String, now: Int64) throws -> Schema {
        try connection.transaction {
            if try EmbeddedTables.exist(in: connection) {
                try upgrade(from: try format())
            } else {
                try create(identity: identity)
            }
            try connection.run("UPDATE martlet_dataset SET applying = 1")
            try ExternalTriggers.remove(from: connection)
            let (before, found) = (
                try SchemaReader.read(connection), try OpenedTables.find(on: connection)
            )
            let schema: Schema
            if let script {
                schema = try SchemaMigration.apply(script: script, to: connection)
            } else {
                schema = before
            }
            try OpenedTables.check(found, schema)
            let new = try register(schema)
            connection.clearStatementCache()
            try connection.deferForeignKeys()
            let session = try EmbeddedSession(connection: connection, schema: schema)
            let adoption = Adoption(session: session, now: now)
            try adoption.adopt(types: new)
            try adoption.announceColumns(added: addedColumns(from: before, to: schema, new))
            try session.flush()
            try ExternalTriggers(schema: schema, numbers: session.numbers).install(on: connection)
            try OpenedTables.note(schema, on: connection)
            return schema
        }
    }

    private func format() throws -> Int64 {
        let format = try connection.integer(
            "SELECT value FROM martlet_meta WHERE key = 'format'")
        guard let format, format <= EmbeddedTables.format else {
            throw StorageFault(
                .failed,
                """
                the data set's file was written by a newer version of Martlet (format \
                \(format ?? 0), this one knows \(EmbeddedTables.format)); use that version
                """)
        }
        return format
    }

    /// Brings Martlet's own tables from an older version's format to this one's.
    private func upgrade(from format: Int64) throws {
        guard format < EmbeddedTables.format else { return }
        if format < 2 { try upgradeToDifferences() }
        if format < 3 { try EmbeddedTables.createForExternal(in: connection) }
        if format < 4 { try EmbeddedTables.createForViews(in: connection) }
        if format < 5 { try EmbeddedTables.createForPurges(in: connection) }
        if format < 6 { try EmbeddedTables.createForColumns(in: connection) }
        try connection.run(
            "UPDATE martlet_meta SET value = \(EmbeddedTables.format) WHERE key = 'format'")
    }

    private func upgradeToDifferences() throws {
        try EmbeddedTables.createForDifferences(in: connection)
        let entries = try connection.prepare(
            """
            SELECT revision, body FROM martlet_log WHERE device = 0 AND identifier IS NULL
            """)
        let announced = try connection.prepare(
            """
            INSERT INTO martlet_announced SELECT ?1, number, ?3 FROM martlet_types \
            WHERE name = ?2
            """)
        while try entries.step() {
            // A record in an entry that kept its revision has a new column's value.
            let revision = entries.integer(0)
            for changes in try SyncCoder.decodeChangeSet(entries.blob(1)).types {
                for entry in changes.entries where entry.revision ?? revision < revision {
                    announced.bind(1, integer: revision)
                    announced.bind(2, text: changes.name)
                    announced.bind(3, entry.id)
                    try announced.run()
                }
            }
        }
    }

    private func create(identity: String) throws(SQLiteError) {
        try EmbeddedTables.create(in: connection)
        try connection.run(
            "INSERT INTO martlet_meta VALUES ('format', \(EmbeddedTables.format))")
        let statement = try connection.prepare(
            "INSERT INTO martlet_dataset (number, identity, revision, hash) VALUES (1, ?1, 0, ?2)")
        statement.bind(1, text: identity)
        statement.bind(2, blob: LineageHash(origin: identity).bytes)
        try statement.run()
    }

    /// Gives every type a number.
    ///
    /// - Returns: The positions of the types that had none.
    private func register(_ schema: Schema) throws(SQLiteError) -> [Int] {
        var new: [Int] = []
        for (position, type) in schema.types.enumerated() {
            let statement = try connection.statement(
                """
                INSERT INTO martlet_types (name, next_id) VALUES (?1, 1) \
                ON CONFLICT (name) DO NOTHING
                """)
            defer { statement.reset() }
            statement.bind(1, text: type.name)
            while try statement.step() {}
            if connection.changes > 0 { new.append(position) }
        }
        return new
    }

    /// Returns the attributes that known types have gained, by the type's position.
    private func addedColumns(
        from before: Schema, to schema: Schema, _ new: [Int]
    ) -> [Int: [String]] {
        var added: [Int: [String]] = [:]
        for (position, type) in schema.types.enumerated() where !new.contains(position) {
            guard let old = before[type.name] else { continue }
            let names = type.attributes.map(\.name).filter { old[attribute: $0] == nil }
            if !names.isEmpty { added[position] = names }
        }
        return added
    }
}
