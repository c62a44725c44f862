import MartletStore

/// The area “screenings”: health checks and their numbers.
public struct ScreeningsCenter: DataCenter {
    public let database: any DatabaseAccess
    private let screenings = Screenings()
    private let measurements = Measurements()
    private let players = Players()
    private let staff = Staff()
    private let teams = Teams()

    public init(database: any DatabaseAccess) {
        self.database = database
    }

    /// A screening with all that belongs to it.
    public struct Sheet: Hashable, Sendable {
        public let screening: Screening
        public let examiner: String?
        public let measurements: [Measurement]
    }

    /// Records a screening with its numbers: one save over three tables. Whether the player may be
    /// screened at all is looked after by a hook, so that no other way of writing passes it.
    /// - Throws: `OrganisationError` where there is no such player or nothing was measured;
    ///   `StoreError` `.vetoed` where the parents have not agreed.
    @discardableResult
    public func record(
        _ screening: Screening, by examiner: String, _ numbers: [Measurement]
    ) async throws -> RecordID {
        guard !numbers.isEmpty else {
            throw OrganisationError("A screening has at least one number; give --measure.")
        }
        return try await writing { context in
            guard try players.exists(screening.player, in: context) else {
                throw OrganisationError.noPlayer(screening.player)
            }
            var screening = screening
            screening.staff =
                try staff.named(examiner, in: context)?.id
                ?? staff.insert(StaffMember(name: examiner), in: context)
            let id = try screenings.insert(screening, in: context)
            try measurements.insert(
                contentsOf: numbers.map { number in
                    var number = number
                    number.screening = id
                    return number
                }, in: context)
            return id
        }
    }

    /// A player's screenings, newest first.
    public func sheets(of player: RecordID) async throws -> [Sheet] {
        try await reading { context in
            try screenings.of(player: player, in: context).map { screening in
                Sheet(
                    screening: screening,
                    examiner: try screening.staff.flatMap {
                        try staff.find($0, in: context)?.name
                    },
                    measurements: try screening.id.map {
                        try measurements.of(screening: $0, in: context)
                    } ?? [])
            }
        }
    }

    /// Players of a team who may be screened and have not been since a day.
    /// - Parameter day: “2026-03-14”.
    public func due(in team: String, since day: String) async throws -> [Player] {
        try await reading { context in
            guard let id = try teams.named(team, in: context)?.id else {
                throw OrganisationError.noTeam(team)
            }
            let recent = screenings.where(screenings.heldOn >= day).select(screenings.player)
            return try players.where(
                players.team == id && players.hasConsent == true && !players.id.in(recent)
            ).ordered(by: players.name.ascending).fetch(in: context)
        }
    }
}
