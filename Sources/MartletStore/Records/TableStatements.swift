internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// The statements that find and write a table's rows by their key, with the table's description and
/// its place in the schema.
final class TableStatements {
    let description: TableDescription
    /// The columns that the table asks a record for.
    let columns: TableColumns
    /// The table's position among the synchronised types; nil for other tables.
    let type: Int?
    /// The key's kind, if the table is a synchronised type.
    let keyKind: EntityType.KeyKind?
    /// The columns of a synchronised type that hold ids, and the positions of the types of these
    /// ids.
    let references: [(column: String, type: Int)]
    /// The table's name as SQL.
    let table: String
    /// All columns, in order, as SQL.
    let columnList: String
    let findSQL: String
    let deleteSQL: String
    /// The condition “column = ?” for all columns of the key.
    let keyCondition: String
    private let kinds: [String: AttributeKind]
    /// The numeric columns that keep all digits.
    private let exact: Set<String>
    /// The direct inserts by record type; nil for types that cannot use one.
    var directs: [ObjectIdentifier: DirectInsert?] = [:]
    var lastDirect: (type: ObjectIdentifier, insert: DirectInsert?)?
    /// The types whose names are all known to be columns.
    var checkedTypes: Set<ObjectIdentifier> = []
    private var finder: (statement: Statement, layout: RowLayout)?
    private var lastNames: [String]?
    private var lastInsert = ""

    init(_ description: TableDescription, schema: Schema?) {
        self.description = description
        columns = TableColumns(description)
        type = schema?.index(of: description.name)
        keyKind = type.flatMap { schema?.types[$0].keyKind }
        let declared = type.flatMap { schema?.types[$0].references } ?? []
        references = declared.compactMap { reference in
            schema?.index(of: reference.target).map { (reference.attribute, $0) }
        }
        table = SQLName.quoted(description.name)
        columnList = SQLName.list(description.columns.map(\.name))
        let key = description.key.isEmpty ? ["rowid"] : description.key
        keyCondition = key.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: " AND ")
        findSQL = "SELECT \(columnList) FROM \(table) WHERE \(keyCondition)"
        deleteSQL = "DELETE FROM \(table) WHERE \(keyCondition)"
        kinds = Dictionary(
            description.columns.map { ($0.name, DeclaredType.kind(of: $0.declaredType)) }
        ) { first, _ in first }
        exact = Set(
            description.columns.filter { DeclaredType.keepsDigits($0.declaredType) }.map(\.name))
    }

    /// Returns the INSERT for values with these names.
    func insertSQL(_ names: [String]) -> String {
        if names == lastNames { return lastInsert }
        lastNames = names
        lastInsert =
            names.isEmpty
            ? "INSERT INTO \(table) DEFAULT VALUES"
            : "INSERT INTO \(table)(\(SQLName.list(names))) VALUES (\(Self.slots(names.count)))"
        return lastInsert
    }

    /// Returns the UPDATE by key for values with these names.
    func updateSQL(_ names: [String]) -> String {
        let list = names.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: ", ")
        return "UPDATE \(table) SET \(list) WHERE \(keyCondition)"
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
