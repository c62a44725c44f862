internal import MartletModel
package import SQLiteKit

/// The current row of a query: valid until the next one is read, so it cannot be stored.
public struct Row: ~Copyable {
    package let statement: Statement
    package let layout: RowLayout

    package init(_ statement: Statement, layout: RowLayout) {
        self.statement = statement
        self.layout = layout
    }

    /// The number of columns.
    public var count: Int { layout.names.count }
    /// The columns' names, in order.
    public var names: [String] { layout.names }

    /// The value of a column, counted from 0.
    /// - Throws: `StoreError` `.value` for text that is not UTF-8, `.unknown` where there is no such
    ///   column.
    public func value(at index: Int) throws -> SQLValue {
        try check(index)
        let column = Int32(index)
        switch statement.storage(column) {
        case .null: return .null
        case .integer: return .integer(statement.integer(column))
        case .real: return .real(statement.real(column))
        case .text: return .text(try validText(column))
        case .blob: return .blob(statement.blob(column))
        }
    }

    private func check(_ index: Int) throws {
        guard index >= 0, index < layout.names.count else {
            throw StoreError(
                .unknown, "The row has no column \(index); it has \(count), counted from 0.")
        }
    }

    /// Whether a column, counted from 0, is null; true where there is no such column.
    public func isNull(at index: Int) -> Bool { statement.isNull(Int32(index)) }

    /// The integer in a column; nil where there is another kind of value.
    func integer(at index: Int) -> Int64? {
        let column = Int32(index)
        return statement.storage(column) == .integer ? statement.integer(column) : nil
    }

    /// The text in a column; nil where there is another kind of value.
    func text(at index: Int) throws -> String? {
        let column = Int32(index)
        return statement.storage(column) == .text ? try validText(column) : nil
    }

    private func validText(_ column: Int32) throws -> String {
        guard let text = statement.validatedText(column) else {
            throw StoreError(
                .value,
                "Column “\(layout.names[Int(column)])” holds text that is not UTF-8; read it as"
                    + " binary data (CAST(… AS BLOB)) and correct it.")
        }
        return text
    }

    /// The value of a column, counted from 0, as a type of Swift.
    public func get<Value: ColumnValue>(
        at index: Int, as type: Value.Type = Value.self
    ) throws -> Value {
        try check(index)
        do {
            return try Value._read(self, at: index)
        } catch let error as StoreError {
            throw error.naming(column: layout.names[index])
        }
    }

    /// The value of a column as a type of Swift.
    /// - Throws: `StoreError` `.unknown` where the query has no such column, `.value` where the
    ///   value is of another kind.
    public func get<Value: ColumnValue>(
        _ name: String, as type: Value.Type = Value.self
    ) throws -> Value {
        guard let index = layout.index(of: name) else {
            throw StoreError(
                .unknown,
                "The row has no column “\(name)”; it has \(layout.names.joined(separator: ", ")).")
        }
        return try get(at: index, as: type)
    }

    /// All values by name.
    public var values: RecordValues {
        get throws {
            var values: [SQLValue] = []
            values.reserveCapacity(count)
            for index in layout.names.indices { values.append(try value(at: index)) }
            return RecordValues(names: layout.names, values: values)
        }
    }
}

/// The columns of a query's rows.
package final class RowLayout {
    package let names: [String]
    private let indexes: [String: Int]

    package init(_ statement: Statement) {
        let names = (0..<statement.columnCount).map { statement.name($0) }
        self.names = names
        indexes = Dictionary(names.enumerated().map { ($1, $0) }) { first, _ in first }
    }

    func index(of name: String) -> Int? { indexes[name] }

    /// What decoding keeps beside the layout; `RowLayout.decoder(for:)` sets it.
    var companion: AnyObject?
}

extension StoreError {
    /// The same refusal, of a named column.
    func naming(column: String) -> StoreError {
        guard kind == .value, !message.contains("“\(column)”") else { return self }
        return StoreError(.value, "Column “\(column)”: \(message).")
    }
}
