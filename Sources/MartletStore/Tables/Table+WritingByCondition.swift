internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Writes all rows that meet a condition.
///
/// One statement writes them, unless a hook watches the table. Then the rows are written one by one
/// between their hooks, in the order of their keys. If a hook has changed a row so that it no
/// longer meets the condition, the row is left out.
extension Table {
    /// Changes the records that meet a condition.
    ///
    /// ```swift
    /// try players.update(where: players.team == old, set: players.team.set(new), in: context)
    /// ```
    /// - Returns: The number of records written, without those that SQLite skips. If there are no
    ///   assignments, it is the number of records that meet the condition.
    /// - Throws: `StoreError` `.unknown` for a column that does not exist, `.value` for a value
    ///   that does not fit, `.constraint` for a violated constraint, `.misuse` for a column that is
    ///   set twice or that the database computes; any error of a hook.
    @discardableResult
    public func update(
        where condition: Condition, set assignments: Assignment..., in context: WriteContext
    ) throws -> Int {
        try update(condition, assignments, context)
    }

    /// Changes all records.
    /// - Returns: The number of records written, without those that SQLite skips.
    /// - Throws: The same errors as `update` with a condition.
    @discardableResult
    public func updateAll(
        set assignments: Assignment..., in context: WriteContext
    ) throws -> Int {
        try update(nil, assignments, context)
    }

    /// Deletes the records that meet a condition, and carries out the ON DELETE actions of the
    /// references to them.
    /// - Returns: The number of records deleted.
    /// - Throws: `StoreError` `.unknown` for a column that does not exist, `.constraint` if a
    ///   reference forbids a deletion; any error of a hook.
    @discardableResult
    public func delete(where condition: Condition, in context: WriteContext) throws -> Int {
        try delete(condition, context)
    }

    /// Deletes all records.
    /// - Returns: The number of records deleted.
    /// - Throws: The same errors as `delete` with a condition.
    @discardableResult
    public func deleteAll(in context: WriteContext) throws -> Int {
        try delete(nil, context)
    }
}

extension Table {
    private func update(
        _ condition: Condition?, _ assignments: [Assignment], _ context: WriteContext
    ) throws -> Int {
        let statements = try statements(context)
        try statements.check(assignments)
        guard !assignments.isEmpty else { return try count(where: condition, in: context) }
        let scope = QueryScope(statements, context.session)
        if context.session.hooks.watch(.update, tableName) {
            return try updateEach(condition, assignments, statements, scope, context)
        }
        let list = assignments.map { "\(SQLName.quoted($0.column)) = " + $0.fragment }
        return try context.change(
            "UPDATE \(statements.table) SET " + list.joined(separator: ", "), condition, scope,
            tableName)
    }

    private func updateEach(
        _ condition: Condition?, _ assignments: [Assignment], _ statements: TableStatements,
        _ scope: QueryScope, _ context: WriteContext
    ) throws -> Int {
        let names = assignments.map(\.column)
        let values = assignments.map(\.fragment).joined(separator: ", ")
        var select = "SELECT " + values + " FROM \(statements.table) WHERE ("
        let number = values.arguments.count + 1
        select += SQLFragment(sql: statements.keyCondition(from: number)) + ")"
        if let condition { select += " AND " + condition.fragment }
        let sql = statements.updateSQL(names)
        var count = 0
        for key in try keys(condition, statements, scope, context) {
            let (text, arguments) = try scope.rendered(select, key: key, after: values)
            var found: RecordValues?
            try context.session.forEachRow(text, arguments, table: tableName) { row in
                found = RecordValues(
                    names: names, values: try names.indices.map { try row.value(at: $0) })
            }
            guard let found else { continue }
            try statements.check(found)
            let write = RowWrite(
                operation: .update, table: tableName, key: statements.recordID(key), values: found)
            let outcome = try context.hooked(write) {
                try context.run(sql, found.values + key)
                return RowOutcome(isWritten: context.session.connection.changes > 0)
            }
            if outcome.isWritten { count += 1 }
        }
        return count
    }

