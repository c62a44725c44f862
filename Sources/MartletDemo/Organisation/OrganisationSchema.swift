/// The tables of the generated youth-sports organisation.
enum OrganisationSchema {
    static let script = """
        CREATE TABLE regions (
            id INTEGER PRIMARY KEY,
            parent_id INTEGER REFERENCES regions(id) ON DELETE SET NULL,
            name TEXT NOT NULL,
            code TEXT NOT NULL
        );
        CREATE TABLE clubs (
            id INTEGER PRIMARY KEY,
            region_id INTEGER NOT NULL REFERENCES regions(id),
            name TEXT NOT NULL,
            founded INTEGER,
            email TEXT
        );
        CREATE TABLE memberships (
            id INTEGER PRIMARY KEY,
            person TEXT NOT NULL,
            club_id INTEGER NOT NULL REFERENCES clubs(id) ON DELETE CASCADE,
            remark TEXT NOT NULL,
            UNIQUE (person, club_id)
        );
        CREATE TABLE venues (
            id INTEGER PRIMARY KEY,
            region_id INTEGER REFERENCES regions(id) ON DELETE SET NULL,
            name TEXT NOT NULL,
            surface TEXT,
            latitude REAL,
            longitude REAL
        );
        CREATE TABLE seasons (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            starts_on DATE NOT NULL,
            ends_on DATE NOT NULL
        );
        CREATE TABLE teams (
            id INTEGER PRIMARY KEY,
            club_id INTEGER NOT NULL REFERENCES clubs(id),
            season_id INTEGER NOT NULL REFERENCES seasons(id),
            name TEXT NOT NULL,
            age_group TEXT NOT NULL,
            fee NUMERIC,
            points INTEGER NOT NULL DEFAULT 0
        );
        CREATE TABLE players (
            id INTEGER PRIMARY KEY,
            club_id INTEGER REFERENCES clubs(id) ON DELETE SET NULL,
            first_name TEXT NOT NULL,
            last_name TEXT NOT NULL,
            born_on DATE,
            height_cm INTEGER,
            weight_kg REAL,
            is_active BOOLEAN NOT NULL DEFAULT 1
        );
        CREATE INDEX players_by_club ON players(club_id);
        CREATE TABLE team_players (
            id INTEGER PRIMARY KEY,
            team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            player_id INTEGER NOT NULL REFERENCES players(id) ON DELETE CASCADE,
            shirt_number INTEGER,
            position TEXT,
            joined_on DATE
        );
        CREATE INDEX team_players_by_team ON team_players(team_id);
        CREATE INDEX team_players_by_player ON team_players(player_id);
        CREATE TABLE staff (
            id INTEGER PRIMARY KEY,
            club_id INTEGER REFERENCES clubs(id) ON DELETE SET NULL,
            first_name TEXT NOT NULL,
            last_name TEXT NOT NULL,
            role TEXT NOT NULL,
            phone TEXT
        );
        CREATE TABLE team_staff (
            id INTEGER PRIMARY KEY,
            team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            staff_id INTEGER NOT NULL REFERENCES staff(id) ON DELETE CASCADE,
            is_head BOOLEAN NOT NULL DEFAULT 0
        );
        CREATE INDEX team_staff_by_team ON team_staff(team_id);
        CREATE INDEX team_staff_by_staff ON team_staff(staff_id);
        CREATE TABLE screens (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            description TEXT,
            version INTEGER NOT NULL DEFAULT 1
        );
        CREATE TABLE screen_items (
            id INTEGER PRIMARY KEY,
            screen_id INTEGER NOT NULL REFERENCES screens(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            unit TEXT,
            sort_order INTEGER NOT NULL,
            lowest REAL,
            highest REAL
        );
        CREATE INDEX screen_items_by_screen ON screen_items(screen_id);
        CREATE TABLE screen_instances (
            id INTEGER PRIMARY KEY,
            screen_id INTEGER NOT NULL REFERENCES screens(id),
            player_id INTEGER NOT NULL REFERENCES players(id) ON DELETE CASCADE,
            staff_id INTEGER REFERENCES staff(id) ON DELETE SET NULL,
            taken_at TIMESTAMP NOT NULL,
            comment TEXT
        );
        CREATE INDEX screen_instances_by_player ON screen_instances(player_id);
        CREATE INDEX screen_instances_by_staff ON screen_instances(staff_id);
        CREATE TABLE screen_instance_items (
            id INTEGER PRIMARY KEY,
            screen_instance_id INTEGER NOT NULL
                REFERENCES screen_instances(id) ON DELETE CASCADE,
            screen_item_id INTEGER NOT NULL REFERENCES screen_items(id),
            value REAL,
            is_passed BOOLEAN
        );
        CREATE INDEX screen_instance_items_by_instance
            ON screen_instance_items(screen_instance_id);
        CREATE TABLE sessions (
            id INTEGER PRIMARY KEY,
            team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            venue_id INTEGER REFERENCES venues(id) ON DELETE SET NULL,
            kind TEXT NOT NULL,
            starts_at TIMESTAMP NOT NULL,
            minutes INTEGER NOT NULL
        );
        CREATE INDEX sessions_by_team ON sessions(team_id);
        CREATE INDEX sessions_by_venue ON sessions(venue_id);
        CREATE TABLE attendances (
            id INTEGER PRIMARY KEY,
            session_id INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
            player_id INTEGER NOT NULL REFERENCES players(id) ON DELETE CASCADE,
            status TEXT NOT NULL,
            load INTEGER
        );
        CREATE INDEX attendances_by_session ON attendances(session_id);
        CREATE INDEX attendances_by_player ON attendances(player_id);
        CREATE TABLE notes (
            id INTEGER PRIMARY KEY,
            player_id INTEGER NOT NULL REFERENCES players(id) ON DELETE CASCADE,
            staff_id INTEGER REFERENCES staff(id) ON DELETE SET NULL,
            written_at TIMESTAMP NOT NULL,
            body TEXT NOT NULL
        );
        CREATE INDEX notes_by_player ON notes(player_id);
        CREATE INDEX notes_by_staff ON notes(staff_id);
        """
}
