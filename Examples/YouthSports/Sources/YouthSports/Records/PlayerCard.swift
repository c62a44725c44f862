import MartletStore

/// What a screen shows of one player: part of a player's record and of the team's, in one object.
///
/// A class that says by hand what it holds for which table, as a view would: it can be filled from
/// both tables, and stored in the players' table, which asks for that table's columns only.
public final class PlayerCard: Record {
    public var name = ""
    public var shirt: Int?
    public private(set) var teamName: String?
    private(set) var id: RecordID?

    public init() {}

    public func dictionaryRepresentation(columns: TableColumns, table: String) -> RecordValues {
        var values = RecordValues()
        switch table {
        case "teams":
            // The card shows the team's name and never writes it.
            break
        default:
            values["id"] = id.sqlValue
            values["name"] = name.sqlValue
            values["shirt"] = shirt.sqlValue
        }
        return columns.filter(values)
    }

    /// Takes what it knows: a player's values, or a team's name under `team_name`.
    public func fill(from values: RecordValues) throws {
        if values["id"] != nil { id = try values.value("id") }
        if values["name"] != nil { name = try values.value("name") }
        if values["shirt"] != nil { shirt = try values.value("shirt") }
        if values["team_name"] != nil { teamName = try values.value("team_name") }
    }

    /// The card as it is printed.
    public var text: String {
        let number = shirt.map { "#\($0) " } ?? ""
        return "\(number)\(name) (\(teamName ?? "no team"))"
    }
}
