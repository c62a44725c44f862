import MartletStore

/// The table of numbers taken in screenings.
public struct Measurements: Table {
    public typealias Element = Measurement
    public let tableName = "measurements"

    let screening = Column("screening_id", \Measurement.screening)
    let kind = Column("kind", \Measurement.kind)

    public init() {}

    /// A screening's numbers, by kind.
    func of(screening: RecordID, in context: ReadContext) throws -> [Measurement] {
        try all(where: self.screening == screening, orderBy: [kind.ascending], in: context)
    }
}
