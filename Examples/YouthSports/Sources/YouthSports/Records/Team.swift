import MartletStore

/// A team of one age group.
public struct Team: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    public var name: String
    /// “U12” and the like.
    public var ageGroup: String

    public init(id: RecordID? = nil, name: String, ageGroup: String) {
        self.id = id
        self.name = name
        self.ageGroup = ageGroup
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case name
        case ageGroup = "age_group"
    }
}
