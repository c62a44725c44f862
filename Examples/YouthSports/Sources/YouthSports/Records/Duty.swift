import MartletStore

/// What a member of the staff does for a team.
public struct Duty: Codable, Hashable, Sendable, ReadableRecord {
    /// Kinds of duties; stored as their words.
    public enum Kind: String, Codable, CaseIterable, Sendable, ColumnValue {
        case coach
        case physio
        case carer
    }

    public var id: RecordID?
    public var team: RecordID
    public var staff: RecordID
    public var kind: Kind

    public init(id: RecordID? = nil, team: RecordID, staff: RecordID, kind: Kind) {
        self.id = id
        self.team = team
        self.staff = staff
        self.kind = kind
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case team = "team_id"
        case staff = "staff_id"
        case kind
    }
}
