package import MartletModel
internal import MartletProtocol
package import SQLiteKit

/// Reads and writes the records of one type on one connection.
///
/// It prepares one statement for each list of attribute names and keeps it. No method opens a
/// transaction. Generated attributes are read and never written: if one is given, it is skipped.
package final class RecordTable {
    /// The entity type of the records.
    package let type: EntityType
    private let connection: Connection
    /// The most encoded bytes of a whole record that can be sent.
    private let rowBytes: Int
    private let names: RecordStatements
    /// The columns that the source of the records need not have. A record that does not name such a
    /// column gets its default.
    package var ownColumns: Set<String> {
        get { names.ownColumns }
        set { names.ownColumns = newValue }
    }
    private var selecting: Statement?
    private var finding: Statement?
    private var deleting: Statement?

    /// Creates a table on a connection.
    /// - Parameters:
    ///   - keepsClauses: Whether a conflict clause in the table's declaration takes effect;
    ///     otherwise a violated constraint only fails the statement.
    ///   - replaces: Whether a record that is written removes the rows with which it shares a unique
    ///     value.
    ///   - rowBytes: The most encoded bytes of a record that is read whole. A longer record is
    ///     reported as a row that cannot be sent to any device.
    package init(
        type: EntityType, connection: Connection, keepsClauses: Bool = false,
        replaces: Bool = false, rowBytes: Int = .max
    ) {
        self.type = type
        self.connection = connection
        self.rowBytes = rowBytes
        names = RecordStatements(
            type: type, connection: connection, keepsClauses: keepsClauses, replaces: replaces)
    }

    /// Returns all attributes in the table's order, including nulls; nil if there is no such
    /// record.
    /// - Throws: `SQLiteError`; with `isMismatch` if a value cannot be sent.
    package func read(_ id: RecordID) throws(SQLiteError) -> Attributes? {
        let statement = try kept(&selecting) {
            "SELECT \(names.allColumns) FROM \(names.table) WHERE \(names.isRecord)"
        }
        defer { statement.reset() }
        statement.bind(1, id)
        guard try statement.step() else { return nil }
        return try whole(statement, from: 0)
    }

    /// Returns whether the table holds a record with this id.
    /// - Throws: `SQLiteError` if the database cannot be read.
    package func exists(_ id: RecordID) throws(SQLiteError) -> Bool {
        let statement = try kept(&finding) {
            "SELECT 1 FROM \(names.table) WHERE \(names.isRecord)"
        }
        defer { statement.reset() }
        statement.bind(1, id)
        return try statement.step()
    }

    /// Returns the record whose text key is equal to this one by the column's collation, which also
    /// decides about references; nil if there is none.
    package func equal(to id: RecordID) throws(SQLiteError) -> RecordID? {
        guard type.keyKind == .text else { return nil }
        let find = try connection.statement(
            "SELECT \(names.key) FROM \(names.table) WHERE \(names.key) = ?1")
        defer { find.reset() }
        find.bind(1, id)
        return try find.step() ? find.recordID(0) : nil
    }

    /// Inserts a record.
    /// - Parameter absentMeansNull: Whether a missing attribute becomes NULL, unless the column is
    ///   required and has a default, or is among `ownColumns`. Otherwise its column gets the
    ///   default.
    /// - Throws: `SQLiteError` for a violated constraint; with `isMismatch` for an unknown
    ///   attribute or a text that is not base64.
    package func insert(
        _ id: RecordID, _ attributes: Attributes, absentMeansNull: Bool
    ) throws(SQLiteError) {
        let plan = try names.insertion(attributes.names, absentMeansNull: absentMeansNull)
        defer { plan.statement.reset() }
        plan.statement.bind(1, id)
        plan.bind(attributes, from: 2)
        while try plan.statement.step() {}
    }

    /// Inserts a record, and returns all attributes as the database then has them, in the table's
    /// order, including nulls and generated ones.
    ///
    /// It runs two statements instead of RETURNING, which takes three times as long (a table in
    /// memory for each row), shows a whole REAL as an integer, and does not see changes by
    /// triggers.
    /// - Throws: `SQLiteError`, as `insert` and `read`; with `isMismatch` if a trigger kept the
    ///   record out.
    package func insertReturning(
        _ id: RecordID, _ attributes: Attributes, absentMeansNull: Bool
    ) throws(SQLiteError) -> Attributes {
        try insert(id, attributes, absentMeansNull: absentMeansNull)
        guard let stored = try read(id) else {
            throw SQLiteError.mismatch("a trigger of “\(type.name)” kept a new record out")
        }
        return stored
    }

    /// Changes the given attributes. Without attributes it changes nothing.
    /// - Returns: Whether there is such a record.
    /// - Throws: `SQLiteError`, as `insert`.
    package func update(_ id: RecordID, _ attributes: Attributes) throws(SQLiteError) -> Bool {
        guard let plan = try names.change(attributes.names) else {
            return try exists(id)
        }
        defer { plan.statement.reset() }
        plan.statement.bind(1, id)
        plan.bind(attributes, from: 2)
        while try plan.statement.step() {}
        return connection.changes > 0
    }

    /// Changes the given attributes and returns them as the database then has them; nil if there is
    /// no such record.
    /// - Throws: `SQLiteError`, as `insert` and `read`.
    package func updateReturning(
        _ id: RecordID, _ attributes: Attributes
    ) throws(SQLiteError) -> Attributes? {
        guard try update(id, attributes) else { return nil }
        guard !attributes.isEmpty else { return Attributes() }
        return try read(id, attributes.names)
    }

    /// Returns the named attributes, in that order; nil if there is no such record.
    /// - Precondition: At least one is named.
    /// - Throws: `SQLiteError`; with `isMismatch` for an unknown attribute, or if a value cannot be
    ///   sent.
    package func read(_ id: RecordID, _ list: [String]) throws(SQLiteError) -> Attributes? {
        precondition(!list.isEmpty, "no attribute named")
        let selection = try names.selection(list)
        defer { selection.statement.reset() }
        selection.statement.bind(1, id)
        guard try selection.statement.step() else { return nil }
        return try selection.columns.attributes(of: selection.statement, from: 0)
    }

    /// Deletes a record.
    /// - Returns: False if there was no such record.
    /// - Throws: `SQLiteError` if the database refuses it.
    package func delete(_ id: RecordID) throws(SQLiteError) -> Bool {
        let statement = try kept(&deleting) {
            "DELETE FROM \(names.table) WHERE \(names.isRecord)"
        }
        defer { statement.reset() }
        statement.bind(1, id)
        while try statement.step() {}
        return connection.changes > 0
    }

    /// Gives a record another id. References to it follow only if they are declared ON UPDATE
    /// CASCADE.
    /// - Returns: False if there was no such record.
    /// - Throws: `SQLiteError` if the database refuses it.
    package func changeKey(from: RecordID, to: RecordID) throws(SQLiteError) -> Bool {
        let statement = try connection.statement(
            """
            UPDATE\(names.conflict) \(names.table) SET \(SQLName.quoted(type.key)) = ?2 \
            WHERE \(names.isRecord)
            """)
        defer { statement.reset() }
        statement.bind(1, from)
        statement.bind(2, to)
        while try statement.step() {}
        return connection.changes > 0
    }

    /// Returns the ids of the records of this type that hold a reference to `target`, in the order
    /// of keys.
    /// - Throws: `SQLiteError` if the database cannot be read.
    package func ids(
        where reference: Reference, holds target: RecordID
    ) throws(SQLiteError) -> [RecordID] {
        let statement = try connection.statement(
            """
            SELECT \(names.key) FROM \(names.table) \
            WHERE \(SQLName.list([reference.attribute], of: type.name)) = ?1 AND \(names.key) IS NOT NULL \
            ORDER BY \(names.key)
            """)
        statement.bind(1, target)
        // A row that another program wrote under an impossible key is no record.
        return try statement.rows { (row) throws(SQLiteError) in try? row.recordID(0) }
            .compactMap(\.self)
    }

    /// Returns the ids of the records of this type whose reference to a record of `type` SQLite
    /// follows, in the order of keys. Like SQLite, this compares by the collation of the other
    /// table's key.
    package func ids(
        where reference: Reference, meets target: RecordID, of type: EntityType
    ) throws(SQLiteError) -> [RecordID] {
        let key = SQLName.quoted(type.key)
        let own = "child.\(SQLName.quoted(self.type.key))"
        let statement = try connection.statement(
            """
            SELECT \(own) FROM \(SQLName.quoted(type.name)) AS parent \
            CROSS JOIN \(names.table) AS child \
            ON parent.\(key) = child.\(SQLName.quoted(reference.attribute)) \
            WHERE parent.\(key) = ?1 AND parent.\(key) = ?1 COLLATE BINARY \
            AND \(own) IS NOT NULL ORDER BY \(own)
            """)
        statement.bind(1, target)
        return try statement.rows { (row) throws(SQLiteError) in try? row.recordID(0) }
            .compactMap(\.self)
    }

    /// Calls `body` with every record, in the order of keys. `body` may read, and may change the
    /// record that it got. Rows whose key is NULL, which SQLite allows in text keys, are no
    /// records.
    /// - Parameter unsendable: Called with the records whose values no wire carries, and the
    ///   reason.
    /// - Throws: `SQLiteError` if the database cannot be read; errors of `body` and `unsendable`.
    /// - Complexity: O(*n*) in the records.
    package func forEach(
        unsendable: (RecordID, SQLiteError) throws -> Void = { throw $1 },
        _ body: (RecordID, Attributes) throws -> Void
    ) throws {
        let columns = type.attributes.isEmpty ? "" : ", \(names.allColumns)"
        let statement = try connection.statement(
            """
            SELECT \(names.key)\(columns) FROM \(names.table) \
            WHERE \(names.key) IS NOT NULL ORDER BY \(names.key)
            """)
        defer { statement.reset() }
        while try statement.step() {
            let id = try statement.recordID(0)
            let attributes: Attributes
            do throws(SQLiteError) {
                attributes = try whole(statement, from: 1)
            } catch {
                guard error.isMismatch else { throw error }
                try unsendable(id, error)
                continue
            }
            try body(id, attributes)
        }
    }

    /// Calls `body` with the records whose column is equal to a value by the column's collation, in any
    /// order; with all records if no column is given. It leaves out rows that no wire carries.
    /// - Precondition: `body` does not use the table.
    /// - Throws: `SQLiteError` if the database cannot be read.
    package func visit(
        where column: (name: String, value: Value)?, body: (RecordID, Attributes) -> Void
    ) throws(SQLiteError) {
        let columns = type.attributes.isEmpty ? "" : ", \(names.allColumns)"
        let condition = column.map { "\(SQLName.list([$0.name], of: type.name)) = ?1 AND " } ?? ""
        let statement = try connection.statement(
            """
            SELECT \(names.key)\(columns) FROM \(names.table) \
            WHERE \(condition)\(names.key) IS NOT NULL
            """)
        defer { statement.reset() }
        if let column { statement.bind(1, column.value, kind: .any) }
        while try statement.step() {
            do throws(SQLiteError) {
                body(try statement.recordID(0), try whole(statement, from: 1))
            } catch {
                guard error.isMismatch else { throw error }
            }
        }
    }

    /// Returns all attributes of the current row.
    private func whole(_ row: Statement, from first: Int32) throws(SQLiteError) -> Attributes {
        let attributes = try names.all.attributes(of: row, from: first)
        if attributes.exceeds(rowBytes) { throw Self.tooLarge(rowBytes) }
        return attributes
    }

    /// Returns the error of a row that has more than this many bytes.
    static func tooLarge(_ bytes: Int) -> SQLiteError {
        SQLiteError.mismatch(
            "the record has more than \(bytes >> 20) MiB with all its attributes, the most that a"
                + " device can be sent")
    }

    private func kept(
        _ cached: inout Statement?, _ sql: () -> String
    ) throws(SQLiteError) -> Statement {
        if let statement = cached { return statement }
        let statement = try connection.prepare(sql())
        cached = statement
        return statement
    }
}

@available(*, unavailable)
extension RecordTable: Sendable {}
