internal import MartletModel
package import SQLiteKit

/// The current row of a query. It is valid until the query moves to the next row, so it cannot be
/// stored.
public struct Row: ~Copyable {
    package let statement: Statement
    package let layout: RowLayout

    package init(_ statement: Statement, layout: RowLayout) {
        self.statement = statement
        self.layout = layout
    }

    /// The number of columns.
    public var count: Int { layout.names.count }
    /// The names of the columns, in order.
    public var names: [String] { layout.names }

    /// Returns the value of a column, counted from 0.
    /// - Throws: `StoreError` `.value` for text that is not UTF-8, `.unknown` if there is no such
    ///   column.
    /// - Complexity: O(*n*), *n* bytes of a text or of binary data.
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

    /// Returns whether a column, counted from 0, is null; true if there is no such column.
    public func isNull(at index: Int) -> Bool { statement.isNull(Int32(index)) }

    /// Returns the integer in a column; nil if the column holds another kind of value.
    func integer(at index: Int) -> Int64? {
        let column = Int32(index)
        return statement.storage(column) == .integer ? statement.integer(column) : nil
    }

    /// Returns the text in a column; nil if the column holds another kind of value.
    /// - Throws: `StoreError` `.value` for text that is not UTF-8.
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

    /// Returns the value of a column, counted from 0, as a Swift type.
    /// - Throws: `StoreError` `.unknown` if there is no such column, `.value` if the value has
    ///   another kind.
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

    /// Returns the value of a column as a Swift type.
    /// - Throws: `StoreError` `.unknown` if the query has no such column, `.value` if the value has
    ///   another kind.
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
    /// - Throws: `StoreError` `.value` for text that is not UTF-8.
    /// - Complexity: O(*n*), *n* columns, and the copying of texts and binary data.
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

    /// The decoder for these rows, kept here; `RowLayout.decoder(for:)` sets it.
    var companion: AnyObject?
}

extension StoreError {
    /// Returns the same error with the column's name. Errors of other kinds than `.value` stay as
    /// they are.
    func naming(column: String) -> StoreError {
        guard kind == .value, !message.contains("“\(column)”") else { return self }
        return StoreError(.value, "Column “\(column)”: \(message).")
    }
}
