import MartletStore

/// The table of health checks.
public struct Screenings: Table {
    public typealias Element = Screening
    public let tableName = "screenings"

    let player = Column("player_id", \Screening.player)
    let heldOn = Column("held_on", \Screening.heldOn)

    public init() {}

    /// A player's screenings, newest first.
    func of(player: RecordID, in context: ReadContext) throws -> [Screening] {
        try all(where: self.player == player, orderBy: [heldOn.descending], in: context)
    }

    /// A player's newest screening.
    func newest(of player: RecordID, in context: ReadContext) throws -> Screening? {
        try first(where: self.player == player, orderBy: [heldOn.descending], in: context)
    }
}
