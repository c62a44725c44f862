import MartletStore

/// The area “teams”: which teams there are, who works for them, and when they meet.
public struct TeamsCenter: DataCenter {
    public let database: any DatabaseAccess
    private let teams = Teams()
    private let players = Players()
    private let staff = Staff()
    private let duties = Duties()
    private let events = Events()
    private let attendances = Attendances()

    public init(database: any DatabaseAccess) {
        self.database = database
    }

    /// A team with what a list shows of it.
    public struct Overview: Hashable, Sendable {
        public let team: Team
        public let players: Int
        public let staff: [String]
    }

    /// All teams with their sizes and staff, all of one moment.
    public func overview() async throws -> [Overview] {
        try await reading { context in try overview(in: context) }
    }

    func overview(in context: ReadContext) throws -> [Overview] {
        try teams.sorted(in: context).map { team in
            guard let id = team.id else { return Overview(team: team, players: 0, staff: []) }
            let assigned = try duties.of(team: id, in: context)
            let words = try assigned.compactMap { duty in
                try staff.find(duty.staff, in: context).map {
                    "\($0.name) (\(duty.kind.rawValue))"
                }
            }
            return Overview(
                team: team, players: try players.count(where: players.team == id, in: context),
                staff: words.sorted())
        }
    }

    /// Founds a team together with its coach, who is taken on where nobody of the name works here.
    /// - Throws: `OrganisationError` where there is a team of that name.
    @discardableResult
    public func found(_ team: Team, coach: String) async throws -> RecordID {
        try await writing { context in
            if try teams.named(team.name, in: context) != nil {
                throw OrganisationError(
                    "There is a team “\(team.name)” already; choose another name.")
            }
            let id = try teams.insert(team, in: context)
            try assign(coach, to: id, as: .coach, in: context)
            return id
        }
    }

    /// Gives a member of the staff a duty in a team; somebody new is taken on.
    /// - Throws: `OrganisationError` where there is no such team.
    public func assign(_ name: String, to team: String, as kind: Duty.Kind) async throws {
        try await writing { context in
            guard let id = try teams.named(team, in: context)?.id else {
                throw OrganisationError.noTeam(team)
            }
            try assign(name, to: id, as: kind, in: context)
        }
    }

    private func assign(
        _ name: String, to team: RecordID, as kind: Duty.Kind, in context: WriteContext
    ) throws {
        let member =
            try staff.named(name, in: context)?.id
            ?? staff.insert(StaffMember(name: name), in: context)
        let same = try duties.of(team: team, in: context).contains {
            $0.staff == member && $0.kind == kind
        }
        guard !same else { return }
        try duties.insert(
            Duty(team: team, staff: member, kind: kind), in: context)
    }

    /// Plans an event and asks for all of the team's players: one save, however many they are.
    /// - Throws: `OrganisationError` where there is no such team.
    @discardableResult
    public func plan(_ title: String, on day: String, for team: String) async throws -> RecordID {
        try await writing { context in
            guard let id = try teams.named(team, in: context)?.id else {
                throw OrganisationError.noTeam(team)
            }
            let event = try events.insert(Event(team: id, title: title, day: day), in: context)
            let asked = try players.of(team: id, in: context).compactMap(\.id).map {
                Attendance(event: event, player: $0, wasThere: false)
            }
            try attendances.insert(contentsOf: asked, in: context)
            return event
        }
    }

    /// Notes who was at an event; everyone else who was asked for was not.
    /// - Throws: `OrganisationError` where somebody was not asked for.
    public func note(present: Set<RecordID>, at event: RecordID) async throws {
        try await writing { context in
            var left = present
            for var attendance in try attendances.of(event: event, in: context) {
                attendance.wasThere = left.remove(attendance.player) != nil
                try attendances.update(attendance, in: context)
            }
            guard left.isEmpty else {
                throw OrganisationError(
                    "\(left.count) of the players were not asked for at event \(event); leave them"
                        + " out, or plan the event again.")
            }
        }
    }

    /// A team's events, each with how many were there of how many asked for.
    public func events(
        of team: String
    ) async throws -> [(event: Event, present: Int, asked: Int)] {
        try await reading { context in
            guard let id = try teams.named(team, in: context)?.id else {
                throw OrganisationError.noTeam(team)
            }
            return try events.of(team: id, in: context).map { event in
                let asked = try event.id.map { try attendances.of(event: $0, in: context) } ?? []
                return (event, asked.count { $0.wasThere }, asked.count)
            }
        }
    }
}

extension OrganisationError {
    static func noTeam(_ name: String) -> OrganisationError {
        OrganisationError("There is no team “\(name)”; “teams” lists them.")
    }

    static func noPlayer(_ id: RecordID) -> OrganisationError {
        OrganisationError("There is no player \(id); “roster” lists them with their numbers.")
    }
}
