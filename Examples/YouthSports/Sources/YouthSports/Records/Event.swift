import MartletStore

/// A training session or a match of a team.
public struct Event: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    public var team: RecordID
    public var title: String
    /// “2026-03-14”.
    public var day: String

    public init(id: RecordID? = nil, team: RecordID, title: String, day: String) {
        self.id = id
        self.team = team
        self.title = title
        self.day = day
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case team = "team_id"
        case title
        case day
    }
}
