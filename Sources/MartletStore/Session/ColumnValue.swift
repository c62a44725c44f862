public import MartletModel
internal import SQLiteKit

/// A Swift type that a column can hold.
///
/// These types conform: the integers, `Double` and `Float`, `Bool` (0 and 1), `String`, `[UInt8]`,
/// `Data`, `Date` (RFC 3339 in UTC with milliseconds, as on the wire), `UUID` (text in small
/// letters), `Decimal` and `URL` (text), `RecordID`, `SQLValue`, and optionals of these. An
/// enumeration conforms with an empty conformance if its raw value conforms:
///
/// ```swift
/// enum Position: String, ColumnValue { case goalkeeper, defender, striker }
/// ```
public protocol ColumnValue: Sendable {
    /// The value as SQLite stores it.
    var sqlValue: SQLValue { get }

    /// Converts a stored value.
    /// - Throws: `StoreError` `.value` if the stored value has another kind.
    init(sqlValue: SQLValue) throws

    /// Reads a column of the current row. The default implementation calls `init(sqlValue:)`.
    /// - Throws: `StoreError` `.value` if the stored value has another kind.
    static func _read(_ row: borrowing Row, at index: Int) throws -> Self

    /// Binds the value to a parameter, counted from 1. The default implementation binds `sqlValue`.
    /// - Throws: `StoreError` `.statement` if there is no such parameter; `.value` for a text with
    ///   a NUL.
    func _bind(_ statement: PreparedStatement, at index: Int) throws
}

extension ColumnValue {
    /// Reads a column of the current row.
    /// - Throws: `StoreError` `.value` if the stored value has another kind.
    public static func _read(_ row: borrowing Row, at index: Int) throws -> Self {
        try Self(sqlValue: row.value(at: index))
    }

    /// Binds the value to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter; `.value` for a text with
    ///   a NUL.
    @inlinable
    public func _bind(_ statement: PreparedStatement, at index: Int) throws {
        try statement._bind(sqlValue, at: index)
    }

    static func mismatch(_ found: SQLValue, _ expected: String) -> StoreError {
        StoreError(.value, "expected \(expected), found \(found.kindName)")
    }
}

// MARK: - Numbers

extension ColumnValue where Self: FixedWidthInteger {
    public var sqlValue: SQLValue {
        // Only UInt and UInt64 have values that SQLite's integers cannot hold. They stay exact as
        // text.
        Int64(exactly: self).map { .integer($0) } ?? .text(String(self))
    }

    public init(sqlValue: SQLValue) throws {
        let exact: Self? =
            switch sqlValue {
            case .integer(let number): Self(exactly: number)
            case .real(let number): Self(exactly: number)
            case .text(let text): Self(text)
            case .null, .blob: nil
            }
        guard let exact else { throw Self.mismatch(sqlValue, "an integer of \(Self.self)") }
        self = exact
    }

    /// Reads a column of the current row.
    /// - Throws: `StoreError` `.value` if the stored value is no integer of this type.
    public static func _read(_ row: borrowing Row, at index: Int) throws -> Self {
        if let number = row.integer(at: index), let exact = Self(exactly: number) { return exact }
        return try Self(sqlValue: row.value(at: index))
    }

    /// Binds the value to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter.
    @inlinable
    public func _bind(_ statement: PreparedStatement, at index: Int) throws {
        if let integer = Int64(exactly: self) {
            try statement._bind(integer: integer, at: index)
        } else {
            try statement._bind(sqlValue, at: index)
        }
    }
}

extension Int: ColumnValue {}
extension Int64: ColumnValue {}
extension Int32: ColumnValue {}
extension Int16: ColumnValue {}
extension Int8: ColumnValue {}
extension UInt: ColumnValue {}
extension UInt64: ColumnValue {}
extension UInt32: ColumnValue {}
extension UInt16: ColumnValue {}
extension UInt8: ColumnValue {}

extension Double: ColumnValue {
    /// The number as SQLite stores it. A NaN becomes null, because SQLite has no NaN; infinities
    /// are stored.
    public var sqlValue: SQLValue { isNaN ? .null : .real(self) }

    public init(sqlValue: SQLValue) throws {
        switch sqlValue {
        case .real(let number): self = number
        case .integer(let number): self = Double(number)
        case .text(let text):
            guard let number = Double(text) else { throw Self.mismatch(sqlValue, "a number") }
            self = number
        case .null, .blob: throw Self.mismatch(sqlValue, "a number")
        }
    }

