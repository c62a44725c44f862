import MartletStore

/// The database, version by version. A version that was shipped is never changed: what it got wrong
/// the next one puts right.
enum OrganisationSchema {
    /// All versions, oldest first.
    /// - Parameter newest: Leaves out later ones; a test looks at files of old apps with it.
    static func versions(upTo newest: Int = .max) throws -> Migrations {
        try Migrations(all.filter { $0.version <= newest })
    }

    private static var all: [Migration] {
        [
            Migration(1, "teams, players, staff") { try $0.create(roster) },
            Migration(2, "health checks") { context in
                try context.addColumn("has_consent BOOLEAN NOT NULL DEFAULT 0", to: "players")
                try context.create(screenings)
            },
            Migration(3, "events and notes") { context in
                try context.addColumn("notes TEXT NOT NULL DEFAULT ''", to: "players")
                try context.create(events)
            },
        ]
    }

    private static let roster = """
        CREATE TABLE teams (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, age_group TEXT NOT NULL);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE SET NULL,
            name TEXT NOT NULL, birthday TEXT NOT NULL, shirt INTEGER);
        CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT NOT NULL, phone TEXT);
        CREATE TABLE duties (
            id INTEGER PRIMARY KEY,
            team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            staff_id INTEGER NOT NULL REFERENCES staff(id) ON DELETE CASCADE,
            kind TEXT NOT NULL);
        CREATE INDEX players_by_team ON players(team_id, name);
        """

    private static let screenings = """
        CREATE TABLE screenings (
            id INTEGER PRIMARY KEY,
            player_id INTEGER NOT NULL REFERENCES players(id) ON DELETE CASCADE,
            staff_id INTEGER REFERENCES staff(id) ON DELETE SET NULL,
            held_on TEXT NOT NULL, notes TEXT NOT NULL DEFAULT '');
        CREATE TABLE measurements (
            id INTEGER PRIMARY KEY,
            screening_id INTEGER NOT NULL REFERENCES screenings(id) ON DELETE CASCADE,
            kind TEXT NOT NULL, value REAL NOT NULL, unit TEXT NOT NULL);
        CREATE INDEX screenings_by_player ON screenings(player_id, held_on);
        CREATE INDEX measurements_by_screening ON measurements(screening_id);
        """

    private static let events = """
        CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            title TEXT NOT NULL, day TEXT NOT NULL);
        CREATE TABLE attendances (
            id INTEGER PRIMARY KEY,
            event_id INTEGER NOT NULL REFERENCES events(id) ON DELETE CASCADE,
            player_id INTEGER NOT NULL REFERENCES players(id) ON DELETE CASCADE,
            was_there BOOLEAN NOT NULL DEFAULT 0, UNIQUE (event_id, player_id));
        CREATE INDEX events_by_team ON events(team_id, day);
        """
}
