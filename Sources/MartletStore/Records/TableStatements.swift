internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// The statements by which a table's rows are found and written by their key, and what the
/// connection knows of the table.
final class TableStatements {
    let description: TableDescription
    /// What a record is asked for.
    let columns: TableColumns
    /// The position among the synchronised types; nil for other tables.
    let type: Int?
    /// The key's kind where it is one of a synchronised type.
    let keyKind: EntityType.KeyKind?
    /// The columns of a synchronised type that hold ids, and the positions of the types they are of.
    let references: [(column: String, type: Int)]
    /// The table's name as SQL.
    let table: String
    /// All columns, in order, as SQL.
    let columnList: String
    let findSQL: String
    let deleteSQL: String
    /// “column = ?” for each column of the key.
    let keyCondition: String
    private let kinds: [String: AttributeKind]
    /// The numeric columns that keep all digits.
    private let exact: Set<String>
    /// The short ways of types met before; nil for types that have none.
    var directs: [ObjectIdentifier: DirectInsert?] = [:]
    var lastDirect: (type: ObjectIdentifier, insert: DirectInsert?)?
    /// The types whose names have all been found to be columns.
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

    /// The INSERT for values of these names.
    func insertSQL(_ names: [String]) -> String {
        if names == lastNames { return lastInsert }
        lastNames = names
        lastInsert =
            names.isEmpty
            ? "INSERT INTO \(table) DEFAULT VALUES"
            : "INSERT INTO \(table)(\(SQLName.list(names))) VALUES (\(Self.slots(names.count)))"
        return lastInsert
    }

    /// The UPDATE by key for values of these names.
    func updateSQL(_ names: [String]) -> String {
        let list = names.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: ", ")
        return "UPDATE \(table) SET \(list) WHERE \(keyCondition)"
    }

    static func slots(_ count: Int) -> String {
        Array(repeating: "?", count: count).joined(separator: ", ")
    }

    /// The kind of values a column declares; nil where there is no such column.
    func kind(of column: String) -> AttributeKind? { kinds[column] }

    /// The statement that finds a row by its key, kept at hand. The caller resets it.
    func finder(_ session: Session) throws -> (statement: Statement, layout: RowLayout) {
        if let finder, !finder.statement.isBusy { return finder }
        let statement = try session.connection.statement(findSQL)
        let made = (statement, session.layout(of: statement))
        finder = made
        return made
    }

    /// - Throws: `StoreError` `.unknown` for a column that is not there or cannot be written,
    ///   `.value` for a value of another kind than the column declares.
    /// - Parameter allowing: Values that are not checked.
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

    /// - Throws: `StoreError` `.unknown` for a column the table does not have.
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

    /// Whether it is a decimal number of whatever length in a column that keeps it.
    private func isExact(_ value: SQLValue, _ name: String) -> Bool {
        guard case .text(let text) = value, exact.contains(name) else { return false }
        return DecimalText.mismatch(text, keepsDigits: true) == nil
    }

    /// SQLite lets any column hold anything; what other programs and the server would not take for
    /// a value of the declared type is refused here.
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
    /// The table that was used last. The same table is mostly used many times in turn.
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
