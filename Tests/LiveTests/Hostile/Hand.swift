import Martlet
import MartletModel
import SocketTalk

/// A person at a device who saves all the time, each time records that are theirs alone, and knows
/// what must be there in the end.
actor Hand {
    private struct Team: Sendable {
        let id: RecordID
        let name: String
        var city: String
        var code: String?
        var players: [(id: RecordID, name: String)]
    }

    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, code TEXT UNIQUE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT NOT NULL
        );
        CREATE TABLE tags (id TEXT PRIMARY KEY NOT NULL, note TEXT);
        """

    private let client: MartletClient
    private let name: String
    private var chance: Chance
    private var teams: [Team] = []
    private var tags: [String: String] = [:]
    private var made = 0
    private(set) var saves = 0
    private let tell: @Sendable (String) -> Void

    init(
        _ client: MartletClient, name: String, chance: Chance,
        tell: @escaping @Sendable (String) -> Void
    ) {
        (self.client, self.name, self.chance, self.tell) = (client, name, chance, tell)
    }

    /// Saves until the time is over.
    func work(until end: ContinuousClock.Instant, pause: Int) async throws {
        while ContinuousClock.now < end {
            try await save()
            try await Task.sleep(for: .milliseconds(chance.roll(1...pause)))
        }
    }

    /// Makes one or two saves of some kind.
    func save() async throws {
        saves += 1
        switch chance.roll(0...11) {
        case 0, 1: try await makeTeam()
        case 2: try await editTeam()
        case 3: try await deleteTeam()
        case 4: try await remakeTeam(inOneSave: true)
        case 5: try await remakeTeam(inOneSave: false)
        case 6: try await swapCodes()
        case 7: try await moveCode()
        case 8: try await movePlayer()
        case 9: try await putTag()
        case 10: try await remakeTag(inOneSave: true)
        default: try await remakeTag(inOneSave: false)
        }
    }

    /// The rows that are this person's, as `rows(of:)` tells them.
    var rows: [String] {
        teams.map { "team|\($0.name)|\($0.city)|\($0.code ?? "-")" }
            + teams.flatMap { team in team.players.map { "player|\($0.name)|\(team.name)" } }
            + tags.map { "tag|\($0.key)|\($0.value)" }
    }

    /// The rows on a device, in order.
    static func rows(of client: MartletClient) async throws -> [String] {
        try await client.read { context in
            try context.rows(
                """
                SELECT 'team|' || name || '|' || city || '|' || coalesce(code, '-') AS line FROM teams
                UNION ALL
                SELECT 'player|' || p.name || '|' || t.name FROM players p JOIN teams t ON t.id = p.team
                UNION ALL SELECT 'tag|' || id || '|' || note FROM tags
                """
            ).compactMap { try $0.value("line", as: String.self) }
        }.sorted()
    }

    // MARK: - Saves

    private func freeCode() -> String? {
        let taken = Set(teams.compactMap(\.code))
        return (0..<6).map { "\(name)-c\($0)" }.filter { !taken.contains($0) }.randomElement(
            using: &chance)
    }

    private func newName(_ what: String) -> String {
        made += 1
        return "\(name)-\(what)\(made)"
    }

    private func text() -> String {
        chance.percent(6) ? chance.noise(chance.roll(5_000...60_000)) : chance.noise(9)
    }

    private func anyIndex() -> Int? {
        teams.isEmpty ? nil : chance.roll(0...teams.count - 1)
    }

    private func makeTeam(code: String? = nil, without old: RecordID? = nil) async throws {
        let (team, city, code) = (newName("t"), text(), code ?? freeCode())
        let players = (0..<chance.roll(0...3)).map { _ in newName("p") }
        let (id, ids) = try await client.write { context in
            if let old { try context.delete("teams", old) }
            let id = try context.insert(
                "teams",
                ["name": .text(team), "city": .text(city), "code": code.map { .text($0) } ?? .null])
            let ids = try players.map {
                try context.insert("players", ["team": id.sqlValue, "name": .text($0)])
            }
            return (id, ids)
        }
        tell("\(name) made \(team) \(id) with \(code ?? "-")")
        teams.append(
            Team(
                id: id, name: team, city: city, code: code,
                players: Array(zip(ids, players).map { (id: $0, name: $1) })))
    }

    private func editTeam() async throws {
        guard let index = anyIndex() else { return try await makeTeam() }
        let (id, city) = (teams[index].id, text())
        try await client.write { try $0.update("teams", id, ["city": .text(city)]) }
        tell("\(name) edited \(teams[index].name)")
        teams[index].city = city
    }

    private func deleteTeam() async throws {
        guard let index = anyIndex() else { return }
        let id = teams[index].id
        try await client.write { try $0.delete("teams", id) }
        tell("\(name) deleted \(teams[index].name)")
        teams.remove(at: index)
    }

    private func remakeTeam(inOneSave: Bool) async throws {
        guard let index = anyIndex() else { return }
        let old = teams[index]
        guard inOneSave else {
            try await deleteTeam(at: index)
            return try await makeTeam(code: old.code)
        }
        tell("\(name) makes \(old.name) anew")
        teams.remove(at: index)
        try await makeTeam(code: old.code, without: old.id)
    }

    private func deleteTeam(at index: Int) async throws {
        let id = teams[index].id
        try await client.write { try $0.delete("teams", id) }
        tell("\(name) deleted \(teams[index].name)")
        teams.remove(at: index)
    }

    private func swapCodes() async throws {
        guard teams.count > 1 else { return try await makeTeam() }
        let indices = teams.indices.shuffled(using: &chance).prefix(2)
        let (one, two) = (teams[indices[0]], teams[indices[1]])
        let codes = [one.code, two.code].map { code in code.map { SQLValue.text($0) } ?? .null }
        try await client.write { context in
            try context.update("teams", one.id, ["code": .null])
            try context.update("teams", two.id, ["code": codes[0]])
            try context.update("teams", one.id, ["code": codes[1]])
        }
        tell("\(name) swapped \(one.name) and \(two.name)")
        teams[indices[0]].code = two.code
        teams[indices[1]].code = one.code
    }

    private func moveCode() async throws {
        guard teams.count > 1 else { return try await makeTeam() }
        let indices = teams.indices.shuffled(using: &chance).prefix(2)
        let (one, two) = (teams[indices[0]], teams[indices[1]])
        let code = one.code.map { SQLValue.text($0) } ?? .null
        // In two saves, and the value comes back.
        try await client.write { try $0.update("teams", one.id, ["code": .null]) }
        try await client.write { try $0.update("teams", two.id, ["code": code]) }
        tell("\(name) moved a code from \(one.name) to \(two.name)")
        teams[indices[0]].code = nil
        teams[indices[1]].code = one.code
    }

    private func movePlayer() async throws {
        guard
            let from = teams.indices.filter({ !teams[$0].players.isEmpty }).randomElement(
                using: &chance),
            let to = anyIndex()
        else { return }
        let player = teams[from].players.removeLast()
        let team = teams[to].id
        try await client.write { try $0.update("players", player.id, ["team": team.sqlValue]) }
        tell("\(name) moved \(player.name) to \(teams[to].name)")
        teams[to].players.append(player)
    }

    private func putTag() async throws {
        let (key, note) = ("\(name)-k\(chance.roll(0...3))", text())
        let isThere = tags[key] != nil
        try await client.write { context in
            if isThere {
                try context.update("tags", .text(key), ["note": .text(note)])
            } else {
                try context.insert("tags", ["note": .text(note)], id: key)
            }
        }
        tell("\(name) put \(key)")
        tags[key] = note
    }

    private func remakeTag(inOneSave: Bool) async throws {
        guard let key = tags.keys.sorted().randomElement(using: &chance) else {
            return try await putTag()
        }
        let note = text()
        if inOneSave {
            try await client.write { context in
                try context.delete("tags", .text(key))
                try context.insert("tags", ["note": .text(note)], id: key)
            }
        } else {
            try await client.write { try $0.delete("tags", .text(key)) }
            tags[key] = nil
            try await client.write { try $0.insert("tags", ["note": .text(note)], id: key) }
        }
        tell("\(name) made \(key) anew, in \(inOneSave ? "one save" : "two")")
        tags[key] = note
    }
}
