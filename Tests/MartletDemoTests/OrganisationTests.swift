import MartletDemo
import MartletModel
import Testing

@Suite("The generated organisation")
struct OrganisationTests {
    @Test("the same seed gives the same records, another seed others")
    func deterministic() {
        let first = Organisation(seed: 1, size: .small)
        #expect(first.tables == Organisation(seed: 1, size: .small).tables)
        #expect(first.tables != Organisation(seed: 2, size: .small).tables)
    }

    @Test("has as many records as its size says, and about 110,000 in full")
    func countsOfRecords() {
        #expect(Organisation(seed: 3, size: .small).recordCount == OrganisationSize.small.total)
        #expect((105_000...115_000).contains(OrganisationSize.full.total))
    }

    @Test("every reference points at a record of a table that stands before, or earlier in its own")
    func referencesOfOrganisation() throws {
        let tables = Organisation(seed: 4, size: .small).tables
        let targets = [
            "parent_id": "regions", "region_id": "regions", "club_id": "clubs",
            "season_id": "seasons", "team_id": "teams", "player_id": "players",
            "staff_id": "staff", "screen_id": "screens", "venue_id": "venues",
            "screen_instance_id": "screen_instances", "screen_item_id": "screen_items",
            "session_id": "sessions",
        ]
        var seen: [String: Int] = [:]
        var checked = 0
        for table in tables {
            seen[table.type] = 0
            for row in table.rows {
                for (column, value) in zip(table.columns, row) where column.hasSuffix("_id") {
                    let target = try #require(targets[column], "\(column)")
                    guard case .integer(let key) = value else { continue }
                    #expect(key >= 1 && Int(key) <= seen[target] ?? 0)
                    checked += 1
                }
                seen[table.type, default: 0] += 1
            }
        }
        #expect(checked > 500)
    }

    @Test("each screening has the items of its own screen")
    func screenings() throws {
        let tables = Organisation(seed: 5, size: .small).tables
        func rows(_ type: String) throws -> [[Value]] {
            try #require(tables.first { $0.type == type }).rows
        }
        let screenOfItem = Dictionary(
            uniqueKeysWithValues: try rows("screen_items").map { ($0[0], $0[1]) })
        let screenOfInstance = Dictionary(
            uniqueKeysWithValues: try rows("screen_instances").map { ($0[0], $0[1]) })
        for row in try rows("screen_instance_items") {
            #expect(screenOfInstance[row[1]] == screenOfItem[row[2]])
        }
    }
}
