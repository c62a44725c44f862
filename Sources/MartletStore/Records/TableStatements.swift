internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// The statements that find and write a table's rows by their key, with the table's description and
/// its position in the schema.
final class TableStatements {
    let description: TableDescription
    /// The columns that the table asks a record for.
    let columns: TableColumns
    /// The table's position among the synchronised types; nil for other tables.
    let type: Int?
    /// The synchronised type whose records the table holds; nil for other tables.
    let entity: EntityType?
    /// The columns of a synchronised type that hold ids, and the positions of the types of these
    /// ids.
    let references: [(column: String, type: Int)]
    /// The table's name as SQL.
    let table: String
    /// All columns, in order, as SQL.
    let columnList: String
    private let kinds: [String: AttributeKind]
    /// The columns that are neither computed nor part of the key.
    private let attributes: Set<String>
    /// The numeric columns that keep all digits.
    private let exact: Set<String>
    /// The direct inserts by record type; nil for types that cannot use one.
    var directs: [ObjectIdentifier: DirectInsert?] = [:]
    var lastDirect: (type: ObjectIdentifier, insert: DirectInsert?)?
    /// The types whose names are all known to be columns.
    var checkedTypes: Set<ObjectIdentifier> = []
    private var finder: (statement: Statement, layout: RowLayout)?
    private var lastInsert: (names: [String], sql: String)?
    private var lastUpdate: (names: [String], sql: String)?

    init(_ description: TableDescription, schema: Schema?) {
        self.description = description
        columns = TableColumns(description)
        type = schema?.index(of: description.name)
        entity = type.flatMap { schema?.types[$0] }
        references = (entity?.references ?? []).compactMap { reference in
            schema?.index(of: reference.target).map { (reference.attribute, $0) }
        }
        table = SQLName.quoted(description.name)
        columnList = SQLName.list(description.columns.map(\.name))
        kinds = Dictionary(
            description.columns.map { ($0.name, DeclaredType.kind(of: $0.declaredType)) }
        ) { first, _ in first }
        exact = Set(
            description.columns.filter { DeclaredType.keepsDigits($0.declaredType) }.map(\.name))
        attributes = Set(description.columns.filter { !$0.isGenerated }.map(\.name))
            .subtracting(description.key)
    }

    /// The kind of the key, if the table holds a synchronised type.
    var keyKind: EntityType.KeyKind? { entity?.keyKind }

    private(set) lazy var findSQL = "SELECT \(columnList) FROM \(table) WHERE \(keyCondition())"
    private(set) lazy var deleteSQL = "DELETE FROM \(table) WHERE \(keyCondition())"

    /// Returns the condition that a row has a key. Ids of synchronised types are equal if their
    /// bytes are, whatever the column's collation says.
    /// - Parameter first: The number of the parameter that is the key's first value.
    func keyCondition(from first: Int = 1) -> String {
        let key = description.key.isEmpty ? ["rowid"] : description.key
        return key.enumerated().map { position, name in
            let isEqual = "\(SQLName.quoted(name)) = ?\(first + position)"
            // The first comparison uses the index, which has the column's collation.
            return keyKind == .text ? "\(isEqual) AND \(isEqual) COLLATE BINARY" : isEqual
        }.joined(separator: " AND ")
    }

    /// Returns the INSERT for values with these names.
    func insertSQL(_ names: [String]) -> String {
        if let lastInsert, lastInsert.names == names { return lastInsert.sql }
        let sql =
            names.isEmpty
            ? "INSERT INTO \(table) DEFAULT VALUES"
            : "INSERT INTO \(table)(\(SQLName.list(names))) VALUES (\(Self.slots(names.count)))"
        lastInsert = (names, sql)
        return sql
    }

