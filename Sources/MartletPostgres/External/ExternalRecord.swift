import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// A record that other programs touched, as a drain reads it.
struct ExternalRecord {
    /// The present row of the record.
    enum Row: Hashable {
        case present(Attributes)
        case absent
        /// A row that no device can receive, and the reason.
        case unsendable(String)
    }

    let address: RecordAddress
    /// Whether the log has the record, and not as deleted.
    let isKnown: Bool
    /// Whether the log leaves the record out already; see `RowFacts.isLeftOut`.
    let isLeftOut: Bool
    let row: Row

    /// The approximate bytes of the record on the wire.
    var byteCount: Int {
        var count = 40 + address.id.wireByteCount
        if case .present(let attributes) = row { count += attributes.wireByteCount }
        return count
    }
}

/// One noted change.
struct ExternalChange {
    /// The number of the change. It grows in the order of the changes.
    let number: Int64
    let transaction: Int64
    let author: String?
    let record: ExternalRecord
}

/// The way to read a table's rows: one column with the values as texts, for any table.
struct ExternalRowCodec {
    let table: PostgresTable
    /// The position of the type in the schema.
    let position: Int
    private let names: [String]

    init(_ table: PostgresTable, at position: Int) {
        self.table = table
        self.position = position
        names = table.type.attributes.map(\.name)
    }

    /// Returns SQL that selects a row: `k` is the table, `change` identifies the record.
    func lookup(of change: String) -> String {
        let values = table.columns.map { Self.text(of: $0) }.joined(separator: ", ")
        let number = "\(change).type = \(table.number)"
        // Ids of other types may not fit this key's type, so they are not cast.
        return """
            SELECT ARRAY[\(values)]::text[] AS row FROM \(table.sqlName) AS k \
            WHERE \(number) AND k.\(table.key.sqlName) = \
            CASE WHEN \(number) THEN \(change).id::\(keyType) END
            """
    }

    private var keyType: String {
        // A length or a collation of the column would change the text.
        switch table.key.form {
        case .integer: "bigint"
        case .uuid: "uuid"
        default: "text"
        }
    }

    private static func text(of column: PostgresColumn) -> String {
        let name = "k.\(column.sqlName)"
        switch column.form {
        case .binary:
            // PostgreSQL's base64 has line breaks.
            return "translate(encode(\(name), 'base64'), E'\\n', '')"
        case .text
        where !["text", "character varying"].contains(where: column.declaration.hasPrefix):
            // A cast would remove the padding of `character(5)`.
            return "CASE WHEN \(name) IS NOT NULL THEN concat(\(name)) END"
        default:
            return "\(name)::text"
        }
    }

    /// Returns the id of a record; nil if the text is none.
    func id(_ text: String) -> RecordID? {
        switch table.type.keyKind {
        case .integer: Int64(text).map { .integer($0) }
        case .text: .text(text)
        }
    }

    /// Reads a row that `lookup` returned.
    func row(_ texts: PostgresArray) -> ExternalRecord.Row {
        var values: [Value] = []
        values.reserveCapacity(texts.elements.count)
        for (column, text) in zip(table.columns, texts.elements) {
            guard case .text(let text) = text else {
                values.append(.null)
                continue
            }
            let value = Self.value(text, column.form)
            if case .real(let number) = value, !number.isFinite {
                return .unsendable(column.infinity.reason)
            }
            values.append(value)
        }
        guard values.count == names.count else { return .unsendable("columns are missing") }
        let attributes = Attributes(names: names, values: values)
        return attributes.exceeds(Limits.rowBytes)
            ? .unsendable(UnsendableValue.ofLargeRow.reason) : .present(attributes)
    }

    private static func value(_ text: String, _ form: ColumnCodec) -> Value {
        switch form {
        case .boolean: .boolean(text == "true")
        case .integer: Int64(text).map { .integer($0) } ?? .text(text)
        // A number of four bytes is sent as the shortest decimal that identifies it.
        case .real:
            Float(text).flatMap { Double($0.description) }.map { .real($0) } ?? .text(text)
        case .double: Double(text).map { .real($0) } ?? .text(text)
        default: .text(text)
        }
    }
}
