import MartletStore

/// The table of the staff.
public struct Staff: Table {
    public typealias Element = StaffMember
    public let tableName = "staff"

    let name = Column("name", \StaffMember.name)

    public init() {}

    /// The member of a name.
    func named(_ name: String, in context: ReadContext) throws -> StaffMember? {
        try first(where: self.name == name, in: context)
    }
}
