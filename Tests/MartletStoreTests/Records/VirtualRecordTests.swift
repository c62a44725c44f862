import Foundation
import MartletModel
import MartletStore
import Testing

/// The cases of the founding document: records that are no image of a table.
@Suite("Virtual records")
struct VirtualRecordTests {
    /// A form's field group: it knows the name only.
    private final class NameView: Record {
        var text: String?

        init(_ text: String? = nil) { self.text = text }

        func dictionaryRepresentation(columns: TableColumns, table: String) -> RecordValues {
            columns.filter(RecordValues(names: ["name"], values: [text.sqlValue]))
        }

        func fill(from values: RecordValues) throws {
            if let value = values["name"] { text = try String?(sqlValue: value) }
        }
    }

    /// Another one, that knows where a team plays.
    private struct CityView: Record {
        var city: String?

        func dictionaryRepresentation(columns: TableColumns, table: String) -> RecordValues {
            columns.filter(RecordValues(names: ["city"], values: [city.sqlValue]))
        }

        mutating func fill(from values: RecordValues) throws {
            if let value = values["city"] { city = try String?(sqlValue: value) }
        }
    }

    /// One object that is a row in two tables, under other names in each.
    private struct Signing: Record {
        var team = ""
        var player = ""

        func dictionaryRepresentation(columns: TableColumns, table: String) -> RecordValues {
            switch table {
            case "teams": RecordValues(names: ["name"], values: [.text(team)])
            case "players": RecordValues(names: ["name"], values: [.text(player)])
            default: RecordValues()
            }
        }

        mutating func fill(from values: RecordValues) throws {}
    }

    /// One type that shows rows of any table that has names.
    private struct Label: Codable, Hashable, ReadableRecord {
        var name: String
        var city: String?
    }

    private let teams = League.teams

    @Test("several objects make one record")
    func manyToOne() async throws {
        let league = try await League()
        let row = try await league.pool.write { (context) throws in
            let name = NameView("Wrens")
            var all = RecordValues()
            try all.merge(name)
            try all.merge(CityView(city: "Tromsø"))
            let id = try League.teams.insert(all, in: context)
            return try League.teams.find(id, as: Label.self, in: context)
        }
        #expect(row == Label(name: "Wrens", city: "Tromsø"))
    }

    @Test("one object expresses rows of several tables")
    func oneToMany() async throws {
        let league = try await League()
        let signing = Signing(team: "Wrens", player: "Flo")
        let counts = try await league.pool.write { (context) throws in
            try League.teams.insert(signing, in: context)
            try League.players.insert(signing, in: context)
            return [
                try League.teams.count(where: League.teams.name == "Wrens", in: context),
                try League.players.count(where: League.players.name == "Flo", in: context),
            ]
        }
        #expect(counts == [1, 1])
    }

    @Test("one type is shown from several tables")
    func oneTypeManyTables() async throws {
        let league = try await League()
        let labels = try await league.pool.read { context in
            try League.teams.all(as: Label.self, where: League.teams.id == 1, in: context)
                + League.players.all(as: Label.self, where: League.players.id == 1, in: context)
        }
        #expect(labels == [Label(name: "Larks", city: "Oslo"), Label(name: "Ada", city: nil)])
    }

    @Test("a view that exists already is filled, and writes back what it knows")
    func views() async throws {
        let league = try await League()
        let city = try await league.pool.write { (context) throws in
            var view = NameView("before")
            #expect(try League.teams.fill(&view, from: 1, in: context))
            #expect(view.text == "Larks")
            #expect(try !League.teams.fill(&view, from: 99, in: context))
            view.text = "Skylarks"
            var row = RecordValues(names: ["id"], values: [1])
            try row.merge(view)
            #expect(try League.teams.update(row, in: context))
            return try League.teams.find(1, in: context)
        }
        #expect(city == League.Team(id: 1, name: "Skylarks", city: "Oslo"))
    }

    // MARK: - Merging

    /// Each of: own value, other's value, outcome without override, outcome with override.
    @Test(
        "merge fills nulls from either side without override, and takes everything with it",
        arguments: [
            (nil, nil, nil, nil), ("own", nil, "own", nil), (nil, "other", "other", "other"),
            ("own", "other", "own", "other"),
        ] as [(String?, String?, String?, String?)])
    func merging(own: String?, other: String?, kept: String?, taken: String?) throws {
        let team = League.Team(id: 1, name: "Larks", city: own)
        let view = CityView(city: other)
        var one = team
        try one.merge(view)
        #expect(one == League.Team(id: 1, name: "Larks", city: kept))
        var two = team
        try two.merge(view, shouldOverride: true)
        #expect(two == League.Team(id: 1, name: "Larks", city: taken))
        // The default is without override; the argument stays as it was.
        #expect(try team.merging(view) == one)
        #expect(view.city == other)
        let object = NameView(own)
        try object.merge(NameView(other))
        #expect(object.text == kept)
        let second = NameView(own)
        try second.merge(NameView(other), shouldOverride: true)
        #expect(second.text == taken)
    }

    @Test("what the other does not have stays, and what this one does not know is left")
    func externalNames() throws {
        var team = League.Team(id: 1, name: "Larks", city: "Oslo")
        try team.merge(NameView("Other"), shouldOverride: true)
        #expect(team == League.Team(id: 1, name: "Other", city: "Oslo"))
        let view = NameView("Mine")
        try view.merge(team, shouldOverride: true)
        #expect(view.text == "Other")
        var values = RecordValues(names: ["name"], values: ["a"])
        try values.merge(RecordValues(names: ["extra"], values: [1]))
        #expect(values == RecordValues(names: ["name", "extra"], values: ["a", 1]))
    }

    @Test("merge gives back the receiver, so that merges chain")
    func chaining() throws {
        let view = NameView(nil)
        let same = try view.merge(NameView(nil)).merge(NameView("first")).merge(NameView("second"))
        #expect(same === view)
        #expect(view.text == "first")
        let last = try view.merge(NameView("a"), shouldOverride: true)
            .merge(NameView(nil), shouldOverride: true)
        #expect(last.text == nil)
        let team = try League.Team(id: 1, name: "Larks").merging(CityView(city: "Oslo"))
            .merging(CityView(city: "Bergen")).merging(NameView("Terns"), shouldOverride: true)
        #expect(team == League.Team(id: 1, name: "Terns", city: "Oslo"))
    }

    @Test("a merge that does not suit is refused and changes nothing")
    func refusal() {
        var team = League.Team(id: 1, name: "Larks", city: nil)
        #expect(throws: StoreError.self) {
            try team.merge(
                RecordValues(names: ["name"], values: [.null]), shouldOverride: true)
        }
        #expect(team.name == "Larks")
    }
}