    /// Binds the value to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter.
    @inlinable
    public func _bind(_ statement: PreparedStatement, at index: Int) throws {
        if isNaN { return try statement._bindNull(at: index) }
        try statement._bind(real: self, at: index)
    }
}

extension Float: ColumnValue {
    public var sqlValue: SQLValue { Double(self).sqlValue }

    public init(sqlValue: SQLValue) throws {
        self = Float(try Double(sqlValue: sqlValue))
    }
}

extension Bool: ColumnValue {
    public var sqlValue: SQLValue { .integer(self ? 1 : 0) }

    public init(sqlValue: SQLValue) throws {
        guard case .integer(let number) = sqlValue, number == 0 || number == 1 else {
            throw Self.mismatch(sqlValue, "0 or 1")
        }
        self = number == 1
    }
}

// MARK: - Text, bytes, ids

extension String: ColumnValue {
    public var sqlValue: SQLValue { .text(self) }

    /// Reads a text, or a number as Swift writes it.
    /// - Throws: `StoreError` `.value` for a null and for binary data.
    public init(sqlValue: SQLValue) throws {
        switch sqlValue {
        case .text(let text): self = text
        case .integer(let number): self = String(number)
        case .real(let number): self = number.description
        case .null, .blob: throw Self.mismatch(sqlValue, "text")
        }
    }

    /// Reads a column of the current row.
    /// - Throws: `StoreError` `.value` for a null, binary data, or text that is not UTF-8.
    public static func _read(_ row: borrowing Row, at index: Int) throws -> String {
        if let text = try row.text(at: index) { return text }
        return try String(sqlValue: row.value(at: index))
    }

    /// Binds the value to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter; `.value` for a text with
    ///   a NUL.
    @inlinable
    public func _bind(_ statement: PreparedStatement, at index: Int) throws {
        try statement._bind(text: self, at: index)
    }
}

extension [UInt8]: ColumnValue {
    public var sqlValue: SQLValue { .blob(self) }

    public init(sqlValue: SQLValue) throws {
        guard case .blob(let bytes) = sqlValue else {
            throw Self.mismatch(sqlValue, "binary data")
        }
        self = bytes
    }
}

extension RecordID: ColumnValue {
    public var sqlValue: SQLValue { SQLValue(self) }

    public init(sqlValue: SQLValue) throws {
        switch sqlValue {
        case .integer(let number): self = .integer(number)
        case .text(let text): self = .text(text)
        case .null, .real, .blob: throw Self.mismatch(sqlValue, "a record's id")
        }
    }
}

extension SQLValue: ColumnValue {
    public var sqlValue: SQLValue { self }

    public init(sqlValue: SQLValue) {
        self = sqlValue
    }
}

// MARK: - Optionals and enumerations

extension Optional: ColumnValue where Wrapped: ColumnValue {
    public var sqlValue: SQLValue {
        switch self {
        case .some(let value): value.sqlValue
        case .none: .null
        }
    }

    public init(sqlValue: SQLValue) throws {
        self = sqlValue.isNull ? nil : try Wrapped(sqlValue: sqlValue)
    }

    /// Reads a column of the current row.
    /// - Throws: `StoreError` `.value` if the stored value is not null and has another kind.
    public static func _read(_ row: borrowing Row, at index: Int) throws -> Wrapped? {
        row.isNull(at: index) ? nil : try Wrapped._read(row, at: index)
    }

    /// Binds the value to a parameter, counted from 1.
    /// - Throws: `StoreError` `.statement` if there is no such parameter; `.value` for a text with
    ///   a NUL.
    @inlinable
    public func _bind(_ statement: PreparedStatement, at index: Int) throws {
        guard let value = self else { return try statement._bindNull(at: index) }
        try value._bind(statement, at: index)
    }
}

extension ColumnValue where Self: RawRepresentable, RawValue: ColumnValue {
    public var sqlValue: SQLValue { rawValue.sqlValue }

    public init(sqlValue: SQLValue) throws {
        guard let value = Self(rawValue: try RawValue(sqlValue: sqlValue)) else {
            throw StoreError(.value, "the stored value is none of \(Self.self)")
        }
        self = value
    }
}
