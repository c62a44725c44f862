extension Record where Self: Encodable {
    /// Returns the properties as values, without those that the table does not have.
    /// - Throws: `StoreError` `.value` if the type has no properties by name, or if a property
    ///   cannot be stored; any error of its `encode`.
    public func dictionaryRepresentation(
        columns: TableColumns, table: String
    ) throws -> RecordValues {
        if let binder = columns.binder, binder.bind(self) { return RecordValues() }
        return columns.filter(try RecordEncoder.values(of: self))
    }
}

extension Record where Self: Codable {
    /// Takes values by name. A class that is `Codable` must implement `fill` itself, because this
    /// default replaces the whole value.
    /// - Throws: `StoreError` `.value` if a property cannot hold its value.
    public mutating func fill(from values: RecordValues) throws {
        var filled = try RecordEncoder.values(of: self)
        for (name, value) in zip(values.names, values.values) { filled[name] = value }
        self = try ValuesDecoder.decode(Self.self, from: filled)
    }
}

extension ReadableRecord where Self: Decodable {
    public init(row: borrowing Row) throws {
        self = try row.layout.decoder(for: row.statement).decode(Self.self)
    }
}
