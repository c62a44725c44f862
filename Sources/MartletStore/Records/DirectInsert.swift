internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// The short way into a table for records of one `Codable` type: their properties are bound to one
/// prepared INSERT, without values by name in between.
///
/// Only where no hook watches, since hooks are shown values by name.
final class DirectInsert {
    private let statement: Statement
    private let binder: RecordBinder
    private let columns: TableColumns
    private unowned let statements: TableStatements
    private let tableName: String
    /// Set for types that say themselves what they hold: they never come by this way.
    private var isOff = false
    /// Tables of which the update hook does not tell the rows this writes.
    private let unclearTables: [String]
    /// Whether SQLite makes a key that is null.
    private let databaseMakesKeys: Bool

    /// - Returns: Nil for a type that does not encode the key's column, or nothing at all.
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
    /// - Returns: Its key; nil where it has to go the other way. Then nothing was written.
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
                // What a key made by Martlet must not be is said on the other way.
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
            // Nothing was written, and the other way meets the same and has the words for it.
            if error.isConstraint, connection.isInTransaction { return nil }
            throw StoreError.of(error, table: tableName, key: key)
        }
        // The bindings stay: every one of them is given anew for the next record.
        statement.rewind()
        context.session.noteAll(unclearTables)
        // If SQLite passes the record over, no row has its key.
        guard connection.changes > 0 else { return .integer(0) }
        return key ?? .integer(statements.madeRowID(connection))
    }
}

extension TableStatements {
    /// Inserts a record by the short way.
    /// - Returns: Its key; nil where it has to go the other way.
    func insertDirectly<Item: Record>(
        _ record: Item, tableName: String, _ context: WriteContext
    ) throws -> RecordID? {
        guard context.session.hooks.isEmpty else { return nil }
        let type = ObjectIdentifier(Item.self)
        if lastDirect?.type != type {
            if let known = directs[type] {
                lastDirect = (type, known)
            } else {
                // What a type encodes is learned from a record of it.
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
