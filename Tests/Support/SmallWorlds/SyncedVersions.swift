internal import MartletModel
package import MartletStore

/// Versions of a device's tables, and what the server says of columns before they are there.
package enum SyncedVersions {
    package static let first = Migration(1, "teams") { context in
        try context.create(
            """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Oslo');
            CREATE TABLE players(
                id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
                name TEXT, email TEXT, shirt INTEGER);
            CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
            CREATE INDEX by_team ON players(team_id);
            """)
    }
    package static let nicknames = Migration(2, "nicknames") { context in
        try context.addColumn("nickname TEXT NOT NULL DEFAULT none", to: "teams")
    }
    package static let towns = Migration(3, "towns") { context in
        try context.renameColumn("city", to: "town", in: "teams")
    }
    package static let noMail = Migration(4, "no mail") { context in
        try context.dropColumn("email", from: "players")
    }
    package static let venues = Migration(5, "venues") { context in
        try context.create(
            """
            CREATE TABLE venues(
                id INTEGER PRIMARY KEY, name TEXT, seats INTEGER NOT NULL DEFAULT 7,
                team_id INTEGER REFERENCES teams(id));
            """)
    }
    package static let shirts = Migration(6, "shirts") { context in
        try context.execute(
            "UPDATE players SET shirt = shirt + ? WHERE shirt IS NOT NULL", [.integer(100)])
        try context.create("CREATE UNIQUE INDEX by_shirt ON players(team_id, shirt)")
        try context.execute(
            "INSERT INTO notes VALUES ('m', 'moved'); ")
        try context.execute("UPDATE players SET name = upper(name) WHERE id = 12")
    }
    package static let all = [first, nicknames, towns, noMail, venues, shirts]
    /// How many there are up to the first, the last.
    package static let start = 1
}
