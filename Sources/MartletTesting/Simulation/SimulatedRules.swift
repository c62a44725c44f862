internal import MartletModel

/// The rules files of a simulated world, over Martlet's own tables.
struct SimulatedRules {
    /// The texts; nil stands for a server without a file.
    let files: [String?]

    /// - Parameter isApart: Whether each person works on records of his own. He may see and change all of
    ///   these under every file.
    init(isApart: Bool) {
        let common = Self.office + (isApart ? Self.own : "")
        files =
            zip(Self.permissive, Self.restrictive).map { $0 + (isApart ? "" : $1) + common } + [nil]
    }

    private static let types = [
        ("teams", "name"), ("players", "name"), ("badges", "note"), ("notes", "body"),
        ("members", "note"),
    ]

    /// The office sees and does everything.
    private static let office = types.map { type, _ in
        "CREATE POLICY office ON \(type) TO office USING (true);\n"
    }.joined()

    /// The marks of a person's own records begin with the claim.
    private static let own = types.map { type, column in
        "CREATE POLICY own ON \(type) USING (\(column) LIKE martlet_claim('own'));\n"
    }.joined()

    private static let permissive = [
        // Members see their teams, and what belongs to them.
        """
        CREATE POLICY mine ON teams USING
            (id IN (SELECT team_id FROM members WHERE person = martlet_user())) WITH CHECK (true);
        CREATE POLICY team ON players USING (team_id IN (SELECT id FROM teams))
            WITH CHECK (team_id IS NULL OR team_id IN (SELECT id FROM teams));
        CREATE POLICY wearer ON badges
            USING (EXISTS (SELECT 1 FROM players WHERE players.id = badges.player_id))
            WITH CHECK (true);
        CREATE POLICY team ON notes USING (team_id IS NULL OR team_id IN (SELECT id FROM teams));
        CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
        CREATE POLICY invite ON members FOR INSERT WITH CHECK (team_id IN (SELECT id FROM teams));
        CREATE POLICY leave ON members FOR DELETE USING (person = martlet_user());

        """,
        // The day and claims decide.
        """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY turns ON players
            USING ((shirt + (martlet_today() - CAST ('2020-01-01' AS date))) % 3 <> 0
                OR martlet_role('coach')) WITH CHECK (true);
        CREATE POLICY coded ON badges USING (code LIKE martlet_claim('codes')) WITH CHECK (true);
        ALTER TABLE notes DISABLE ROW LEVEL SECURITY;
        CREATE POLICY every ON members USING (true);

        """,
        // A type that only the office sees, and one whose own text decides.
        """
        CREATE POLICY named ON teams USING (city IS NOT NULL AND city LIKE '%1›') WITH CHECK (true);
        CREATE POLICY team ON players USING (EXISTS (SELECT 1 FROM members
            WHERE members.team_id = players.team_id AND members.person = martlet_user()))
            WITH CHECK (true);
        CREATE POLICY worded ON notes USING (body NOT LIKE '%0›') WITH CHECK (martlet_role('coach'));
        CREATE POLICY self ON members USING (person = martlet_user()) WITH CHECK (true);

        """,
    ]

    private static let restrictive = [
        """
        CREATE POLICY light ON players AS RESTRICTIVE FOR UPDATE
            USING (weight IS NULL OR martlet_role('coach') OR martlet_role('office'));
        GRANT SELECT ON badges TO PUBLIC;
        GRANT INSERT ON badges TO PUBLIC;
        GRANT DELETE ON badges TO PUBLIC;
        GRANT UPDATE (note) ON badges TO PUBLIC;
        GRANT UPDATE ON badges TO coach;
        GRANT ALL ON badges TO office;

        """,
        """
        CREATE POLICY idle ON players AS RESTRICTIVE FOR DELETE
            USING (active IS NOT TRUE OR martlet_role('office'));

        """,
        "",
    ]
}
