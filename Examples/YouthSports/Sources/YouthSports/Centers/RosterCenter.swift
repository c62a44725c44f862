import Martlet

/// The area “roster”: who plays where.
public struct RosterCenter: DataCenter {
    public let database: any DatabaseAccess
    let players = Players()
    private let teams = Teams()

    public init(database: any DatabaseAccess) {
        self.database = database
    }

    /// A team's players, by name.
    /// - Throws: `OrganisationError` where there is no such team.
    public func roster(of team: String) async throws -> [Player] {
        try await reading { context in try roster(of: team, in: context) }
    }

    func roster(of team: String, in context: ReadContext) throws -> [Player] {
        guard let id = try teams.named(team, in: context)?.id else {
            throw OrganisationError.noTeam(team)
        }
        return try players.of(team: id, in: context)
    }

    /// A team's players over time: as they are now, and again whenever one of them may have changed,
    /// on this device or another.
    public func watch(team: String) -> DatabaseObservation<[Player]> {
        database.observe { context in try roster(of: team, in: context) }
    }

    /// Players whose name or notes hold all of the words, best first.
    public func search(_ words: String) async throws -> [Player] {
        try await reading { context in
            try players.search(words, in: context)
        }
    }

    /// Notes something about a player, below what is there.
    public func note(_ text: String, of id: RecordID) async throws {
        try await writing { context in
            guard var player = try players.find(id, in: context) else {
                throw OrganisationError.noPlayer(id)
            }
            player.notes += player.notes.isEmpty ? text : "\n\(text)"
            try players.update(player, in: context)
        }
    }

    /// Unsaved edits of a player, which hear of others' changes before these land.
    /// - Throws: `OrganisationError` where there is no such player.
    public func draft(of id: RecordID) async throws -> Draft<Player> {
        do {
            return try await database.draft(of: players, id)
        } catch let error as StoreError where error.kind == .unknown {
            throw OrganisationError.noPlayer(id)
        }
    }

    /// The columns of a player that this device's user may not change.
    public func locked(of id: RecordID) async throws -> [String] {
        try await reading { context in
            try ["name", "birthday", "shirt", "notes"].filter {
                try !context.may(.update, "players", id, [$0])
            }
        }
    }

    /// Signs a player for a team.
    /// - Throws: `OrganisationError` where there is no such team, or the shirt is taken.
    @discardableResult
    public func sign(_ player: Player, for team: String) async throws -> RecordID {
        try await writing { context in
            var player = player
            player.team = try checkedTeam(player, team: team, in: context)
            return try players.insert(player, in: context)
        }
    }

    /// Moves a player to another team, without the shirt where somebody there wears it.
    /// - Returns: The player as he is now.
    /// - Throws: `OrganisationError` where there is no such team or player.
    @discardableResult
    public func transfer(_ id: RecordID, to team: String) async throws -> Player {
        try await writing { context in
            guard var player = try players.find(id, in: context) else {
                throw OrganisationError.noPlayer(id)
            }
            guard let target = try teams.named(team, in: context)?.id else {
                throw OrganisationError.noTeam(team)
            }
            if let shirt = player.shirt,
                try players.wearing(shirt, team: target, in: context) != nil
            {
                player.shirt = nil
            }
            player.team = target
            try players.update(player, in: context)
            return player
        }
    }

    /// Merges two teams: all players of one move to the other, and the first one is dissolved.
    /// One save: there is no moment at which a player has no team.
    public func merge(_ team: String, into other: String) async throws -> Int {
        try await writing { context in
            guard let id = try teams.named(team, in: context)?.id else {
                throw OrganisationError.noTeam(team)
            }
            guard let target = try teams.named(other, in: context)?.id, target != id else {
                throw OrganisationError("A team is merged into another one; name two teams.")
            }
            let moving = try players.of(team: id, in: context)
            for var player in moving {
                player.team = target
                player.shirt = nil
                try players.update(player, in: context)
            }
            try teams.delete(id, in: context)
            return moving.count
        }
    }

    /// The parents' word on health checks.
    public func setConsent(_ hasConsent: Bool, of id: RecordID) async throws {
        try await writing { context in
            guard var player = try players.find(id, in: context) else {
                throw OrganisationError.noPlayer(id)
            }
            player.hasConsent = hasConsent
            try players.update(player, in: context)
        }
    }

    /// A player as a card: filled from two tables.
    public func card(of id: RecordID) async throws -> String {
        try await reading { context in
            var card = PlayerCard()
            guard try players.fill(&card, from: id, in: context) else {
                throw OrganisationError.noPlayer(id)
            }
            if let player = try players.find(id, in: context), let team = player.team,
                let name = try teams.find(team, in: context)?.name
            {
                try card.fill(from: ["team_name": .text(name)])
            }
            return card.text
        }
    }

    /// The team a player goes to.
    private func checkedTeam(
        _ player: Player, team: String, in context: ReadContext
    ) throws -> RecordID {
        guard let id = try teams.named(team, in: context)?.id else {
            throw OrganisationError.noTeam(team)
        }
        if let shirt = player.shirt,
            let wearer = try players.wearing(shirt, team: id, in: context)
        {
            throw OrganisationError(
                "Shirt \(shirt) of “\(team)” is worn by player \(wearer.id ?? .integer(0));"
                    + " choose another.")
        }
        return id
    }
}
