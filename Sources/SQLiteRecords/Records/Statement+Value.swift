package import MartletModel
package import SQLiteKit

/// Values of the wire in SQLite's columns, by the kind of their attribute.
extension Statement {
    /// Binds a value of the wire.
    ///
    /// If a text for a BLOB column is not base64, it is refused: the next step throws an error with
    /// `isMismatch`. Any other value that does not fit the kind (see `RecordTable.mismatch`) is
    /// bound as it is, and the database judges it.
    package func bind(_ index: Int32, _ value: Value, kind: AttributeKind) {
        switch value {
        case .null: bindNull(index)
        case .boolean(let flag): bind(index, integer: flag ? 1 : 0)
        case .integer(let number): bind(index, integer: number)
        case .real(let number): bind(index, real: number)
        case .text(let text):
            guard kind == .blob else { return bind(index, text: text) }
            guard let bytes = Base64.decode(text) else {
                return refuseBinding("expected base64 text for a BLOB column, found other text")
            }
            bind(index, blob: bytes)
        }
    }

    /// Binds an id.
    package func bind(_ index: Int32, _ id: RecordID) {
        switch id {
        case .integer(let number): bind(index, integer: number)
        case .text(let text): bind(index, text: text)
        }
    }

    /// Returns the column as a value of the wire.
    ///
    /// SQLite lets any column hold anything. A value that another program stored against the kind
    /// is returned as it is, if the wire has a form for it (text in an integer column).
    /// - Throws: `SQLiteError` with `isMismatch` for text that is not UTF-8, for binary data in a
    ///   column not declared BLOB, and for infinities.
    package func value(_ column: Int32, kind: AttributeKind) throws(SQLiteError) -> Value {
        switch storage(column) {
        case .null:
            return .null
        case .integer:
            let number = integer(column)
            switch kind {
            case .boolean where number == 0 || number == 1: return .boolean(number == 1)
            case .numeric, .text: return .text(String(number))
            case .blob: return .text(Base64.encode(blob(column)))
            // RETURNING shows the integer as which SQLite stores a whole REAL (seen in 3.40).
            case .real: return .real(Double(number))
            default: return .integer(number)
            }
        case .real:
            let number = real(column)
            guard number.isFinite else {
                throw mismatch(column, "holds an infinity, which no device can be sent")
            }
            switch kind {
            case .numeric: return .text(DecimalText.text(number))
            case .text: return .text(number.description)
            case .blob: return .text(Base64.encode(blob(column)))
            default: return .real(number)
            }
        case .text:
            if kind == .blob { return .text(Base64.encode(blob(column))) }
            return .text(try checkedText(column))
        case .blob:
            guard kind == .blob else {
                throw mismatch(column, "holds binary data, but is not declared BLOB")
            }
            return .text(Base64.encode(blob(column)))
        }
    }

    /// Returns the column as a record's id.
    /// - Throws: `SQLiteError` with `isMismatch` if the value cannot be an id.
    package func recordID(_ column: Int32) throws(SQLiteError) -> RecordID {
        switch storage(column) {
        case .integer: return .integer(integer(column))
        case .text: return .text(try checkedText(column))
        case .null: throw mismatch(column, "is null where a record's id is expected")
        case .real, .blob:
            throw mismatch(column, "holds neither an integer nor text where an id is expected")
        }
    }

    private func checkedText(_ column: Int32) throws(SQLiteError) -> String {
        guard let text = validatedText(column) else {
            throw mismatch(column, "holds text that is not UTF-8")
        }
        return text
    }

    private func mismatch(_ column: Int32, _ what: String) -> SQLiteError {
        SQLiteError.mismatch("column “\(name(column))” \(what)", sql: sql)
    }
}
