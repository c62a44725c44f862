import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// The statements that write and read one table. It builds the SQL once for each list of columns.
final class TableFormat {
    /// The position of the type in the schema.
    let position: Int
    let table: PostgresTable
    let columns: TypeColumns
    private let columnIndices: [String: Int]
    private var writings: [Writing: String] = [:]
    /// The most statement texts to keep.
    private static let mostWritings = 1_000

    /// The kind of a writing statement.
    struct Writing: Hashable {
        /// Whether rows are created, or else changed.
        let creates: Bool
        let isSingle: Bool
        let names: [String]
    }

    init(position: Int, table: PostgresTable, schema: Schema) {
        self.position = position
        self.table = table
        columns = TypeColumns(table.type, schema: schema)
        var columnIndices: [String: Int] = [:]
        for (columnIndex, column) in table.columns.enumerated() {
            columnIndices[column.name] = columnIndex
        }
        self.columnIndices = columnIndices
    }

    var type: EntityType { table.type }
    var key: String { table.key.sqlName }

    /// Returns the column of an attribute.
    func column(_ name: String) -> PostgresColumn? {
        columnIndices[name].map { table.columns[$0] }
    }

    // MARK: - Keys

    /// The type of ids as an array for `… = ANY ($1::KEYS)`.
    var keyType: String { table.key.parameterType + "[]" }

    func keys(_ ids: [RecordID]) -> PostgresValue {
        .array(PostgresArray(ids.map(Self.key)))
    }

    static func key(_ id: RecordID) -> PostgresValue {
        switch id {
        case .integer(let number): .integer(number)
        case .text(let text): .text(text)
        }
    }

    /// Returns the id in a result's field.
    func id(_ rows: PostgresRows, _ row: Int, _ field: Int) throws(PostgresError) -> RecordID {
        type.keyKind == .integer
            ? .integer(try rows.integer(row, field)) : .text(try rows.text(row, field))
    }

    /// Returns an id from its text in Martlet's own tables; nil if it is no id of this type.
    func id(stored text: String) -> RecordID? {
        guard type.keyKind == .integer else { return .text(text) }
        return Int64(text).map { .integer($0) }
    }

    // MARK: - Reading

    /// Returns all columns of a table or alias, the key first.
    func all(of alias: String = "t") -> String {
        list([table.key] + table.columns, alias)
    }

    private func list(_ columns: [PostgresColumn], _ alias: String) -> String {
        columns.map { $0.selected(as: "\(alias).\($0.sqlName)") }.joined(separator: ", ")
    }

