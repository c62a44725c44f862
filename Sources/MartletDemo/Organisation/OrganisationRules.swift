/// The policies of the generated organisation, and the same in plain SQL to check them by.
enum OrganisationRules {
    /// The types with policies. Everyone sees the others.
    static let types = ["memberships", "players", "screen_instances", "notes"]
    static let office = "office"

    private static let open = [
        "regions", "clubs", "venues", "seasons", "teams", "team_players", "staff", "team_staff",
        "screens", "screen_items", "screen_instance_items", "sessions", "attendances",
    ]

    /// Returns the name of a coach. Coaches are counted from 1.
    static func coach(_ number: Int) -> String { "coach-\(number)" }

    static let script = """
        -- The office sees and changes everything.
        \(types.map { "CREATE POLICY office ON \($0) TO office USING (true);" }.joined(separator: "\n"))

        -- A coach sees his memberships in clubs, the players of these clubs, and what is about them.
        CREATE POLICY own ON memberships FOR SELECT USING (person = martlet_user());
        CREATE POLICY club ON players
            USING (club_id IN (SELECT club_id FROM memberships WHERE person = martlet_user()));
        CREATE POLICY player ON screen_instances USING (player_id IN (SELECT id FROM players));
        CREATE POLICY player ON notes
            USING (EXISTS (SELECT 1 FROM players WHERE players.id = notes.player_id));

        -- Everyone sees and changes the rest.
        \(open.map { "ALTER TABLE \($0) DISABLE ROW LEVEL SECURITY;" }.joined(separator: "\n"))
        """

    /// Returns, by type, a condition in SQL that is true for the rows which a coach may see, and for no
    /// others. It reads the tables of the SQLite database `server`.
    static func conditions(of coach: String) -> [String: String] {
        let own = "person = '\(coach)'"
        let players = "club_id IN (SELECT club_id FROM server.memberships WHERE \(own))"
        let about = "player_id IN (SELECT id FROM server.players WHERE \(players))"
        return [
            "memberships": own, "players": players, "screen_instances": about, "notes": about,
        ]
    }
}
