public import MartletModel
internal import MartletProtocol
public import SQLiteKit

/// Reads and writes the records of one type on one connection.
///
/// Statements are made once for each list of attribute names and kept. No method opens a
/// transaction. Generated attributes are read and never written; where one is given it is passed
/// over.
public final class RecordTable {
    public let type: EntityType
    private let connection: Connection
    /// The most encoded bytes of a whole record that can be sent.
    private let rowBytes: Int
    private let names: RecordStatements
    /// Columns that those who give records need not have: a record that does not name such a column has its default.
    public var ownColumns: Set<String> {
        get { names.ownColumns }
        set { names.ownColumns = newValue }
    }
    private var selecting: Statement?
    private var finding: Statement?
    private var deleting: Statement?

    /// - Parameters:
    ///   - keepsClauses: Whether a conflict clause in the table's declaration has its effect;
    ///     otherwise a violated constraint only fails the statement.
    ///   - rowBytes: The most encoded bytes of a record that is read whole. A longer record is
    ///     reported as a row that no device can be sent.
    public init(
        type: EntityType, connection: Connection, keepsClauses: Bool = false, rowBytes: Int = .max
    ) {
        self.type = type
        self.connection = connection
        self.rowBytes = rowBytes
        names = RecordStatements(type: type, connection: connection, keepsClauses: keepsClauses)
    }

    /// All attributes in the table's order, nulls included; nil where there is no such record.
    public func read(_ id: RecordID) throws(SQLiteError) -> Attributes? {
        let statement = try kept(&selecting) {
            "SELECT \(names.allColumns) FROM \(names.table) WHERE \(names.isRecord)"
        }
        defer { statement.reset() }
        statement.bind(1, id)
        guard try statement.step() else { return nil }
        return try whole(statement, from: 0)
    }

    /// Whether the table holds a record with this id.
    public func exists(_ id: RecordID) throws(SQLiteError) -> Bool {
        let statement = try kept(&finding) {
            "SELECT 1 FROM \(names.table) WHERE \(names.isRecord)"
        }
        defer { statement.reset() }
        statement.bind(1, id)
        return try statement.step()
    }

    /// Returns the record whose text key is equal to this one by the column's collation, as references are
    /// judged; nil if there is none.
    package func equal(to id: RecordID) throws(SQLiteError) -> RecordID? {
        guard type.keyKind == .text else { return nil }
        let find = try connection.statement(
            "SELECT \(names.key) FROM \(names.table) WHERE \(names.key) = ?1")
        defer { find.reset() }
        find.bind(1, id)
        return try find.step() ? find.recordID(0) : nil
    }

    /// - Parameter absentMeansNull: Whether an attribute not given becomes NULL, save where the
    ///   column is required and has a default, or is among `ownColumns`; else its column takes the default.
    public func insert(
        _ id: RecordID, _ attributes: Attributes, absentMeansNull: Bool
    ) throws(SQLiteError) {
        let plan = try names.insertion(attributes.names, absentMeansNull: absentMeansNull)
        defer { plan.statement.reset() }
        plan.statement.bind(1, id)
        plan.bind(attributes, from: 2)
        while try plan.statement.step() {}
    }

    /// Inserts, and gives all attributes as the database then has them, in the table's order, nulls
    /// and generated ones included.
    ///
    /// Two statements, not RETURNING: that takes three times as long (a table in memory for each
    /// row), shows a REAL that is whole as an integer, and does not see what triggers changed.
    public func insertReturning(
        _ id: RecordID, _ attributes: Attributes, absentMeansNull: Bool
    ) throws(SQLiteError) -> Attributes {
        try insert(id, attributes, absentMeansNull: absentMeansNull)
        guard let stored = try read(id) else {
            throw SQLiteError.mismatch("a trigger of “\(type.name)” kept a new record out")
        }
        return stored
    }

    /// Changes the given attributes. False: there is no such record. Without attributes it only
    /// tells whether there is.
    public func update(_ id: RecordID, _ attributes: Attributes) throws(SQLiteError) -> Bool {
        guard let plan = try names.change(attributes.names) else {
            return try exists(id)
        }
        defer { plan.statement.reset() }
        plan.statement.bind(1, id)
        plan.bind(attributes, from: 2)
        while try plan.statement.step() {}
        return connection.changes > 0
    }