    /// Selects the rows with the given ids, in any order.
    func reading(_ ids: [RecordID]) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT \(all()) FROM \(table.sqlName) AS t WHERE t.\(key) = ANY ($1::\(keyType))
            """, [keys(ids)])
    }

    /// Selects, among the rows with the given ids, those that may have more bytes than a device can
    /// receive. A text may take up to six times its bytes on the wire.
    func readingLarge(_ ids: [RecordID]) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT \(all()) FROM \(table.sqlName) AS t WHERE t.\(key) = ANY ($1::\(keyType)) \
            AND octet_length((t.*)::text) > \((Limits.rowBytes - (1 << 20)) / 6)
            """, [keys(ids)])
    }

    /// Returns every attribute of a row of `all`, including nulls.
    /// - Throws: `PostgresError` with `isUnsendable` if no device can receive it.
    func attributes(
        _ rows: PostgresRows, _ row: Int, from field: Int = 1
    ) throws(PostgresError) -> Attributes {
        var values: [Value] = []
        values.reserveCapacity(table.columns.count)
        for (columnIndex, column) in table.columns.enumerated() {
            values.append(try column.value(of: rows, row, field + columnIndex))
        }
        let attributes = Attributes(names: columns.names, values: values)
        guard !attributes.exceeds(Limits.rowBytes) else {
            throw PostgresError(.invalidValue, UnsendableValue.ofLargeRow.reason)
        }
        return attributes
    }

    /// Returns the named attributes of a row of `all`.
    func attributes(
        _ names: [String], _ rows: PostgresRows, _ row: Int, from field: Int = 1
    ) throws(PostgresError) -> Attributes {
        var values: [Value] = []
        values.reserveCapacity(names.count)
        for name in names {
            guard let columnIndex = columnIndices[name] else {
                values.append(.null)
                continue
            }
            values.append(try table.columns[columnIndex].value(of: rows, row, field + columnIndex))
        }
        return Attributes(names: names, values: values)
    }

    /// Returns the attributes of a row that has these columns after the key, in this order.
    func returned(
        _ names: [String], _ rows: PostgresRows, _ row: Int
    ) throws(PostgresError) -> Attributes {
        var values: [Value] = []
        values.reserveCapacity(names.count)
        for (index, name) in names.enumerated() {
            guard let columnIndex = columnIndices[name] else { continue }
            values.append(try table.columns[columnIndex].value(of: rows, row, index + 1))
        }
        return Attributes(names: names, values: values)
    }

    // MARK: - Writing

    /// Creates records with the given keys and the same list of attributes.
    /// - Returns: A statement whose rows are `all`.
    func creating(
        _ ids: [RecordID], _ names: [String], _ records: [Attributes]
    ) -> PostgresStatement {
        statement(true, ids, names, records)
    }

    /// Changes the same attributes of records.
    /// - Precondition: There is at least one attribute.
    /// - Returns: A statement that returns the key, these attributes, and the generated ones.
    func changing(
        _ ids: [RecordID], _ names: [String], _ records: [Attributes]
    ) -> PostgresStatement {
        statement(false, ids, names, records)
    }

    /// Removes the records that exist.
    func deleting(_ ids: [RecordID]) -> PostgresStatement {
        PostgresStatement(
            "DELETE FROM \(table.sqlName) AS t WHERE t.\(key) = ANY ($1::\(keyType))", [keys(ids)])
    }

    private func statement(
        _ creates: Bool, _ ids: [RecordID], _ names: [String], _ records: [Attributes]
    ) -> PostgresStatement {
        let isSingle = ids.count == 1
        let sql = sql(Writing(creates: creates, isSingle: isSingle, names: names))
        var values: [PostgresValue] = []
        values.reserveCapacity(names.count + 1)
        if isSingle {
            values.append(Self.key(ids[0]))
        } else {
            values.append(keys(ids))
        }
        for (index, name) in names.enumerated() {
            guard let column = column(name) else { continue }
            if isSingle {
                values.append(column.parameter(for: records[0].values[index]))
            } else {
                values.append(
                    .array(PostgresArray(records.map { column.parameter(for: $0.values[index]) })))
            }
        }
        return PostgresStatement(sql, values)
    }

    private func sql(_ writing: Writing) -> String {
        if let sql = writings[writing] { return sql }
        let written = writing.names.compactMap { column($0) }
        let sql = writing.creates ? creation(written, writing) : change(written, writing)
        if writings.count >= Self.mostWritings { writings.removeAll() }
        writings[writing] = sql
        return sql
    }

    private func creation(_ written: [PostgresColumn], _ writing: Writing) -> String {
        let all = [table.key] + written
        let names = all.map(\.sqlName).joined(separator: ", ")
        // The keys that PostgreSQL otherwise always generates were drawn from the same sequence.
        let head = "INSERT INTO \(table.sqlName) AS t (\(names)) OVERRIDING SYSTEM VALUE"
        return "\(head) \(source(all, writing)) RETURNING \(self.all())"
    }

    private func source(_ written: [PostgresColumn], _ writing: Writing) -> String {
        if writing.isSingle {
            let values = written.enumerated().map { index, column in
                column.assigned("$\(index + 1)::\(column.parameterType)")
            }
            return "VALUES (\(values.joined(separator: ", ")))"
        }
        let values = written.enumerated().map { $1.assigned("v.c\($0)") }
        return "SELECT \(values.joined(separator: ", ")) FROM \(arrays(written))"
    }

    private func arrays(_ written: [PostgresColumn]) -> String {
        let arrays = written.enumerated().map { "$\($0 + 1)::\($1.parameterType)[]" }
        let names = written.indices.map { "c\($0)" }
        return "unnest(\(arrays.joined(separator: ", "))) AS v(\(names.joined(separator: ", ")))"
    }

    private func change(_ written: [PostgresColumn], _ writing: Writing) -> String {
        let assignments = written.enumerated().map { index, column in
            let value =
                writing.isSingle ? "$\(index + 2)::\(column.parameterType)" : "v.c\(index + 1)"
            return "\(column.sqlName) = \(column.assigned(value))"
        }
        let generated = columns.generated.compactMap { column($0) }
        let from = writing.isSingle ? "" : "FROM \(arrays([table.key] + written)) "
        let wanted = writing.isSingle ? "$1::\(table.key.parameterType)" : "v.c0"
        return """
            UPDATE \(table.sqlName) AS t SET \(assignments.joined(separator: ", ")) \
            \(from)WHERE t.\(key) = \(wanted) \
            RETURNING \(list([table.key] + written + generated, "t"))
            """
    }
}

@available(*, unavailable)
extension TableFormat: Sendable {}
