internal import MartletModel

/// A source and receiver of values by name. A record knows its data, and nothing about tables.
///
/// A structure, a class or a view is a record if it can return its contents by name and take values
/// by name (the founding document calls it a virtual record). One record may be stored in several
/// tables; each table asks it for its own columns. Several records may form one row together;
/// `merge` collects their values. A `Codable` type needs no code of its own:
///
/// ```swift
/// struct Player: Codable, ReadableRecord {
///     var id: Int64?
///     var name: String
/// }
/// ```
public protocol Record {
    /// Returns the record's values for a table, by column name.
    ///
    /// - Parameters:
    ///   - columns: The columns that the table asks for. Leave out all others. `TableColumns.all`
    ///     asks for everything that the record has.
    ///   - table: The table's name; empty if there is no particular table.
    /// - Returns: The values. A null empties its column; a missing name leaves the column alone.
    /// - Throws: Any error that the record has when it makes its values.
    func dictionaryRepresentation(columns: TableColumns, table: String) throws -> RecordValues

    /// Takes values by name. It ignores names that it does not know, and keeps the values of names
    /// that are not given.
    /// - Throws: `StoreError` `.value` if the record cannot hold a value.
    mutating func fill(from values: RecordValues) throws

    /// Takes another record's values into this one.
    ///
    /// Without override, the other record's value replaces this record's value only if the latter
    /// is null or missing. With override, every value of the other record replaces this record's
    /// value, nulls included. Values that the other record does not have always stay.
    /// - Returns: This record, so that merges can be chained.
    /// - Throws: `StoreError` `.value` if this record cannot hold a value; any error of the
    ///   records' own methods.
    @discardableResult
    mutating func merge(_ other: any Record, shouldOverride: Bool) throws -> Self
}

extension Record {
    /// Takes another record's values into this one, by the rules of the requirement.
    /// - Throws: `StoreError` `.value` if this record cannot hold a value; any error of the
    ///   records' own methods.
    @discardableResult
    public mutating func merge(
        _ other: any Record, shouldOverride: Bool = false
    ) throws -> Self {
        try fill(from: merged(with: other, shouldOverride: shouldOverride))
        return self
    }

    /// Returns a copy of this record with another record's values merged into it, by the rules of
    /// `merge`.
    /// - Throws: `StoreError` `.value` if this record cannot hold a value; any error of the
    ///   records' own methods.
    public func merging(_ other: any Record, shouldOverride: Bool = false) throws -> Self {
        var copy = self
        try copy.merge(other, shouldOverride: shouldOverride)
        return copy
    }

    fileprivate func merged(
        with other: any Record, shouldOverride: Bool
    ) throws -> RecordValues {
        var values = try dictionaryRepresentation(columns: .all, table: "")
        let others = try other.dictionaryRepresentation(columns: .all, table: "")
        for (name, value) in zip(others.names, others.values) {
            if shouldOverride || values[name]?.isNull ?? true { values[name] = value }
        }
        return values
    }
}

extension Record where Self: AnyObject {
    /// Takes another record's values into this object, which may be a constant.
    /// - Throws: `StoreError` `.value` if this record cannot hold a value; any error of the
    ///   records' own methods.
    @discardableResult
    public func merge(_ other: any Record, shouldOverride: Bool = false) throws -> Self {
        var object = self
        try object.fill(from: merged(with: other, shouldOverride: shouldOverride))
        return self
    }
}

/// A record that can be created from a row, so that queries can return a list of them.
///
/// A `Decodable` type needs no code of its own. If the row has no column for a property, an
/// optional property becomes nil; for any other property, the initializer throws.
public protocol ReadableRecord: Record, SendableMetatype {
    /// Creates the record from a row.
    /// - Throws: `StoreError` `.value` if the row does not fit.
    init(row: borrowing Row) throws
}

extension RecordValues: Record, ReadableRecord {
    public init(row: borrowing Row) throws {
        self = try row.values
    }

    /// Returns the values that the table asks for.
    public func dictionaryRepresentation(
        columns: TableColumns, table: String
    ) -> RecordValues {
        columns.filter(self)
    }

    /// Takes all values, and adds names that are new.
    public mutating func fill(from values: RecordValues) {
        for (name, value) in zip(values.names, values.values) { self[name] = value }
    }
}
