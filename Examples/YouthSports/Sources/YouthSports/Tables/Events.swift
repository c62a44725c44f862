import MartletStore

/// The table of training sessions and matches.
public struct Events: Table {
    public typealias Element = Event
    public let tableName = "events"

    let team = Column("team_id", \Event.team)
    let day = Column("day", \Event.day)

    public init() {}

    /// A team's events, oldest first.
    func of(team: RecordID, in context: ReadContext) throws -> [Event] {
        try all(where: self.team == team, orderBy: [day.ascending], in: context)
    }
}
