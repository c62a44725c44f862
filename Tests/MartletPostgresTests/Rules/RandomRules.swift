import MartletModel
import PostgresKit

/// Tables, rows and policies that chance makes, as the text that PostgreSQL and Martlet read.
///
/// Policies read only tables that come later, so that no circle arises: references lead to a later
/// table, which the policies follow, and now and then to the table itself or to an earlier one. The last
/// table has the memberships.
struct RandomRules {
    /// The types of the tables' columns.
    enum Kind: CaseIterable {
        case integer, text, date, boolean, numeric, real, json, uuid

        var sql: String {
            switch self {
            case .integer: "bigint"
            case .text: "text"
            case .date: "date"
            case .boolean: "boolean"
            case .numeric: "numeric"
            case .real: "double precision"
            case .json: "json"
            case .uuid: "uuid"
            }
        }

        var kind: AttributeKind {
            switch self {
            case .integer: .integer
            case .text, .json: .text
            case .date, .uuid: .any
            case .boolean: .boolean
            case .numeric: .numeric
            case .real: .real
            }
        }
    }

    struct Column {
        let name: String
        let kind: Kind
        /// The position of the table whose keys it holds; nil if it is no reference.
        var target: Int?
        /// The action when the record to which it refers is deleted.
        var action = ""
        var isRequired = false
        var isUnique = false
        var standard: Value?
        /// The value that a CHECK refuses.
        var excluded: Value?

        var sql: String { RandomRules.quoted(name) }
    }

    struct Table {
        let name: String
        let key: String
        /// Integer or text.
        let keyKind: Kind
        var columns: [Column] = []

        var sql: String { RandomRules.quoted(name) }
        var sqlKey: String { RandomRules.quoted(key) }
        /// The names of the columns that a new record gives: the server assigns integer keys.
        var given: [String] { (keyKind == .text ? [key] : []) + columns.map(\.name) }

        func id(_ text: String) -> RecordID {
            keyKind == .text ? .text(text) : .integer(Int64(text) ?? 0)
        }
    }

    /// The database in which the tables are made.
    enum Database {
        /// A server's or a device's file.
        case file
        /// A server's database.
        case served
        /// The database whose policies are the reference.
        case reference
    }

    static let roles = ["coach", "office", "guest"]

    /// Returns the roles of a set, in which each role is a bit.
    static func roles(of set: Int) -> [String] {
        roles.enumerated().filter { set >> $0.offset & 1 == 1 }.map(\.element)
    }

    /// A rules file.
    struct Policies {
        var file = ""
        /// The tables that a GRANT of the file names.
        var granted: Set<String> = []
    }

    let tables: [Table]
    let rows: [[[Value]]]
    let policies: Policies
    private let hasConstraints: Bool

    /// - Parameters:
    ///   - restrictsReading: Whether not everyone may SELECT all tables.
    ///   - constrained: Whether the tables have constraints and declare their references.
    init(_ chance: inout Chance, restrictsReading: Bool = false, constrained: Bool = false) {
        hasConstraints = constrained
        var tables = Self.tables(&chance)
        for index in tables.indices {
            tables[index].columns = Self.columns(
                of: index, in: tables, constrained: constrained, &chance)
        }
        self.tables = tables
        let keys = tables.map { table in
            (0..<chance.number(2..<8)).map { Self.key(table.keyKind, $0) }
        }
        rows = tables.indices.map { table in
            var rows: [[Value]] = []
            for key in keys[table] {
                if let row = Self.row(key, of: tables[table], keys, after: rows, &chance) {
                    rows.append(row)
                }
            }
            return rows
        }
        policies = Policies(over: tables, &chance, restrictsReading: restrictsReading)
    }

    // MARK: - Tables

    private static func tables(_ chance: inout Chance) -> [Table] {
        var names = [
            "clubs", "teams", "players", "order", "Größe", "two words", "it's", "a\"b", "select",
            "user", "row", "x.y", "semi;colon",
        ].shuffled(using: &chance)[...]
        return (0..<chance.number(2..<6)).map { _ in
            let isText = chance.percent(35)
            return Table(
                name: names.removeFirst(),
                key: chance.one(of: ["id", "id", "code", "the key", "Nr"]),
                keyKind: isText ? .text : .integer)
        }
    }

    private static func columns(
        of own: Int, in tables: [Table], constrained: Bool, _ chance: inout Chance
    ) -> [Column] {
        var names = [
            "name", "n", "group", "naïve", "with space", "quo\"te", "its", "semi;", "rank", "NEW",
            "_x", "old", "value", "type", "x'y",
        ].shuffled(using: &chance)[...]
        let kinds = (0..<chance.number(0..<4)).map { _ in chance.one(of: Kind.allCases) }
        var columns = ([.integer, .text] + kinds).map { kind in
            var column = Column(name: names.removeFirst(), kind: kind)
            if constrained { constrain(&column, &chance) }
            return column
        }
        let last = tables.count - 1
        var targets: [Int] = []
        if own + 1 < last, chance.percent(80) { targets.append(chance.number(own + 1..<last)) }
        if own + 1 < last, chance.percent(20) { targets.append(chance.number(own + 1..<last)) }
        if own == last {
            targets += (0..<chance.number(1..<3)).map { _ in chance.number(0..<last) }
        }
        if chance.percent(20) { targets.append(chance.number(0..<own + 1)) }
        for target in targets {
            var column = Column(
                name: names.removeFirst(), kind: tables[target].keyKind, target: target)
            // References that lead back have no first row if they are required.
            column.isRequired = constrained && target > own && chance.percent(25)
            column.action = chance.one(
                of: column.isRequired
                    ? ["CASCADE", "RESTRICT", "NO ACTION"]
                    : ["CASCADE", "CASCADE", "SET NULL", "SET NULL", "RESTRICT", "NO ACTION"])
            columns.append(column)
        }
        return columns
    }

