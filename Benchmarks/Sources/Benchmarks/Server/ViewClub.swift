import CLoad
import Foundation

/// The data of the cases of policies: each person is a member of two teams, and each team has players.
struct ViewClub {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE members (
            id INTEGER PRIMARY KEY, person TEXT NOT NULL,
            team_id INTEGER NOT NULL REFERENCES teams (id));
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, fee INTEGER,
            team_id INTEGER NOT NULL REFERENCES teams (id));
        CREATE INDEX members_by_person ON members (person);
        CREATE INDEX members_by_team ON members (team_id);
        CREATE INDEX players_by_team ON players (team_id);
        """

    /// A person sees the players of the teams that he sees: those of his memberships.
    static let rules = """
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
        CREATE POLICY mine ON teams FOR SELECT USING (EXISTS (
            SELECT 1 FROM members WHERE members.team_id = teams.id AND person = martlet_user()));
        CREATE POLICY team ON players FOR SELECT USING (team_id IN (SELECT id FROM teams));
        """

    let teams: Int
    let playersPerTeam: Int
    /// How many people are members of teams: the person of a number, of the team with this number and the
    /// next.
    let people: Int

    /// Makes a file with these rows, before Martlet knows of it.
    func make(at path: String) throws {
        func numbers(_ count: Int) -> String {
            "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
        }
        var script = Self.schema
        script += "BEGIN; INSERT INTO teams \(numbers(teams)) SELECT i, 'Team ' || i FROM n;"
        if people > 0 {
            script += """
                INSERT INTO members \(numbers(people)) SELECT 2 * i, 'p' || i, 1 + i % \(teams) FROM n;
                INSERT INTO members \(numbers(people))
                    SELECT 2 * i + 1, 'p' || i, 1 + (i + 1) % \(teams) FROM n;
                """
        }
        script += """
            INSERT INTO players \(numbers(teams * playersPerTeam))
                SELECT i, 'Player ' || i || ' of the club with a longer name', i % 50, 1 + i % \(teams) FROM n;
            COMMIT;
            """
        guard rows_execute(path, script) == 0 else {
            throw BenchmarkFailure("The club's file could not be made.")
        }
    }
}

/// A folder that is removed when nobody holds it any more.
final class BenchmarkFolder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-views-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    deinit { try? FileManager.default.removeItem(at: url) }
}
