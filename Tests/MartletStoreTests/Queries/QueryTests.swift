import Foundation
import MartletStore
import Testing

@Suite("Queries")
struct QueryTests {
    private struct Line: Codable, Hashable, ReadableRecord {
        var name: String
        var teamName: String?
    }

    @Test("filter, order, limit and leave out")
    func basics() async throws {
        let league = try await League()
        let players = League.players
        let query = players.query().filter(players.score >= 0).filter(players.score < 20)
            .ordered(by: players.shirt.descending.nullsFirst, players.name.ascending)
        #expect(try await query.fetch(in: league.pool).map(\.name) == ["Bo", "Ada", "Cleo"])
        let page = query.limited(to: 1, offset: 1)
        #expect(try await page.fetch(in: league.pool).map(\.name) == ["Ada"])
        #expect(try await page.count(in: league.pool) == 1)
        #expect(try await query.limited(to: nil, offset: 2).count(in: league.pool) == 1)
        #expect(try await query.count(in: league.pool) == 3)
        #expect(try await query.first(in: league.pool)?.name == "Bo")
        #expect(try await query.limited(to: 0).first(in: league.pool) == nil)
        let (isEmpty, names) = try await league.pool.read { context in
            var names: [String] = []
            try query.forEach(in: context) { names.append($0.name) }
            return (try query.filter(.never).isEmpty(in: context), names)
        }
        #expect(isEmpty)
        #expect(names == ["Bo", "Ada", "Cleo"])
        let folded = players.query().ordered(by: players.name.ignoringCase.ascending)
        #expect(
            try await folded.select(players.name).fetch(in: league.pool) == [
                "Ada", "Bo", "Cleo", "dan_50%", "Eve*[x]",
            ])
    }

    @Test("select one column, tuples and records; each different row once")
    func selections() async throws {
        let league = try await League()
        let players = League.players
        let shirts = players.query().ordered(by: players.shirt.ascending)
            .select(players.shirt).distinct()
        #expect(try await shirts.fetch(in: league.pool) == [nil, 3, 7])
        #expect(try await shirts.count(in: league.pool) == 3)
        let pairs = players.where(players.score > 5).select(players.name, players.score + 1)
        let found = try await league.pool.read { context in
            try pairs.fetch(in: context).map { "\($0.0) \($0.1)" }
        }
        #expect(found == ["Ada 11", "dan_50% 21"])
        let lines = players.where(players.score > 5)
            .select(as: Line.self, players.name, players.shirt.named("teamName"))
        #expect(
            try await lines.fetch(in: league.pool) == [
                Line(name: "Ada", teamName: "7"), Line(name: "dan_50%", teamName: "7"),
            ])
    }

    @Test("can be printed, values apart")
    func printed() {
        let players = League.players
        let query = players.where(players.name == "Ada").ordered(by: players.id.descending)
            .limited(to: 3)
        #expect(
            query.sql
                == "SELECT * FROM \"players\" WHERE (\"name\" = ?) ORDER BY \"id\" DESC LIMIT ?")
        #expect(query.arguments == ["Ada", 3])
    }

    @Test("join tables, columns named by table where both have them")
    func joins() async throws {
        let league = try await League()
        let player = League.players.named("player")
        let team = League.teams.named("team")
        let inner = player.query().join(team, on: player.teamID == team.id)
            .filter(team.city == "Oslo").ordered(by: player.id.ascending)
            .select(player.name, team.name)
        let found = try await league.pool.read { context in
            try inner.fetch(in: context).map { "\($0.0) \($0.1)" }
        }
        #expect(found == ["Ada Larks", "Bo Larks"])
        let outer = player.query().leftJoin(team, on: player.teamID == team.id)
            .ordered(by: player.id.ascending)
            .select(as: Line.self, player.name, team.name.optional.named("teamName"))
        #expect(
            try await outer.fetch(in: league.pool).map(\.teamName) == [
                "Larks", "Larks", "Swifts", "Swifts", nil,
            ])
        // The base table's records, whole, and with something besides.
        let records = player.query().join(team, on: player.teamID == team.id)
            .filter(team.city.isNull)
        #expect(try await records.fetch(in: league.pool).map(\.name) == ["Cleo", "dan_50%"])
        let added = records.adding(team.name.named("teamName"), as: Line.self)
        #expect(try await added.fetch(in: league.pool).map(\.teamName) == ["Swifts", "Swifts"])
        #expect(try await records.count(in: league.pool) == 2)
        let captain = League.players.named("captain")
        let pairs = player.query().join(captain, on: player.captainID == captain.id)
            .ordered(by: player.id.ascending).select(captain.name)
        #expect(try await pairs.fetch(in: league.pool) == ["Ada", "dan_50%"])
        // A column only one of them has needs no name.
        let short = League.players.query().join(
            League.teams, on: League.players.teamID == League.teams.named().id
        ).filter(League.teams.city == "Oslo")
        #expect(try await short.count(in: league.pool) == 2)
    }

    @Test("group, and judge groups by their aggregates")
    func groups() async throws {
        let league = try await League()
        let players = League.players
        let query = players.query().grouped(by: players.teamID)
            .having(ComputedColumn<Int>.rowCount > 1).ordered(by: players.teamID.ascending)
            .select(
                players.teamID, players.score.sum(), players.score.max(), players.shirt.min(),
                players.shirt.count(), ComputedColumn<Int>.rowCount)
        let rows = try await league.pool.read { context in
            try query.fetch(in: context).map { "\($0)" }
        }
        #expect(
            rows == [
                "(Optional(1), Optional(15), Optional(10), Optional(7), 1, 2)",
                "(Optional(2), Optional(20), Optional(20), Optional(3), 2, 2)",
            ])
        #expect(try await query.count(in: league.pool) == 2)
    }

    @Test("aggregate all rows, or none")
    func aggregates() async throws {
        let league = try await League()
        let players = League.players
        let all = players.query().select(
            players.shirt.countDistinct(), players.score.total(), players.score.average(),
            players.shirt.sum(), players.name.min())
        let none = players.where(.never).select(
            players.shirt.countDistinct(), players.score.total(), players.score.average(),
            players.shirt.sum(), players.name.min())
        let (one, two) = try await league.pool.read { context in
            (
                try all.fetch(in: context).map { "\($0)" },
                try none.fetch(in: context).map { "\($0)" }
            )
        }
        #expect(one == ["(2, 32.0, Optional(6.4), Optional(17), Optional(\"Ada\"))"])
        #expect(two == ["(0, 0.0, nil, nil, nil)"])
        #expect(try await all.count(in: league.pool) == 1)
    }

    @Test("ask for rows by queries within")
    func subqueries() async throws {
        let league = try await League()
        let player = League.players.named("p")
        let team = League.teams.named("t")
        let staffed = team.where(
            .exists(player.where(player.teamID == team.id && player.score > 15)))
        #expect(try await staffed.fetch(in: league.pool).map(\.name) == ["Swifts"])
        let empty = team.where(!.exists(player.where(player.teamID == team.id)))
        #expect(try await empty.fetch(in: league.pool).map(\.name) == ["Terns"])
        let captains = League.players.where(League.players.isCaptain == true)
            .select(League.players.id)
        let led = League.players.where(League.players.captainID.in(captains))
        #expect(try await led.fetch(in: league.pool).map(\.name) == ["Bo", "Cleo"])
    }

    @Test("show their plan")
    func planOfQuery() async throws {
        let league = try await League()
        let plan = try await league.pool.read { context in
            try League.players.where(League.players.score == 1).plan(in: context)
        }
        #expect(plan == ["SCAN players"])
    }

    @Test("are refused before they run where a name is unknown, used twice or unclear")
    func refusalsOfNames() async throws {
        let league = try await League()
        let players = League.players
        let player = players.named("p")
        let team = League.teams.named("t")
        let ghost = Column<String>("ghost")
        let unknown: [Query<String>] = [
            players.query().select(ghost),
            players.query().ordered(by: ghost.ascending).select(players.name),
            players.query().grouped(by: ghost).select(players.name),
            players.query().grouped(by: players.name).having(ghost.max() == "a")
                .select(players.name),
            player.query().join(team, on: ghost == team.name).select(player.name),
            player.where(.exists(team.where(ghost == "x"))).select(player.name),
            player.query().select(team.name),
            PlainTable("nothing").query().select(players.name),
        ]
        for query in unknown {
            let error = try await league.refusal { context in try query.fetch(in: context) }
            #expect(error?.kind == .unknown, "\(query.sql)")
            #expect(error?.remedy == .correctTheProgram)
        }
        let unclear: [Query<String>] = [
            player.query().join(team, on: player.teamID == team.id).select(League.teams.name),
            team.where(.exists(player.where(players.teamID == League.teams.id)))
                .select(team.name),
            player.query().join(players.named("P"), on: .always).select(player.name),
        ]
        for query in unclear {
            let error = try await league.refusal { context in try query.fetch(in: context) }
            #expect(error?.kind == .misuse, "\(query.sql)")
        }
        let wrong = try await league.refusal { context in
            try players.query().select(Column<Int>("name")).fetch(in: context)
        }
        #expect(wrong?.kind == .value)
        #expect(wrong?.message.contains("“name”") == true)
    }

    @Test("make tables on first use, joined ones too")
    func firstUse() async throws {
        let league = try await League()
        let clubs = PlainTable("clubs", declaration: "CREATE TABLE clubs(team INTEGER)")
        let count = try await League.teams.query()
            .leftJoin(clubs, on: League.teams.id == Column<Int>("team")).count(in: league.pool)
        #expect(count == 3)
    }
}
