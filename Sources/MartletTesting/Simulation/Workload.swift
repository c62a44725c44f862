internal import MartletModel
internal import MartletServerCore
internal import MartletStore
internal import SQLiteKit

/// The data set of Martlet's own simulation, and people's edits of it.
///
/// There are few records and many people, so that they meet. The tables have every kind of
/// reference, a unique column, a text key, a self-reference, defaults and a required column.
struct Workload {
    static let script = """
        CREATE TABLE teams(
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, founded INTEGER DEFAULT 1900);
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
            mentor_id INTEGER REFERENCES players(id) ON DELETE SET NULL,
            name TEXT NOT NULL, shirt INTEGER, weight REAL, active BOOLEAN DEFAULT 1);
        CREATE INDEX players_team ON players(team_id);
        CREATE INDEX players_mentor ON players(mentor_id);
        CREATE TABLE badges(
            id INTEGER PRIMARY KEY, player_id INTEGER NOT NULL REFERENCES players(id)
                ON DELETE CASCADE, code TEXT UNIQUE, note TEXT);
        CREATE INDEX badges_player ON badges(player_id);
        CREATE TABLE notes(
            id TEXT PRIMARY KEY, team_id INTEGER REFERENCES teams(id), body TEXT);
        CREATE INDEX notes_team ON notes(team_id);
        """

    /// Classes that separate records from those that they refer to: badges arrive before their
    /// players.
    static let seeding = SeedingPlan(classes: [
        .init(name: "first", types: ["teams": .all, "badges": .matching("code IS NOT NULL")]),
        .init(name: "second", types: ["notes": .all]),
    ])

    /// A text that no other write of this run has, for the search in the server's log and on
    /// replicas. It begins with the writer's mark.
    var token: String
    /// The start of the tokens of the records that a person works on; empty for all records.
    var mark = ""
    /// The users whom memberships name; empty in worlds without policies.
    var people: [String] = []
    /// The number of the save.
    var save = 0

    /// The table of memberships, for worlds with policies.
    static let members = """
        CREATE TABLE members(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
            person TEXT, note TEXT);
        CREATE INDEX members_team ON members(team_id);
        """

    /// Returns the text that only one edit of a world with policies writes.
    private func text(ofEdit number: Int) -> String { "\(mark)‹\(save).\(number)›" }

    /// Makes one local save of one to four edits.
    /// - Returns: True if anything was tried.
    func run(_ context: WriteContext, _ random: inout SeededRandom) throws {
        for number in 0..<(1 + random.below(4)) {
            var work = self
            if !people.isEmpty { work.token = text(ofEdit: number) }
            try work.edit(context, &random)
        }
    }

    /// Runs one to three statements of plain SQL on the server's file, as another program.
    /// - Parameter mayMeet: Whether it may change records that people work on.
    func runExternal(
        _ program: Connection, mayMeet: Bool, _ random: inout SeededRandom
    ) throws {
        let statements = Self.external + (people.isEmpty ? [] : Self.memberships)
        for number in 0..<(1 + random.below(3)) {
            let index = mayMeet ? random.below(statements.count) : 0
            let statement = try program.statement(statements[index])
            defer { statement.reset() }
            statement.bind(1, text: people.isEmpty ? token : text(ofEdit: number))
            statement.bind(2, integer: Int64(random.below(1_000)))
            while try statement.step() {}
        }
    }

    /// Statements in which `?1` is the token, and `?2` chooses one of the rows.
    private static let external = [
        "INSERT INTO teams (name, city) VALUES (?1, 'O' || ?2)",
        "UPDATE teams SET city = ?1 WHERE id = \(picked("teams"))",
        "INSERT INTO players (name, team_id, shirt) VALUES (?1, \(picked("teams")), ?2)",
        "UPDATE players SET name = ?1, mentor_id = NULL WHERE id = \(picked("players"))",
        """
        INSERT INTO badges (player_id, note, code)
        SELECT \(picked("players")), ?1, 'c' || (?2 % 40) WHERE EXISTS (SELECT 1 FROM players)
        """,
        "UPDATE badges SET note = ?1, code = NULL WHERE id = \(picked("badges"))",
        "UPDATE notes SET body = ?1 WHERE id = \(picked("notes"))",
        "DELETE FROM players WHERE id = \(picked("players")) AND ?1 <> ''",
        "DELETE FROM notes WHERE id = \(picked("notes")) AND ?1 <> ''",
    ]

