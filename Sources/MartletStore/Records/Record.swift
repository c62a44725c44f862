internal import MartletModel

/// Anything that can be stored and filled: it expresses data, and knows nothing of tables.
///
/// A structure, a class, a view: whoever can say what it holds by name, and take values by name, is
/// a record (the founding document calls it a virtual record). One record may be spread over several
/// tables: each asks it for its own columns. Several may make one row together: `merge` gathers what
/// each knows. A type that is `Codable` gets all of it free.
public protocol Record {
    /// What the record holds for a table, by column name.
    ///
    /// - Parameters:
    ///   - columns: What the table can take; leave out the others. `TableColumns.all` asks for
    ///     everything the record has.
    ///   - table: The table's name; empty when no table is meant.
    /// - Returns: The values. A null says “empty”; an absent name says “not mine”.
    func dictionaryRepresentation(columns: TableColumns, table: String) throws -> RecordValues

    /// Takes values by name; ignores names it does not know, and keeps what is not given.
    /// - Throws: `StoreError` `.value` where a value is not what it can hold.
    mutating func fill(from values: RecordValues) throws

    /// Takes another record's values into this one.
    ///
    /// Without override a null on either side gives way to the other side's value, and where both
    /// have one, this record's own stays. With override every value the other record has replaces
    /// this one's, null included. What the other does not have at all stays in any case.
    /// - Returns: This record, so that merges chain.
    @discardableResult
    mutating func merge(_ other: any Record, shouldOverride: Bool) throws -> Self
}

extension Record {
    /// Takes another record's values into this one, by the rules of the requirement.
    @discardableResult
    public mutating func merge(
        _ other: any Record, shouldOverride: Bool = false
    ) throws -> Self {
        try fill(from: merged(with: other, shouldOverride: shouldOverride))
        return self
    }

    /// A copy of this record with another's values merged into it; for chains of values. The rules
    /// are those of `merge`.
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
    /// The same for objects, which can be changed through a constant.
    @discardableResult
    public func merge(_ other: any Record, shouldOverride: Bool = false) throws -> Self {
        var object = self
        try object.fill(from: merged(with: other, shouldOverride: shouldOverride))
        return self
    }
}

/// A record that can be made from a row, so that queries can give lists of it.
///
/// `Decodable` types need write nothing. Where a column is missing in the row, an optional property
/// is nil and any other refuses the row.
public protocol ReadableRecord: Record, SendableMetatype {
    /// - Throws: `StoreError` `.value` where the row does not suit.
    init(row: borrowing Row) throws
}

extension RecordValues: Record, ReadableRecord {
    public init(row: borrowing Row) throws {
        self = try row.values
    }

    /// The values the table asks for.
    public func dictionaryRepresentation(
        columns: TableColumns, table: String
    ) -> RecordValues {
        columns.filter(self)
    }

    /// Takes all values, known or new.
    public mutating func fill(from values: RecordValues) {
        for (name, value) in zip(values.names, values.values) { self[name] = value }
    }
}
