import MartletStore

/// The table of who was at which event.
public struct Attendances: Table {
    public typealias Element = Attendance
    public let tableName = "attendances"

    let event = Column("event_id", \Attendance.event)
    let player = Column("player_id", \Attendance.player)

    public init() {}

    /// Who was asked for at an event.
    func of(event: RecordID, in context: ReadContext) throws -> [Attendance] {
        try all(where: self.event == event, in: context)
    }
}
