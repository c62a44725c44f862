import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// A record that other programs touched, as a drain finds it.
struct ExternalRecord {
    /// What there is of it now.
    enum Row: Hashable {
        case present(Attributes)
        case absent
        /// Nothing that a device can be sent, and why.
        case unsendable(String)
    }

    let address: RecordAddress
    /// Whether the log has it, and not as deleted.
    let isKnown: Bool
    let row: Row

    /// About how many bytes it takes on the wire.
    var byteCount: Int {
        var count = 40 + address.id.wireByteCount
        if case .present(let attributes) = row { count += attributes.wireByteCount }
        return count
    }
}

/// One noted change.
struct ExternalChange {
    /// Grows with the order in which the changes were made.
    let number: Int64
    let transaction: Int64
    let author: String?
    let record: ExternalRecord
}

/// How a table's rows are read: one column with the values as texts, whatever the table.
struct ExternalRowCodec {
    let table: PostgresTable
    /// The type's place in the schema.
    let position: Int
    private let names: [String]

    init(_ table: PostgresTable, at position: Int) {
        self.table = table
        self.position = position
        names = table.type.attributes.map(\.name)
    }

    /// What selects a row: `k` is the table, `change` what names the record.
    func lookup(of change: String) -> String {
        let values = table.columns.map { Self.text(of: $0) }.joined(separator: ", ")
        let number = "\(change).type = \(table.number)"
        // Ids of other types need not be of this key's form: they are not cast.
        return """
            SELECT ARRAY[\(values)]::text[] AS row FROM \(table.sqlName) AS k \
            WHERE \(number) AND k.\(table.key.sqlName) = \
            CASE WHEN \(number) THEN \(change).id::\(keyType) END
            """
    }

    private var keyType: String {
        // A length or a collation of the column's would change the text.
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
            // Base64 as PostgreSQL writes it has line breaks.
            return "translate(encode(\(name), 'base64'), E'\\n', '')"
        case .text
        where !["text", "character varying"].contains(where: column.declaration.hasPrefix):
            // A cast takes the padding of `character(5)` away.
            return "CASE WHEN \(name) IS NOT NULL THEN concat(\(name)) END"
        default:
            return "\(name)::text"
        }
    }

    /// The id of a record; nil for a text that is none.
    func id(_ text: String) -> RecordID? {
        switch table.type.keyKind {
        case .integer: Int64(text).map { .integer($0) }
        case .text: .text(text)
        }
    }

    /// The row that `lookup` gave.
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
        // Of four bytes, the shortest number that they stand for.
        case .real:
            Float(text).flatMap { Double($0.description) }.map { .real($0) } ?? .text(text)
        case .double: Double(text).map { .real($0) } ?? .text(text)
        default: .text(text)
        }
    }
}
