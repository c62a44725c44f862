package import MartletModel
package import SQLiteKit
internal import SQLiteRecords

/// The writing connection of a database that is not synchronised. It is confined to its queue.
final class DatabaseWriter {
    let session: Session
    private let collector = ChangeCollector(ignoredPrefix: ReservedWords.prefix)
    private let hub: ChangeHub
    private let generation: SchemaGeneration
    private let randomBits: @Sendable () -> UInt64
    private var dataVersion: Int64

    init(
        session: Session, generation: SchemaGeneration, hub: ChangeHub,
        randomBits: @escaping @Sendable () -> UInt64
    ) throws {
        self.session = session
        self.generation = generation
        self.hub = hub
        self.randomBits = randomBits
        dataVersion = try session.connection.dataVersion()
        session.connection.report(to: collector)
    }

    /// Runs a save.
    /// - Parameter sign: It is checked before the commit; the save is rolled back if it is no
    ///   longer wanted.
    func write<Result>(
        _ sign: CancellationFlag, _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        var made = 0
        while true {
            do {
                return try session.stopping(by: sign) {
                    try transaction { context in
                        let result = try body(context)
                        try sign.check()
                        return result
                    }
                }
            } catch let missing as MissingTable where made < MissingTable.limit {
                made += 1
                try make(missing)
            }
        }
    }

    private func transaction<Result>(
        _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        let connection = session.connection
        let context = WriteContext(session: session, randomBits: randomBits)
        defer { context.end() }
        collector.listsRows = hub.isWanted
        do {
            try session.checkNotMoved()
            try connection.begin()
            try session.begin()
            let result = try body(context)
            hub.drafts.review(context, causes: .local)
            try commit()
            session.committed()
            hub.drafts.commit()
            publish()
            return result
        } catch {
            connection.rollback()
            session.rolledBack()
            collector.clear()
            hub.drafts.rollBack()
            throw StoreError.of(error)
        }
    }

    /// Commits. If a deferred foreign key refuses the commit, the error names the references.
    private func commit() throws {
        do {
            try session.connection.commit()
        } catch {
            var refusal = StoreError(error)
            if refusal.constraint?.kind == .foreignKey {
                refusal.constraint?.columns = session.danglingReferences()
            }
            throw refusal
        }
    }

    /// Creates a table on its first use, unless it was created meanwhile.
    func make(_ missing: MissingTable) throws {
        let connection = session.connection
        do {
            try connection.transaction {
                let isThere = try TableDescription.read(missing.name, connection) != nil
                if isThere, !missing.isDerived { return }
                try connection.execute(missing.declaration)
                guard try TableDescription.read(missing.name, connection) != nil else {
                    throw missing.isNotDeclared
                }
            }
        } catch {
            throw StoreError.of(error, table: missing.name)
        }
        generation.advance()
    }

    private func publish() {
        guard !collector.isEmpty else { return }
        guard hub.isWanted else { return collector.clear() }
        let taken = collector.take()
        hub.publish(
            DatabaseChange(
                causes: .local, tables: ChangedRecords.byTable(taken, session: session)))
    }

    /// Checks whether another connection, of any process, has written.
    func lookForExternalWrites() {
        guard let version = try? session.connection.dataVersion(),
            version != dataVersion
        else { return }
        dataVersion = version
        generation.advance()
        if !hub.drafts.isEmpty {
            // The session is a new one, because another program may have changed the schema.
            let context = ReadContext(
                session: Session(connection: session.connection, generation: generation))
            defer { context.end() }
            hub.drafts.catchUp(context, causes: .elsewhere)
        }
        hub.publish(DatabaseChange(causes: .elsewhere, tables: [:], isUnbounded: true))
    }
}

extension ChangedRecords {
    /// Returns the changes that a collector has taken, with the records' keys.
    /// - Parameter gone: The keys known to be deleted, by table.
    package static func byTable(
        _ taken: [String: ChangeCollector.Rows], gone: [String: Set<RecordID>] = [:],
        session: Session
    ) -> [String: ChangedRecords] {
        var tables: [String: ChangedRecords] = [:]
        for (name, rows) in taken {
            let description = try? session.description(of: name)
            tables[name] = ChangedRecords(rows, gone: gone[name] ?? []) { rowID in
                guard let description, description.rowIDColumn == nil,
                    description.key.count == 1
                else { return .integer(rowID) }
                return session.key(ofRow: rowID, in: description)
            }
        }
        return tables
    }
}

extension Session {
    /// Returns the key of the record in a row; nil if the row is gone.
    fileprivate func key(ofRow rowID: Int64, in table: TableDescription) -> RecordID? {
        let sql = """
            SELECT \(SQLName.quoted(table.key[0])) FROM \(SQLName.quoted(table.name))
            WHERE rowid = ?
            """
        guard let statement = try? connection.statement(sql) else { return nil }
        statement.bind(1, integer: rowID)
        defer { statement.reset() }
        guard (try? statement.step()) == true else { return nil }
        return try? statement.recordID(0)
    }
}