    private static let memberships = [
        "INSERT INTO members (person, team_id, note) VALUES ('u' || (?2 % 3), \(picked("teams")), ?1)",
        "UPDATE members SET person = 'u' || (?2 % 3), note = ?1 WHERE id = \(picked("members"))",
        "DELETE FROM members WHERE id = \(picked("members")) AND ?1 <> ''",
    ]

    private static func picked(_ table: String) -> String {
        """
        (SELECT id FROM \(table) ORDER BY id LIMIT 1
         OFFSET ?2 % (SELECT max(count(*), 1) FROM \(table)))
        """
    }

    private func edit(_ context: WriteContext, _ random: inout SeededRandom) throws {
        if !people.isEmpty, random.chance(20) { return try editMember(context, &random) }
        switch random.below(100) {
        case 0..<12: try context.insert("teams", ["name": .text(token), "city": .text("A")])
        case 12..<30: try insertPlayer(context, &random)
        case 30..<42: try insertBadge(context, &random)
        case 42..<48: try insertNote(context, &random)
        case 48..<60:
            if let team = try any("teams", context, &random) {
                try context.update("teams", team, ["city": .text(token)])
            }
        case 60..<74: try updatePlayer(context, &random)
        case 74..<80:
            if let badge = try any("badges", context, &random) {
                try context.update("badges", badge, ["note": .text(token)])
            }
        case 80..<82: try swapCodes(context, &random)
        case 82..<84: try handCodeOn(context, &random)
        case 84..<88:
            if let note = try any("notes", context, &random) {
                try context.update("notes", note, ["body": .text(token)])
            }
        case 88..<90:
            if let team = try any("teams", context, &random) {
                try context.rows(
                    "UPDATE notes SET team_id = NULL WHERE team_id = ?", [team.sqlValue])
                try context.delete("teams", team)
            }
        case 90..<94:
            if let player = try any("players", context, &random) {
                try context.delete("players", player)
            }
        case 94..<97:
            if let badge = try any("badges", context, &random) {
                try context.delete("badges", badge)
            }
        default:
            if let note = try any("notes", context, &random) { try context.delete("notes", note) }
        }
    }

    private func insertPlayer(_ context: WriteContext, _ random: inout SeededRandom) throws {
        var values: RecordValues = [
            "name": .text(token), "shirt": .integer(Int64(random.below(99))),
        ]
        if let team = try any("teams", context, &random) { values["team_id"] = team.sqlValue }
        if random.chance(40), let mentor = try any("players", context, &random) {
            values["mentor_id"] = mentor.sqlValue
        }
        if random.chance(30) { values["weight"] = .real(Double(random.below(1_000)) / 8) }
        try context.insert("players", values)
    }

    /// Gives somebody a membership, hands one on, or ends it.
    private func editMember(_ context: WriteContext, _ random: inout SeededRandom) throws {
        let person = random.one(of: people)
        let member = try any("members", context, &random)
        if let member, random.chance(25) {
            try context.delete("members", member)
            return
        }
        if let member, random.chance(25) {
            try context.update(
                "members", member, ["person": .text(person), "note": .text(token)])
            return
        }
        guard let team = try any("teams", context, &random) else { return }
        try context.insert(
            "members",
            ["team_id": team.sqlValue, "person": .text(person), "note": .text(token)])
    }

