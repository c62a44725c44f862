import MartletStore

/// One number taken in a screening.
public struct Measurement: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    public var screening: RecordID?
    /// “height” and the like.
    public var kind: String
    public var value: Double
    /// “cm” and the like.
    public var unit: String

    public init(
        id: RecordID? = nil, screening: RecordID? = nil, kind: String, value: Double, unit: String
    ) {
        self.id = id
        self.screening = screening
        self.kind = kind
        self.value = value
        self.unit = unit
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case screening = "screening_id"
        case kind
        case value
        case unit
    }
}
