import Foundation
import MartletStore
import Testing

@Suite("Predicates")
struct PredicateTests {
    typealias Player = League.Player

    private func names(_ league: League, _ predicate: Predicate<Player>) async throws -> [String] {
        try await league.pool.read { context in
            try League.players.all(
                matching: predicate, orderBy: [League.players.id.ascending], in: context
            ).map(\.name)
        }
    }

    /// What the database finds must be what Swift finds.
    @Test("mean in the database what they mean in Swift", arguments: 0..<predicates.count)
    func agreement(index: Int) async throws {
        let league = try await League()
        let predicate = Self.predicates[index]
        let expected = try await league.pool.read { context in
            try League.players.all(orderBy: [League.players.id.ascending], in: context)
        }.filter { try predicate.evaluate($0) }
        #expect(try await names(league, predicate) == expected.map(\.name))
        let count = try await league.pool.read { context in
            try League.players.count(matching: predicate, in: context)
        }
        #expect(count == expected.count)
    }

    private static let limit = 4
    private static let shirts: [Int?] = [3, 9, nil]
    private static let many = Array(0..<50)
    private static let nobody: Int? = nil

    static let predicates: [Predicate<Player>] = [
        #Predicate { $0.score > limit && $0.name.contains("a") },
        #Predicate { $0.score <= 0 || $0.name == "Ada" },
        #Predicate { !($0.shirt == nil) },
        #Predicate { $0.shirt != nil },
        #Predicate { $0.shirt == 7 },
        #Predicate { $0.shirt != 7 },
        #Predicate { $0.shirt == nobody },
        #Predicate { !($0.shirt == 7) },
        #Predicate { $0.teamID == $0.captainID },
        #Predicate { $0.teamID != $0.shirt },
        #Predicate { $0.isCaptain },
        #Predicate { !$0.isCaptain && $0.height < 1.9 },
        #Predicate { ($0.shirt ?? 0) < 5 },
        #Predicate { $0.name.starts(with: "A") },
        #Predicate { $0.name.contains("%") },
        #Predicate { $0.name.starts(with: "Eve*[") },
        #Predicate { (0...10).contains($0.score) },
        #Predicate { (0..<10).contains($0.score) },
        #Predicate { shirts.contains($0.shirt) },
        #Predicate { many.contains($0.score) },
        #Predicate { $0.score + 1 > $0.score * 2 - 4 },
        #Predicate { -$0.score > 0 },
        #Predicate { $0.isCaptain ? $0.score == 10 : $0.score == 5 },
        #Predicate { _ in true },
        #Predicate { _ in false },
        #Predicate { 5 < $0.score },
        #Predicate { $0.name.isEmpty || $0.score == 5 },
        #Predicate { !$0.name.isEmpty },
    ]

    @Test("combine with conditions, orders and limits; find the first")
    func combined() async throws {
        let league = try await League()
        let captains = #Predicate<Player> { $0.isCaptain }
        let (some, first) = try await league.pool.read { context in
            let players = League.players
            return (
                try players.where(players.condition(captains) && players.score > 10)
                    .select(players.name).fetch(in: context),
                try players.first(
                    matching: captains, orderBy: [players.score.descending], in: context)
            )
        }
        #expect(some == ["dan_50%"])
        #expect(first?.name == "dan_50%")
    }

    @Test("use indexes, and hold values apart")
    func sql() async throws {
        let league = try await League()
        let condition = try League.players.condition(#Predicate { $0.name == "'; --" })
        #expect(condition.fragment.sql == "(\"name\" = ?)")
        #expect(condition.fragment.arguments == ["'; --"])
        let plan = try await league.pool.read { context in
            try League.players.where(condition).plan(in: context)
        }
        #expect(plan.first?.contains("USING INDEX players_name") == true)
    }

    @Test("are refused by name where the database cannot do it")
    func refusalsOfPredicates() throws {
        func refusal(_ predicate: Predicate<Player>) -> StoreError? {
            do {
                _ = try League.players.condition(predicate)
                return nil
            } catch {
                return error as? StoreError
            }
        }
        let count = refusal(#Predicate { $0.name.count > 3 })
        #expect(count?.kind == .statement)
        #expect(count?.message.contains("count") == true)
        let unwrapped = refusal(#Predicate { if let shirt = $0.shirt { shirt > 3 } else { false } })
        #expect(unwrapped?.message.contains("OptionalFlatMap") == true)
        #expect(refusal(#Predicate { $0.shirt! > 3 })?.message.contains("forced") == true)
        let column = refusal(#Predicate { $0.name.contains($0.name) })
        #expect(column?.message.contains("given text") == true)
    }

    @Test("are refused where no column shows the property, naming it")
    func unknownProperty() {
        let bare = PlainTable("players", of: Player.self, columns: [League.players.score])
        do {
            _ = try bare.condition(#Predicate { $0.name == "Ada" })
            Issue.record("must be refused")
        } catch {
            let error = error as? StoreError
            #expect(error?.kind == .unknown)
            #expect(error?.message.contains("name") == true)
            #expect(error?.message.contains("score") == true)
        }
    }
}
