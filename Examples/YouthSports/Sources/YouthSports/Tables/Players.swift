import MartletStore

/// The table of players.
public struct Players: Table {
    public typealias Element = Player
    public let tableName = "players"

    let id = Column("id", \Player.id)
    let team = Column("team_id", \Player.team)
    let name = Column("name", \Player.name)
    let birthday = Column("birthday", \Player.birthday)
    let shirt = Column("shirt", \Player.shirt)
    let hasConsent = Column("has_consent", \Player.hasConsent)

    public init() {}

    /// The players of a team, by name; of no team where `team` is nil.
    func of(team: RecordID?, in context: ReadContext) throws -> [Player] {
        try all(where: self.team == team, orderBy: [name.ascending], in: context)
    }

    /// Who wears a shirt in a team.
    func wearing(_ shirt: Int, team: RecordID, in context: ReadContext) throws -> Player? {
        try of(team: team, in: context).first { $0.shirt == shirt }
    }
}