    /// Changes the given attributes and gives them as the database then has them; nil: there is no
    /// such record.
    public func updateReturning(
        _ id: RecordID, _ attributes: Attributes
    ) throws(SQLiteError) -> Attributes? {
        guard try update(id, attributes) else { return nil }
        guard !attributes.isEmpty else { return Attributes() }
        return try read(id, attributes.names)
    }

    /// The named attributes, in that order; nil where there is no such record.
    /// - Precondition: At least one is named.
    public func read(_ id: RecordID, _ list: [String]) throws(SQLiteError) -> Attributes? {
        precondition(!list.isEmpty, "no attribute named")
        let selection = try names.selection(list)
        defer { selection.statement.reset() }
        selection.statement.bind(1, id)
        guard try selection.statement.step() else { return nil }
        return try selection.columns.attributes(of: selection.statement, from: 0)
    }

    /// False: there was no such record.
    public func delete(_ id: RecordID) throws(SQLiteError) -> Bool {
        let statement = try kept(&deleting) {
            "DELETE FROM \(names.table) WHERE \(names.isRecord)"
        }
        defer { statement.reset() }
        statement.bind(1, id)
        while try statement.step() {}
        return connection.changes > 0
    }

    /// Gives a record another id; references to it follow only where they are declared
    /// ON UPDATE CASCADE. False: there was no such record.
    public func changeKey(from: RecordID, to: RecordID) throws(SQLiteError) -> Bool {
        let statement = try connection.statement(
            "UPDATE\(names.conflict) \(names.table) SET \(names.key) = ?2 WHERE \(names.isRecord)")
        defer { statement.reset() }
        statement.bind(1, from)
        statement.bind(2, to)
        while try statement.step() {}
        return connection.changes > 0
    }

    /// The records of this type that hold a reference to `target`, by key.
    public func ids(
        where reference: Reference, holds target: RecordID
    ) throws(SQLiteError) -> [RecordID] {
        let statement = try connection.statement(
            """
            SELECT \(names.key) FROM \(names.table) \
            WHERE \(SQLName.quoted(reference.attribute)) = ?1 AND \(names.key) IS NOT NULL \
            ORDER BY \(names.key)
            """)
        statement.bind(1, target)
        // What another program wrote under a key that none can be is no record.
        return try statement.rows { (row) throws(SQLiteError) in try? row.recordID(0) }
            .compactMap(\.self)
    }

    /// The records of this type whose reference to a record of `type` SQLite follows, by key. Like SQLite, this
    /// compares by the collation of the other table's key.
    package func ids(
        where reference: Reference, meets target: RecordID, of type: EntityType
    ) throws(SQLiteError) -> [RecordID] {
        let key = SQLName.quoted(type.key)
        let statement = try connection.statement(
            """
            SELECT child.\(names.key) FROM \(SQLName.quoted(type.name)) AS parent \
            CROSS JOIN \(names.table) AS child \
            ON parent.\(key) = child.\(SQLName.quoted(reference.attribute)) \
            WHERE parent.\(key) = ?1 AND parent.\(key) = ?1 COLLATE BINARY \
            AND child.\(names.key) IS NOT NULL ORDER BY child.\(names.key)
            """)
        statement.bind(1, target)
        return try statement.rows { (row) throws(SQLiteError) in try? row.recordID(0) }
            .compactMap(\.self)
    }

    /// Hands every record to `body`, by key. `body` may read, and may change the record it was
    /// handed. Rows whose key is NULL, which SQLite allows in text keys, are no records.
    /// - Parameter unsendable: Gets the records whose values no wire carries, with the reason.
    public func forEach(
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

    /// Returns all attributes of the current row.
    private func whole(_ row: Statement, from first: Int32) throws(SQLiteError) -> Attributes {
        let attributes = try names.all.attributes(of: row, from: first)
        if attributes.exceeds(rowBytes) { throw Self.tooLarge(rowBytes) }
        return attributes
    }

    /// Makes the error of a row that has more than this many bytes.
    static func tooLarge(_ bytes: Int) -> SQLiteError {
        SQLiteError.mismatch(
            "the record has more than \(bytes >> 20) MiB with all its attributes, the most that a"
                + " device can be sent")
    }

    private func kept(
        _ place: inout Statement?, _ sql: () -> String
    ) throws(SQLiteError) -> Statement {
        if let statement = place { return statement }
        let statement = try connection.prepare(sql())
        place = statement
        return statement
    }
}

@available(*, unavailable)
extension RecordTable: Sendable {}