    /// Returns the UPDATE by key for values with these names. The key's values are its last
    /// parameters.
    func updateSQL(_ names: [String]) -> String {
        if let lastUpdate, lastUpdate.names == names { return lastUpdate.sql }
        let list = names.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: ", ")
        let sql = "UPDATE \(table) SET \(list) WHERE \(keyCondition(from: names.count + 1))"
        lastUpdate = (names, sql)
        return sql
    }

    static func slots(_ count: Int) -> String {
        Array(repeating: "?", count: count).joined(separator: ", ")
    }

    /// Returns the kind of values that a column declares; nil if there is no such column.
    func kind(of column: String) -> AttributeKind? { kinds[column] }

    /// Returns the statement that finds a row by its key. It is kept for later calls. The caller
    /// resets it.
    func finder(_ session: Session) throws -> (statement: Statement, layout: RowLayout) {
        if let finder, !finder.statement.isBusy { return finder }
        let statement = try session.connection.statement(findSQL)
        let made = (statement, session.layout(of: statement))
        finder = made
        return made
    }

    /// Checks values that are given for a record's attributes.
    /// - Throws: `StoreError` `.unknown`, `.value`, as `check`; `.misuse` for a value of the key or
    ///   of a column that the database computes.
    func checkAttributes(_ values: RecordValues) throws {
        for name in values.names where !attributes.contains(name) {
            let column = try column(name)
            guard !description.key.contains(column.name) else {
                throw StoreError(
                    .misuse,
                    "“\(name)” is the key of “\(description.name)” and no attribute. Leave it out"
                        + " of the values; a text key is given as the id of a new record.")
            }
            try checkSettable(column)
        }
        try check(values)
    }

    /// Checks that a column can be written.
    /// - Throws: `StoreError` `.misuse` if the database computes it.
    func checkSettable(_ column: ColumnDescription) throws {
        guard column.isGenerated else { return }
        throw StoreError(
            .misuse, "“\(column.name)” is computed by the database and cannot be set.")
    }

    /// Checks the names and the kinds of values.
    /// - Parameter allowing: Returns whether a value may have any kind.
    /// - Throws: `StoreError` `.unknown` for a column that the table does not have, `.value` for a
    ///   value of another kind than the column declares.
    func check(
        _ values: RecordValues, allowing: (SQLValue) -> Bool = { _ in false }
    ) throws {
        for (name, value) in zip(values.names, values.values) {
            guard let kind = kinds[name] else { throw unknown(name) }
            if !Self.suits(value, kind), !isExact(value, name), !allowing(value) {
                throw StoreError(
                    .value,
                    "\(description.name).\(name) holds \(Self.words(kind)), and was given"
                        + " \(value.kindName); convert it, or declare the column otherwise.")
            }
            if entity != nil, let mismatch = Self.unsendable(value, kind) {
                throw StoreError(
                    .value,
                    "\(description.name).\(name) cannot be sent: \(mismatch). Give it another value."
                )
            }
        }
    }

    /// Returns the reason why a value of the right kind cannot be sent to the server; nil if it can.
    private static func unsendable(_ value: SQLValue, _ kind: AttributeKind) -> String? {
        switch value {
        case .null, .integer: nil
        case .real(let number):
            number.isFinite ? nil : "expected a finite number, found an infinity or NaN"
        case .text(let text): RecordTable.mismatch(text)
        case .blob: kind == .blob ? nil : "expected a number or text, found binary data"
        }
    }

    /// Returns a column's description.
    /// - Throws: `StoreError` `.unknown` if the table has no such column.
    func column(_ name: String) throws -> ColumnDescription {
        guard let column = description.column(name) else { throw unknown(name) }
        return column
    }

    private func unknown(_ name: String) -> StoreError {
        var error = StoreError(
            .unknown,
            "The table “\(description.name)” has no column “\(name)”; it has"
                + " \(description.columns.map(\.name).joined(separator: ", ")).")
        error.table = description.name
        return error
    }

    /// Returns whether the value is a decimal number, of any length, in a column that keeps all
    /// digits.
    private func isExact(_ value: SQLValue, _ name: String) -> Bool {
        guard case .text(let text) = value, exact.contains(name) else { return false }
        return DecimalText.mismatch(text, keepsDigits: true) == nil
    }

    /// Returns whether a value fits a column's declared kind. SQLite lets any column hold any
    /// value, but other programs and the server do not accept every value for the declared type.
    static func suits(_ value: SQLValue, _ kind: AttributeKind) -> Bool {
        switch (kind, value) {
        case (_, .null), (.any, _): true
        case (.integer, .integer): true
        case (.boolean, .integer(let number)): number == 0 || number == 1
        case (.real, .real), (.real, .integer): true
        case (.numeric, .integer), (.numeric, .real): true
        case (.numeric, .text(let text)): DecimalText.mismatch(text) == nil
        case (.text, .text): true
        case (.blob, .blob): true
        default: false
        }
    }

    private static func words(_ kind: AttributeKind) -> String {
        switch kind {
        case .integer: "integers"
        case .boolean: "0 or 1"
        case .real: "numbers"
        case .numeric: "decimal numbers"
        case .text: "text"
        case .blob: "binary data"
        case .any: "anything"
        }
    }
}

/// The statements of the tables that a connection has used since the schema last changed.
private final class TableCache {
    var statements: [String: TableStatements] = [:]
    /// The table that was used last. Callers often use the same table many times in a row.
    var last: (name: String, statements: TableStatements)?
}

extension Session {
    private var tableCache: TableCache {
        if let known = companion as? TableCache { return known }
        let made = TableCache()
        companion = made
        return made
    }

    /// Returns a table's statements if the table was used since the schema last changed.
    func knownStatements(of table: String) -> TableStatements? { tableCache.statements[table] }

    /// Returns a table's statements.
    /// - Throws: `MissingTable` if the table is not there and a declaration can make it.
    func tableStatements(_ name: String, declaration: String?) throws -> TableStatements {
        let cache = tableCache
        if let last = cache.last, last.name == name { return last.statements }
        if let known = cache.statements[name] {
            cache.last = (name, known)
            return known
        }
        let description: TableDescription
        do {
            description = try self.description(of: name)
        } catch let error as StoreError where error.kind == .unknown {
            guard let declaration else { throw error }
            throw MissingTable(name: name, declaration: declaration)
        }
        let made = TableStatements(description, schema: store?.schema)
        cache.statements[name] = made
        return made
    }
}
