/// The number of records of each type in the generated organisation.
public struct OrganisationSize: Hashable, Sendable {
    public var regions = 24
    public var clubs = 80
    /// The number of coaches, and the number of their memberships in clubs.
    public var coaches = 8
    public var memberships = 16
    public var venues = 120
    public var seasons = 4
    public var teams = 640
    public var players = 9_000
    public var teamPlayers = 12_000
    public var staff = 900
    public var teamStaff = 1_400
    public var screens = 60
    public var screenItems = 600
    public var screenInstances = 4_200
    /// The mean number of results of a screening, which has one for each item of its screen.
    public var itemsPerScreen: Int { screens == 0 ? 0 : screenItems / screens }
    public var sessions = 3_000
    public var attendances = 30_000
    public var notes = 6_000

    /// The size of the demo's data, about 110,000 records.
    public static let full = OrganisationSize()

    /// A size for tests, with about a hundredth of the records.
    public static let small: OrganisationSize = {
        var size = OrganisationSize()
        size.regions = 4
        size.clubs = 4
        size.coaches = 3
        size.memberships = 3
        size.venues = 6
        size.seasons = 2
        size.teams = 12
        size.players = 90
        size.teamPlayers = 120
        size.staff = 12
        size.teamStaff = 16
        size.screens = 3
        size.screenItems = 18
        size.screenInstances = 40
        size.sessions = 30
        size.attendances = 300
        size.notes = 60
        return size
    }()

    /// The number of all records.
    public var total: Int {
        regions + clubs + memberships + venues + seasons + teams + players + teamPlayers + staff
            + teamStaff
            + screens + screenItems + screenInstances + screenInstances * itemsPerScreen + sessions
            + attendances + notes
    }
}
