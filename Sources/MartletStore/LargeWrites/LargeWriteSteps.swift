internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Carries out operations of a large write in the database. The same transaction records the
/// progress and the keys that were made, so that each operation is done once.
struct LargeWriteSteps: Sendable {
    let name: String
    let identity: String

    private static let script = """
        CREATE TABLE IF NOT EXISTS martlet_large_writes(
            name TEXT PRIMARY KEY, identity TEXT NOT NULL, done INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_large_keys(
            name TEXT NOT NULL, made INTEGER NOT NULL, key NOT NULL, PRIMARY KEY (name, made))
            WITHOUT ROWID;
        """

    /// Prepares the database.
    /// - Returns: The number of operations that earlier runs have carried out.
    func begin(_ context: WriteContext) throws -> Int {
        let session = context.session
        if try session.connection.integer(
            "SELECT 1 FROM sqlite_master WHERE name = 'martlet_large_keys'") == nil
        {
            try session.connection.execute(Self.script)
            session.noteSchemaChange()
        }
        if let done = try done(session) { return done }
        // An earlier large write of the same name may have left traces.
        try forget(session)
        try session.forEachRow(
            "INSERT INTO martlet_large_writes VALUES (?, ?, 0)", [.text(name), .text(identity)]
        ) { _ in }
        return 0
    }

    private func done(_ session: Session) throws -> Int? {
        var done: Int?
        try session.forEachRow(
            "SELECT done FROM martlet_large_writes WHERE name = ? AND identity = ?",
            [.text(name), .text(identity)]
        ) { done = try $0.get(at: 0) }
        return done
    }

    /// Carries out operations.
    /// - Parameter after: The number of operations that must have been carried out before.
    /// - Returns: The number of operations left out because they were refused.
    func apply(
        _ operations: [LargeWriteOperation], after: Int, _ context: WriteContext,
        _ refused: (@Sendable (LargeWriteRefusal) -> Bool)?
    ) throws -> Int {
        guard try done(context.session) == after else {
            throw StoreError(
                .misuse, "The large write “\(name)” is run twice at the same time; run it once.")
        }
        var left = 0
        for (offset, operation) in operations.enumerated() {
            do {
                guard refused != nil else {
                    try apply(operation, context)
                    continue
                }
                try context.savepoint { try apply(operation, context) }
            } catch let error as StoreError where error.kind != .cancelled {
                let refusal = LargeWriteRefusal(
                    table: operation.table, values: operation.values, error: error)
                guard let refused, error.isOfOneRecord, refused(refusal) else {
                    throw error.inLargeWrite(name, number: after + offset + 1)
                }
                left += 1
            }
        }
        try context.session.forEachRow(
            "UPDATE martlet_large_writes SET done = ? WHERE name = ?",
            [.integer(Int64(after + operations.count)), .text(name)]
        ) { _ in }
        return left
    }

    private func apply(_ operation: LargeWriteOperation, _ context: WriteContext) throws {
        let table = PlainTable(operation.table, declaration: operation.declaration)
        let values = try withKeys(operation.values, table, context)
        switch operation.kind {
        case .insert:
            let key = try table.insert(values, in: context)
            guard let made = operation.made else { return }
            // Later operations may refer to the record.
            guard key != .integer(0) else { throw RowOutcome.passedOver(operation.table, nil) }
            try context.session.forEachRow(
                "INSERT INTO martlet_large_keys VALUES (?, ?, ?)",
                [.text(name), .integer(made), SQLValue(key)]
            ) { _ in }
        case .update:
            if try table.update(values, in: context) { return }
            // An update with the key alone shows whether the record exists.
            let statements = try table.statements(context)
            guard try !table.update(statements.keyValues(values), in: context) else {
                throw RowOutcome.passedOver(operation.table, statements.key(of: values))
            }
        case .delete:
            let key = values.values[0]
            guard try table.delete(key, in: context) || !table.exists(key, in: context) else {
                throw RowOutcome.passedOver(operation.table, RecordID(key))
            }
        }
    }

    /// Returns the values, with the keys that have been made in place of their numbers.
    private func withKeys(
        _ values: RecordValues, _ table: PlainTable<RecordValues>, _ context: WriteContext
    ) throws -> RecordValues {
        guard values.values.contains(where: LargeWriteFile.isMade) else { return values }
        let references = try context.session.referenceColumns(of: table.tableName)
        let key = try table.statements(context).description.key
        var result = values
        for (column, value) in zip(values.names, values.values)
        where LargeWriteFile.isMade(value) && (references.contains(column) || key.contains(column))
        {
            var found: SQLValue?
            try context.session.forEachRow(
                "SELECT key FROM martlet_large_keys WHERE name = ? AND made = ?",
                [.text(name), value]
            ) { found = try $0.value(at: 0) }
            guard let found else {
                throw StoreError(
                    .constraint,
                    "“\(table.tableName).\(column)” refers to a record of the large write that comes"
                        + " later or was left out; gather it before.")
            }
            result[column] = found
        }
        return result
    }

    /// Removes the traces of the large write.
    func end(_ context: WriteContext) throws {
        guard
            try context.session.connection.integer(
                "SELECT 1 FROM sqlite_master WHERE name = 'martlet_large_keys'") != nil
        else { return }
        try forget(context.session)
    }

    private func forget(_ session: Session) throws {
        for table in ["martlet_large_keys", "martlet_large_writes"] {
            try session.forEachRow("DELETE FROM \(table) WHERE name = ?", [.text(name)]) { _ in }
        }
    }
}

extension Session {
    /// Returns the columns of a table that refer to records.
    fileprivate func referenceColumns(of table: String) throws -> Set<String> {
        var columns: Set<String> = []
        try forEachRow("SELECT \"from\" FROM pragma_foreign_key_list(?)", [.text(table)]) { row in
            columns.insert(try row.get(at: 0))
        }
        return columns
    }
}

extension StoreError {
    /// Whether the error is about one record's values, and not about the file.
    fileprivate var isOfOneRecord: Bool {
        [.constraint, .value, .vetoed, .unknown, .tooLarge].contains(kind)
    }

    /// Returns the same error with the record's number in the large write.
    fileprivate func inLargeWrite(_ name: String, number: Int) -> StoreError {
        var error = self
        error.message = "Record \(number) of the large write “\(name)”: \(message)"
        return error
    }
}
