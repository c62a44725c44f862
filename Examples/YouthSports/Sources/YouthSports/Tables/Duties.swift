import MartletStore

/// The table of who does what for which team.
public struct Duties: Table {
    public typealias Element = Duty
    public let tableName = "duties"

    let team = Column("team_id", \Duty.team)
    let staff = Column("staff_id", \Duty.staff)

    public init() {}

    /// A team's staff.
    func of(team: RecordID, in context: ReadContext) throws -> [Duty] {
        try all(where: self.team == team, in: context)
    }
}
