import MartletStore

/// A child who plays.
public struct Player: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    /// nil while the player has no team.
    public var team: RecordID?
    public var name: String
    /// “2014-05-31”.
    public var birthday: String
    public var shirt: Int?
    /// Whether the parents have agreed to health checks.
    public var hasConsent: Bool
    public var notes: String

    public init(
        id: RecordID? = nil, team: RecordID? = nil, name: String, birthday: String,
        shirt: Int? = nil, hasConsent: Bool = false, notes: String = ""
    ) {
        self.id = id
        self.team = team
        self.name = name
        self.birthday = birthday
        self.shirt = shirt
        self.hasConsent = hasConsent
        self.notes = notes
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case team = "team_id"
        case name
        case birthday
        case shirt
        case hasConsent = "has_consent"
        case notes
    }
}