    private func delete(_ condition: Condition?, _ context: WriteContext) throws -> Int {
        let statements = try statements(context)
        let scope = QueryScope(statements, context.session)
        guard context.session.hooks.watch(.delete, tableName) else {
            return try context.change(
                SQLFragment(sql: "DELETE FROM \(statements.table)"), condition, scope, tableName)
        }
        var count = 0
        for key in try keys(condition, statements, scope, context)
        where try meets(condition, key, statements, scope, context) {
            let write = RowWrite(
                operation: .delete, table: tableName, key: statements.recordID(key), values: nil)
            let outcome = try context.hooked(write) {
                try context.run(statements.deleteSQL, key)
                return RowOutcome(isWritten: context.session.connection.changes > 0)
            }
            if outcome.isWritten { count += 1 }
        }
        return count
    }

    private func meets(
        _ condition: Condition?, _ key: [SQLValue], _ statements: TableStatements,
        _ scope: QueryScope, _ context: WriteContext
    ) throws -> Bool {
        let nothing = SQLFragment(sql: "")
        var select = SQLFragment(
            sql: "SELECT 1 FROM \(statements.table) WHERE (\(statements.keyCondition()))")
        if let condition { select += " AND " + condition.fragment }
        let (text, arguments) = try scope.rendered(select, key: key, after: nothing)
        var isThere = false
        try context.session.forEachRow(text, arguments, table: tableName) { _ in isThere = true }
        return isThere
    }

    /// Returns the keys of the rows that meet a condition; their rowids if the table declares no
    /// key.
    private func keys(
        _ condition: Condition?, _ statements: TableStatements, _ scope: QueryScope,
        _ context: WriteContext
    ) throws -> [[SQLValue]] {
        let key = statements.description.key
        let list = key.isEmpty ? "rowid" : SQLName.list(key)
        var select = SQLFragment(sql: "SELECT \(list) FROM \(statements.table)")
        if let condition { select += " WHERE " + condition.fragment }
        select += " ORDER BY \(list)"
        let (text, arguments) = try scope.rendered(select)
        var keys: [[SQLValue]] = []
        try context.session.forEachRow(text, arguments, table: tableName) { row in
            keys.append(try (0..<row.count).map { try row.value(at: $0) })
        }
        return keys
    }
}

extension QueryScope {
    /// Returns the text and the values. The values of a row's key follow the values of the first
    /// part.
    fileprivate func rendered(
        _ fragment: SQLFragment, key: [SQLValue], after first: SQLFragment
    ) throws -> (sql: String, arguments: [SQLValue]) {
        let (sql, values) = try rendered(fragment)
        var arguments = values
        arguments.insert(contentsOf: key, at: first.arguments.count)
        return (sql, arguments)
    }
}

extension WriteContext {
    /// Runs an UPDATE or DELETE of the rows that meet a condition.
    /// - Returns: The number of rows changed.
    fileprivate func change(
        _ statement: SQLFragment, _ condition: Condition?, _ scope: QueryScope, _ table: String
    ) throws -> Int {
        var statement = statement
        if let condition { statement += " WHERE " + condition.fragment }
        let (sql, arguments) = try scope.rendered(statement)
        do {
            try run(sql, arguments)
        } catch {
            throw StoreError.of(error, table: table, values: arguments)
        }
        return Int(session.connection.changes)
    }
}

extension TableStatements {
    /// Returns the record's id, if the key is one column.
    fileprivate func recordID(_ key: [SQLValue]) -> RecordID? {
        key.count == 1 ? RecordID(key[0]) : nil
    }

    /// Checks the columns and the constant values of assignments.
    /// - Throws: `StoreError` `.unknown` for a column that does not exist, `.value` for a value
    ///   that it cannot hold, `.misuse` for a column that is set twice or that the database
    ///   computes.
    fileprivate func check(_ assignments: [Assignment]) throws {
        var seen: Set<String> = []
        for assignment in assignments {
            let column = try column(assignment.column)
            try checkSettable(column)
            guard seen.insert(column.name).inserted else {
                throw StoreError(.misuse, "“\(column.name)” is set twice; set it once.")
            }
            if let constant = assignment.constant {
                try check(RecordValues(names: [column.name], values: [constant]))
            }
        }
    }
}
