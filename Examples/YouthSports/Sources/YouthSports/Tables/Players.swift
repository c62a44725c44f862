import MartletStore

/// The table of players.
public struct Players: Table {
    public typealias Element = Player
    public let tableName = "players"

    /// Every stored player has a number, so here it is not optional.
    let id = Column<RecordID>("id")
    let team = Column("team_id", \Player.team)
    let name = Column("name", \Player.name)
    let birthday = Column("birthday", \Player.birthday)
    let shirt = Column("shirt", \Player.shirt)
    let hasConsent = Column("has_consent", \Player.hasConsent)
    let notes = Column("notes", \Player.notes)

    public init() {}

    /// The players of a team, by name; of no team where `team` is nil.
    func of(team: RecordID?, in context: ReadContext) throws -> [Player] {
        try all(where: self.team == team, orderBy: [name.ascending], in: context)
    }

    /// Who wears a shirt in a team.
    func wearing(_ shirt: Int, team: RecordID, in context: ReadContext) throws -> Player? {
        try first(where: self.team == team && self.shirt == shirt, in: context)
    }

    /// The players whose name or notes hold all of the words, best first. The index is this
    /// device's alone: it is made when it is first used, and kept by triggers, whoever writes.
    func search(_ words: String, in context: ReadContext) throws -> [Player] {
        guard let pattern = FullTextPattern(allOf: words) else { return [] }
        return try FullTextTable(on: self, columns: name, notes).query(matching: pattern)
            .fetch(in: context)
    }
}
