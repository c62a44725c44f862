internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// A fast insert for records of one `Codable` type. It binds their properties directly to one
/// prepared INSERT, without values by name in between.
///
/// It is used only if there are no hooks, because hooks receive values by name.
final class DirectInsert {
    private let statement: Statement
    private let binder: RecordBinder
    private let columns: TableColumns
    private unowned let statements: TableStatements
    private let tableName: String
    /// Whether the type implements `dictionaryRepresentation` itself. Such types cannot use this.
    private var isOff = false
    /// The tables whose rows the INSERT writes without a report from SQLite's update hook.
    private let unclearTables: [String]
    /// Whether SQLite makes the key if it is null.
    private let databaseMakesKeys: Bool

    /// - Returns: Nil if the type encodes no column of the table, encodes a name twice, or leaves
    ///   out the key's only column.
    init?(
        type: ObjectIdentifier, names: [String], tableName: String,
        _ statements: TableStatements, _ session: Session
    ) throws {
        let description = statements.description
        let wanted = names.filter { statements.columns.contains($0) }
        guard !wanted.isEmpty, Set(names).count == names.count,
            description.key.count != 1 || wanted.contains(description.key[0])
        else { return nil }
        statement = try session.connection.statement(statements.insertSQL(wanted))
        binder = RecordBinder(
            type: type,
            slots: names.map { name in
                RecordBinder.Slot(
                    name: name, kind: statements.kind(of: name) ?? .any,
                    parameter: Int32((wanted.firstIndex(of: name) ?? -1) + 1))
            }, key: description.key.count == 1 ? description.key[0] : nil,
            statement: statement, mayHoldTemporaryIDs: statements.type != nil)
        columns = statements.columns.binding(to: binder)
        self.statements = statements
        self.tableName = tableName
        unclearTables = session.unclearTables(of: statement)
        databaseMakesKeys =
            description.rowIDColumn != nil && statements.keyKind == nil
            && statements.madeByDefault == nil
    }

    deinit {
        binder.forgetContainer()
    }

    /// Inserts a record.
    /// - Returns: The record's key; 0 if SQLite skips the record. Nil if the caller must insert the
    ///   record by name; then nothing was written.
    func insert(_ record: some Record, _ context: WriteContext) throws -> RecordID? {
        guard !isOff, !statement.isBusy else { return nil }
        binder.begin()
        _ = try record.dictionaryRepresentation(columns: columns, table: tableName)
        guard binder.isBound else {
            isOff = !binder.wasAsked
            return nil
        }
        var key: RecordID?
        if let given = binder.key {
            if !given.isNull {
                // The insert by name reports the error of a key that only Martlet may make.
                guard statements.keyKind != .integer else { return nil }
                key = RecordID(given)
            } else if statements.keyKind != nil {
                let made = try context.newKey(statements)
                binder.bind(key: SQLValue(made))
                key = made
            } else if !databaseMakesKeys {
                return nil
            }
        }
        let connection = context.session.connection
        do {
            while try statement.step() {}
        } catch {
            statement.reset()
            // Nothing was written. The insert by name meets the same error and can explain it.
            if error.isConstraint, connection.isInTransaction { return nil }
            throw StoreError.of(error, table: tableName, key: key)
        }
        // The bindings stay, because the next record replaces all of them.
        statement.rewind()
        context.session.noteAll(unclearTables)
        // If SQLite skips the record, no row has its key.
        guard connection.changes > 0 else { return .integer(0) }
        return key ?? .integer(statements.madeRowID(connection))
    }
}

extension TableStatements {
    /// Inserts a record with the direct insert of its type.
    /// - Returns: The record's key; 0 if SQLite skips the record. Nil if the caller must insert the
    ///   record by name.
    func insertDirectly<Item: Record>(
        _ record: Item, tableName: String, _ context: WriteContext
    ) throws -> RecordID? {
        guard context.session.hooks.isEmpty else { return nil }
        let type = ObjectIdentifier(Item.self)
        if lastDirect?.type != type {
            if let known = directs[type] {
                lastDirect = (type, known)
            } else {
                // The first record of a type shows which names the type encodes.
                var direct: DirectInsert?
                if let encodable = record as? any Encodable,
                    let values = try? RecordEncoder.values(of: encodable)
                {
                    do {
                        direct = try DirectInsert(
                            type: type, names: values.names, tableName: tableName, self,
                            context.session)
                    } catch {
                        throw StoreError.of(error, table: tableName)
                    }
                }
                directs[type] = .some(direct)
                lastDirect = (type, direct)
            }
        }
        return try lastDirect?.insert?.insert(record, context)
    }
}