    private static func constrain(_ column: inout Column, _ chance: inout Chance) {
        if chance.percent(20) { column.standard = standard(of: column.kind) }
        if [.integer, .text].contains(column.kind), chance.percent(30) {
            column.isUnique = true
        } else {
            column.isRequired = chance.percent(15)
        }
        guard chance.percent(15) else { return }
        switch column.kind {
        case .integer: column.excluded = .integer(4)
        case .text: column.excluded = .text("bob")
        case .numeric: column.excluded = .text("10")
        case .date, .boolean, .real, .json, .uuid: break
        }
    }

    /// Returns the statements that make the tables, with the rows unless it is a device's file.
    func script(_ database: Database, rows hasRows: Bool = true) -> String {
        var lines = tables.map { table in
            let columns = table.columns.map { declaration(of: $0, database) }
            let list = [declaration(ofKey: table, database)] + columns
            return "CREATE TABLE \(table.sql) (\(list.joined(separator: ", ")));"
        }
        if hasRows {
            if database == .file { lines.append("BEGIN; PRAGMA defer_foreign_keys = ON;") }
            for (table, rows) in zip(tables, rows) {
                let names = [table.key] + table.columns.map(\.name)
                lines += rows.map { Self.insertion($0, names, into: table) + ";" }
            }
            if database == .file { lines.append("COMMIT;") }
        }
        guard database != .file, hasConstraints else { return lines.joined(separator: "\n") }
        let ending = database == .reference ? " DEFERRABLE INITIALLY DEFERRED" : ""
        for table in tables {
            for column in table.columns {
                guard let target = column.target else { continue }
                lines.append(
                    """
                    ALTER TABLE \(table.sql) ADD FOREIGN KEY (\(column.sql)) \
                    \(references(target, column.action))\(ending);
                    """)
            }
        }
        return lines.joined(separator: "\n")
    }

    private func declaration(ofKey table: Table, _ database: Database) -> String {
        guard table.keyKind == .integer else { return "\(table.sqlKey) text PRIMARY KEY" }
        let type =
            switch database {
            case .file: "INTEGER PRIMARY KEY"
            case .served: "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
            // The server assigns the ids, so the one who inserts needs no right to the column.
            case .reference: "bigint PRIMARY KEY DEFAULT current_setting('martlet.id')::bigint"
            }
        return "\(table.sqlKey) \(type)"
    }

    private func declaration(of column: Column, _ database: Database) -> String {
        let isText = database == .file && column.kind == .json
        var words = "\(column.sql) \(isText ? "JSON TEXT" : column.kind.sql)"
        if column.isRequired { words += " NOT NULL" }
        if let standard = column.standard { words += " DEFAULT \(Self.literal(standard))" }
        if let excluded = column.excluded {
            words += " CHECK (\(column.sql) <> \(Self.literal(excluded)))"
        }
        if column.isUnique {
            words += " UNIQUE" + (database == .reference ? " DEFERRABLE INITIALLY DEFERRED" : "")
        }
        if hasConstraints, database == .file, let target = column.target {
            words += " " + references(target, column.action)
        }
        return words
    }

    private func references(_ target: Int, _ action: String) -> String {
        let table = tables[target]
        return "REFERENCES \(table.sql) (\(table.sqlKey)) ON DELETE \(action)"
    }

    /// Returns the schema as Martlet reads it.
    /// - Parameter dates: The kind of columns for dates and UUIDs: `any` in a file, and `text` in a database.
    func schema(dates: AttributeKind) -> Schema {
        Schema(
            types: tables.map { table in
                EntityType(
                    name: table.name, key: table.key,
                    keyKind: table.keyKind == .text ? .text : .integer,
                    attributes: table.columns.map {
                        let meaning: ColumnMeaning =
                            switch $0.kind {
                            case .date: .date
                            case .uuid: .uuid(isCanonical: dates == .text)
                            default: .plain
                            }
                        return Attribute(
                            name: $0.name, kind: meaning == .plain ? $0.kind.kind : dates,
                            meaning: meaning)
                    })
            })
    }

    // MARK: - SQL

    /// Returns a name with quotes, unless it needs none.
    static func quoted(_ name: String) -> String {
        ["clubs", "teams", "players", "id", "code", "name", "n", "its", "rank"].contains(name)
            ? name : PostgresConnection.quoted(name)
    }

    /// Returns the statement that inserts a row.
    static func insertion(_ row: [Value], _ columns: [String], into table: Table) -> String {
        guard !columns.isEmpty else { return "INSERT INTO \(table.sql) DEFAULT VALUES" }
        return """
            INSERT INTO \(table.sql) (\(columns.map(quoted).joined(separator: ", "))) \
            VALUES (\(row.map(literal).joined(separator: ", ")))
            """
    }

    /// Returns a value as PostgreSQL reads it.
    static func literal(_ value: Value) -> String {
        switch value {
        case .null: "NULL"
        case .boolean(let flag): flag ? "true" : "false"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): "'\(text.replacing("'", with: "''"))'"
        }
    }
}
