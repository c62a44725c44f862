import MartletStore

/// A health check of a player.
public struct Screening: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    public var player: RecordID
    public var staff: RecordID?
    /// “2026-03-14”.
    public var heldOn: String
    public var notes: String

    public init(
        id: RecordID? = nil, player: RecordID, staff: RecordID? = nil, heldOn: String,
        notes: String = ""
    ) {
        self.id = id
        self.player = player
        self.staff = staff
        self.heldOn = heldOn
        self.notes = notes
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case player = "player_id"
        case staff = "staff_id"
        case heldOn = "held_on"
        case notes
    }
}
