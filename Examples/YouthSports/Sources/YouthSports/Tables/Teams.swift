import MartletStore

/// The table of teams.
public struct Teams: Table {
    public typealias Element = Team
    public let tableName = "teams"

    let id = Column("id", \Team.id)
    let name = Column("name", \Team.name)
    let ageGroup = Column("age_group", \Team.ageGroup)

    public init() {}

    /// The team of a name.
    func named(_ name: String, in context: ReadContext) throws -> Team? {
        try first(where: self.name == name, in: context)
    }

    /// All teams, younger age groups first.
    func sorted(in context: ReadContext) throws -> [Team] {
        try all(orderBy: [ageGroup.ascending, name.ascending], in: context)
    }
}
