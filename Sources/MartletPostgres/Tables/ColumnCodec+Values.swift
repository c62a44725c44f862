package import MartletModel
internal import MartletProtocol
package import PostgresKit
import SQLiteRecords

/// A stored value that no device can receive, such as an infinity.
package struct UnsendableValue: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence without the value: “column “ratio” holds an infinity, …”.
    package let reason: String

    package var description: String { reason }

    /// The fault of a row that has more bytes than a device can receive.
    static let ofLargeRow = UnsendableValue(
        reason: "the record has more than \(Limits.rowBytes >> 20) MiB with all its attributes, the"
            + " most that a device can be sent")
}

extension PostgresColumn {
    /// The expression to select for `value(from:)`: the column, as text if the kit has no other
    /// form for it.
    package var selected: String { selected(as: sqlName) }

    /// Returns that expression for a column that a statement names differently, such as `t."name"`.
    package func selected(as name: String) -> String {
        form == .array ? "\(name)::text" : name
    }

    /// Returns a set's value as a statement's parameter. The parameter's type is the column's, or
    /// text that is cast to `declaration`.
    ///
    /// A value that `mismatch` refuses is passed unchanged, for PostgreSQL to judge.
    package func parameter(for value: Value) -> PostgresValue {
        switch (value, form) {
        case (.null, _): .null
        case (.boolean(let flag), _): .boolean(flag)
        case (.integer(let number), .real): .real(Float(number))
        case (.integer(let number), .double): .double(Double(number))
        case (.integer(let number), _): .integer(number)
        case (.real(let number), .real): .real(Float(number))
        case (.real(let number), _): .double(number)
        case (.text(let text), .binary):
            Base64.decode(text).map { .binary($0) } ?? .text(text)
        case (.text(let text), _): .text(text)
        }
    }

    /// Returns the parameter as text, for arrays of values that are cast to `declaration`; nil for
    /// null.
    package func parameterText(for value: Value) -> String? {
        parameter(for: value).text
    }

    /// Returns an id as a parameter of the key's type.
    package func parameter(for id: RecordID) -> PostgresValue {
        switch id {
        case .integer(let number): .integer(number)
        case .text(let text): .text(text)
        }
    }

    /// Returns a value of `selected` in the form of the wire.
    /// - Throws: `UnsendableValue` if no device can receive it.
    package func value(from stored: PostgresValue) throws(UnsendableValue) -> Value {
        switch stored {
        case .null: return .null
        case .boolean(let flag): return .boolean(flag)
        case .integer(let number): return .integer(number)
        case .real(let number):
            guard number.isFinite, let double = Double(number.description) else { throw infinity }
            return .real(double)
        case .double(let number):
            guard number.isFinite else { throw infinity }
            return .real(number)
        case .binary(let bytes): return .text(Base64.encode(bytes))
        case .other:
            throw UnsendableValue(reason: "column “\(name)” holds a value of another type")
        default: return .text(stored.text ?? "")
        }
    }

    /// Returns a column of an answer in the form of the wire.
    /// - Throws: `UnsendableValue` if no device can receive it; `PostgresError` if it cannot be
    ///   read.
    package func value(from rows: PostgresRows, _ row: Int, _ column: Int) throws -> Value {
        try value(from: rows.value(row, column))
    }

    /// Returns a key of an answer as a record's id.
    /// - Throws: `UnsendableValue` if no record can have it as id; `PostgresError` if it cannot be
    ///   read.
    package func id(from rows: PostgresRows, _ row: Int, _ column: Int) throws -> RecordID {
        switch try value(from: rows, row, column) {
        case .integer(let number): return .integer(number)
        case .text(let text): return .text(text)
        default: throw UnsendableValue(reason: "column “\(name)” holds what no id can be")
        }
    }

    /// The error for NaN and infinities.
    var infinity: UnsendableValue {
        UnsendableValue(
            reason: "column “\(name)” holds NaN or an infinity, which no device can be sent")
    }
}
