extension Record where Self: Encodable {
    /// The properties as values; what the table does not ask for is left out.
    public func dictionaryRepresentation(
        columns: TableColumns, table: String
    ) throws -> RecordValues {
        if let binder = columns.binder, binder.bind(self) { return RecordValues() }
        return columns.filter(try RecordEncoder.values(of: self))
    }
}

extension Record where Self: Codable {
    /// Takes values by name. An object cannot be replaced as a structure can: a class that is
    /// `Codable` writes its own `fill`.
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