    private func insertBadge(_ context: WriteContext, _ random: inout SeededRandom) throws {
        guard let player = try any("players", context, &random) else { return }
        // There are few codes, so that people choose the same one.
        let code = "c\(mark)\(random.below(40))"
        let taken = try context.rows("SELECT 1 FROM badges WHERE code = ?", [.text(code)])
        try context.insert(
            "badges",
            [
                "player_id": player.sqlValue, "note": .text(token),
                "code": taken.isEmpty ? .text(code) : .null,
            ])
    }

    /// Inserts a note, mostly under a new key. Otherwise it uses one of few keys, which are used
    /// again after a deletion.
    private func insertNote(_ context: WriteContext, _ random: inout SeededRandom) throws {
        var values: RecordValues = ["body": .text(token)]
        if let team = try any("teams", context, &random) { values["team_id"] = team.sqlValue }
        let key = random.chance(40) ? "k\(mark)\(random.below(8))" : nil
        if let key,
            try !context.rows("SELECT 1 FROM notes WHERE id = ?", [.text(key)]).isEmpty
        {
            return
        }
        try context.insert("notes", values, id: key)
    }

    /// Moves a badge's unique code to another badge, or to a new one that replaces the badge.
    private func handCodeOn(_ context: WriteContext, _ random: inout SeededRandom) throws {
        let rows = try context.rows(
            """
            SELECT id, code, player_id FROM badges WHERE code IS NOT NULL AND note GLOB ?
            ORDER BY id
            """, [.text(mark + "*")])
        guard let row = random.pick(rows), let badge = row["id"].flatMap({ RecordID($0) }),
            case .text(let code)? = row["code"],
            let player = row["player_id"].flatMap({ RecordID($0) })
        else { return }
        if random.chance(50) {
            try context.delete("badges", badge)
            try context.insert(
                "badges", ["player_id": player.sqlValue, "note": .text(token), "code": .text(code)])
        } else if let other = try any("badges", context, &random), other != badge {
            try context.update("badges", badge, ["code": .null, "note": .text(token)])
            try context.update("badges", other, ["code": .text(code), "note": .text(token)])
        }
    }

    private func updatePlayer(_ context: WriteContext, _ random: inout SeededRandom) throws {
        guard let player = try any("players", context, &random) else { return }
        switch random.below(4) {
        case 0:
            try context.update(
                "players", player, ["name": .text(token), "active": false])
        case 1:
            if let team = try any("teams", context, &random) {
                try context.update(
                    "players", player, ["team_id": team.sqlValue, "name": .text(token)])
            }
        case 2:
            let mentor = try any("players", context, &random)
            try context.update(
                "players", player, ["mentor_id": mentor.sqlValue, "name": .text(token)])
        default:
            try context.update(
                "players", player, ["name": .text(token), "weight": .null, "shirt": .integer(7)])
        }
    }

    /// Exchanges the unique codes of two badges.
    private func swapCodes(_ context: WriteContext, _ random: inout SeededRandom) throws {
        let rows = try context.rows(
            "SELECT id, code FROM badges WHERE code IS NOT NULL AND note GLOB ?",
            [.text(mark + "*")])
        guard rows.count > 1 else { return }
        let first = rows[random.below(rows.count)]
        let second = rows[random.below(rows.count)]
        guard let a = first["id"].flatMap({ RecordID($0) }), case .text(let codeA)? = first["code"],
            let b = second["id"].flatMap({ RecordID($0) }), case .text(let codeB)? = second["code"],
            a != b
        else { return }
        try context.update("badges", a, ["code": .null])
        try context.update("badges", b, ["code": .text(codeA), "note": .text(token)])
        try context.update("badges", a, ["code": .text(codeB), "note": .text(token)])
    }

    private func any(
        _ type: String, _ context: WriteContext, _ random: inout SeededRandom
    ) throws -> RecordID? {
        let column = ["badges": "note", "notes": "body", "members": "note"][type] ?? "name"
        let rows = try context.rows(
            "SELECT id FROM \(type) WHERE \(column) GLOB ? ORDER BY id", [.text(mark + "*")])
        return random.pick(rows)?["id"].flatMap { RecordID($0) }
    }
}
