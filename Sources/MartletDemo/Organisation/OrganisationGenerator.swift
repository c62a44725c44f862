import MartletModel
import RandomKit

/// Makes the tables of an `Organisation`, one function for each type.
struct OrganisationGenerator {
    private var random: SplitMix64
    private let size: OrganisationSize

    init(random: SplitMix64, size: OrganisationSize) {
        self.random = random
        self.size = size
    }

    mutating func tables() -> [GeneratedTable] {
        [
            regions(), clubs(), memberships(), venues(), seasons(), teams(), players(),
            teamPlayers(), staff(), teamStaff(), screens(), screenItems(), screenInstances(),
            screenInstanceItems(), sessions(), attendances(), notes(),
        ]
    }

    // MARK: - Drawing

    private mutating func pick<Element>(_ list: [Element]) -> Element {
        list[Int.random(in: 0..<list.count, using: &random)]
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &random)
    }

    private mutating func chance(_ percent: Int) -> Bool {
        number(1...100) <= percent
    }

    /// Returns a key of a table of `count` records.
    private mutating func reference(_ count: Int) -> Value {
        .integer(Int64(number(1...count)))
    }

    private mutating func orNull(_ percent: Int, _ value: Value) -> Value {
        chance(percent) ? .null : value
    }

    /// Returns a decimal with one digit after the point, so that its text is short.
    private mutating func tenths(_ range: ClosedRange<Int>) -> Value {
        .real(Double(number(range)) / 10)
    }

    private mutating func date(years: ClosedRange<Int>) -> String {
        "\(number(years))-\(twoDigits(number(1...12)))-\(twoDigits(number(1...28)))"
    }

    private mutating func moment(years: ClosedRange<Int>) -> Value {
        let day = date(years: years)
        return .text("\(day)T\(twoDigits(number(8...20))):\(twoDigits(number(0...59))):00Z")
    }

    private func twoDigits(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }

    private mutating func table(
        _ type: String, _ columns: [String], count: Int,
        row: (inout OrganisationGenerator, Int) -> [Value]
    ) -> GeneratedTable {
        var rows: [[Value]] = []
        rows.reserveCapacity(count)
        for id in stride(from: 1, through: count, by: 1) {
            rows.append([.integer(Int64(id))] + row(&self, id))
        }
        return GeneratedTable(type: type, columns: ["id"] + columns, rows: rows)
    }

    // MARK: - Places and clubs

    /// Makes the regions. The first few are the country's parts, and each other one lies in one of
    /// them.
    private mutating func regions() -> GeneratedTable {
        let roots = min(4, size.regions)
        return table("regions", ["parent_id", "name", "code"], count: size.regions) { make, id in
            let parent: Value = id <= roots ? .null : make.reference(roots)
            let name = id <= roots ? ["North", "East", "South", "West"][id - 1] : "District \(id)"
            return [parent, .text(name), .text("R\(id)")]
        }
    }

    private mutating func clubs() -> GeneratedTable {
        table("clubs", ["region_id", "name", "founded", "email"], count: size.clubs) { make, id in
            let place = make.pick(Vocabulary.places)
            return [
                make.reference(make.size.regions),
                .text("\(place) \(make.pick(Vocabulary.mascots))"),
                make.orNull(10, .integer(Int64(make.number(1880...2020)))),
                make.orNull(20, .text("club\(id)@example.org")),
            ]
        }
    }

    /// Makes the coaches' memberships, each in another club of the same coach.
    private mutating func memberships() -> GeneratedTable {
        table(
            "memberships", ["person", "club_id", "remark"], count: size.memberships
        ) { make, id in
            let (round, coach) = (id - 1).quotientAndRemainder(dividingBy: make.size.coaches)
            let club = (coach * 7 + round) % make.size.clubs + 1
            return [
                .text(OrganisationRules.coach(coach + 1)), .integer(Int64(club)),
                make.secret(make.pick(Vocabulary.ageGroups), "memberships", id),
            ]
        }
    }

    /// Returns a text that no other record has, which shows in any file that has the record.
    private func secret(_ text: String, _ type: String, _ id: Int) -> Value {
        .text("\(text) \(Canary.text(type, id))")
    }

    private mutating func venues() -> GeneratedTable {
        table(
            "venues", ["region_id", "name", "surface", "latitude", "longitude"],
            count: size.venues
        ) { make, id in
            [
                make.reference(make.size.regions),
                .text("\(make.pick(Vocabulary.places)) DataSources \(id)"),
                .text(make.pick(Vocabulary.surfaces)), make.tenths(350...600),
                make.tenths(-100...300),
            ]
        }
    }

    private mutating func seasons() -> GeneratedTable {
        table("seasons", ["name", "starts_on", "ends_on"], count: size.seasons) { _, id in
            let year = 2022 + id
            return [
                .text("\(year)/\(year + 1 - 2000)"), .text("\(year)-08-01"),
                .text("\(year + 1)-06-30"),
            ]
        }
    }

    private mutating func teams() -> GeneratedTable {
        table(
            "teams", ["club_id", "season_id", "name", "age_group", "fee", "points"],
            count: size.teams
        ) { make, id in
            [
                make.reference(make.size.clubs), make.reference(make.size.seasons),
                .text("\(make.pick(Vocabulary.mascots)) \(id)"),
                .text(make.pick(Vocabulary.ageGroups)),
                make.orNull(15, .text("\(make.number(20...180)).\(make.pick(["50", "00", "25"]))")),
                .integer(Int64(make.number(0...60))),
            ]
        }
    }

    // MARK: - People

    private mutating func players() -> GeneratedTable {
        table(
            "players",
            [
                "club_id", "first_name", "last_name", "born_on", "height_cm", "weight_kg",
                "is_active",
            ], count: size.players
        ) { make, id in
            [
                make.reference(make.size.clubs), .text(make.pick(Vocabulary.firstNames)),
                make.secret(make.pick(Vocabulary.lastNames), "players", id),
                .text(make.date(years: 2008...2018)),
                make.orNull(8, .integer(Int64(make.number(110...190)))),
                make.orNull(12, make.tenths(200...850)), .boolean(make.chance(93)),
            ]
        }
    }

    private mutating func teamPlayers() -> GeneratedTable {
        table(
            "team_players", ["team_id", "player_id", "shirt_number", "position", "joined_on"],
            count: size.teamPlayers
        ) { make, _ in
            [
                make.reference(make.size.teams), make.reference(make.size.players),
                make.orNull(10, .integer(Int64(make.number(1...99)))),
                make.orNull(5, .text(make.pick(Vocabulary.positions))),
                .text(make.date(years: 2023...2025)),
            ]
        }
    }

    private mutating func staff() -> GeneratedTable {
        table(
            "staff", ["club_id", "first_name", "last_name", "role", "phone"], count: size.staff
        ) { make, _ in
            [
                make.reference(make.size.clubs), .text(make.pick(Vocabulary.firstNames)),
                .text(make.pick(Vocabulary.lastNames)), .text(make.pick(Vocabulary.roles)),
                make.orNull(30, .text("555-01\(make.twoDigits(make.number(0...99)))")),
            ]
        }
    }

    private mutating func teamStaff() -> GeneratedTable {
        table(
            "team_staff", ["team_id", "staff_id", "is_head"], count: size.teamStaff
        ) { make, _ in
            [
                make.reference(make.size.teams), make.reference(make.size.staff),
                .boolean(make.chance(40)),
            ]
        }
    }

    // MARK: - Screens

    private mutating func screens() -> GeneratedTable {
        table("screens", ["name", "description", "version"], count: size.screens) { make, id in
            let name = make.pick(Vocabulary.screens)
            return [
                .text("\(name) \(id)"),
                make.orNull(40, .text("\(name), \(make.pick(Vocabulary.ageGroups)) and older.")),
                .integer(Int64(make.number(1...4))),
            ]
        }
    }

    /// Makes the items of the screens. The items of a screen have consecutive keys: screen *s* has
    /// items (s-1)·k+1 … s·k.
    private mutating func screenItems() -> GeneratedTable {
        table(
            "screen_items", ["screen_id", "name", "unit", "sort_order", "lowest", "highest"],
            count: size.screenItems
        ) { make, id in
            let perScreen = make.size.itemsPerScreen
            let (name, unit) = make.pick(Vocabulary.items)
            return [
                .integer(Int64(min((id - 1) / perScreen + 1, make.size.screens))), .text(name),
                .text(unit), .integer(Int64((id - 1) % perScreen + 1)), make.tenths(0...100),
                make.tenths(200...999),
            ]
        }
    }

    private mutating func screenInstances() -> GeneratedTable {
        table(
            "screen_instances", ["screen_id", "player_id", "staff_id", "taken_at", "comment"],
            count: size.screenInstances
        ) { make, id in
            [
                .integer(Int64(make.screen(ofInstance: id))), make.reference(make.size.players),
                make.orNull(10, make.reference(make.size.staff)), make.moment(years: 2023...2026),
                make.secret(make.pick(Vocabulary.remarks), "screen_instances", id),
            ]
        }
    }

    private func screen(ofInstance id: Int) -> Int {
        (id &* 7_919) % size.screens + 1
    }

    private mutating func screenInstanceItems() -> GeneratedTable {
        let perScreen = size.itemsPerScreen
        return table(
            "screen_instance_items",
            ["screen_instance_id", "screen_item_id", "value", "is_passed"],
            count: size.screenInstances * perScreen
        ) { make, id in
            let instance = (id - 1) / perScreen + 1
            let screen = make.screen(ofInstance: instance)
            return [
                .integer(Int64(instance)),
                .integer(Int64((screen - 1) * perScreen + (id - 1) % perScreen + 1)),
                make.orNull(4, make.tenths(0...999)), make.orNull(15, .boolean(make.chance(80))),
            ]
        }
    }

    // MARK: - Daily work

    private mutating func sessions() -> GeneratedTable {
        table(
            "sessions", ["team_id", "venue_id", "kind", "starts_at", "minutes"],
            count: size.sessions
        ) { make, _ in
            [
                make.reference(make.size.teams), make.orNull(5, make.reference(make.size.venues)),
                .text(make.pick(Vocabulary.sessionKinds)), make.moment(years: 2023...2026),
                .integer(Int64(make.number(4...10) * 15)),
            ]
        }
    }

    private mutating func attendances() -> GeneratedTable {
        table(
            "attendances", ["session_id", "player_id", "status", "load"], count: size.attendances
        ) { make, _ in
            [
                make.reference(make.size.sessions), make.reference(make.size.players),
                .text(make.pick(Vocabulary.attendance)),
                make.orNull(25, .integer(Int64(make.number(1...10)))),
            ]
        }
    }

    private mutating func notes() -> GeneratedTable {
        table("notes", ["player_id", "staff_id", "written_at", "body"], count: size.notes) {
            make, id in
            [
                make.reference(make.size.players),
                make.orNull(10, make.reference(make.size.staff)), make.moment(years: 2023...2026),
                make.secret(make.pick(Vocabulary.remarks), "notes", id),
            ]
        }
    }
}
