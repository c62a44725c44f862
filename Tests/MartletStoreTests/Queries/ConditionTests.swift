import Foundation
import MartletStore
import Testing

@Suite("Conditions")
struct ConditionTests {
    private let players = League.players

    @Test("compare with values")
    func valuesInConditions() async throws {
        let league = try await League()
        #expect(try await league.names(players.name == "Ada") == ["Ada"])
        #expect(try await league.names(players.score < 5) == ["Cleo", "Eve*[x]"])
        #expect(try await league.names(players.score <= 5) == ["Bo", "Cleo", "Eve*[x]"])
        #expect(try await league.names(players.score > 10) == ["dan_50%"])
        #expect(try await league.names(players.score >= 10) == ["Ada", "dan_50%"])
        #expect(try await league.names(players.isCaptain == true) == ["Ada", "dan_50%"])
        #expect(try await league.names(players.height > 1.85) == ["Bo"])
        #expect(try await league.names(players.score.between(0, and: 10)) == ["Ada", "Bo", "Cleo"])
        #expect(try await league.names(players.score.in(0...10)) == ["Ada", "Bo", "Cleo"])
        #expect(try await league.names(players.score.in(0..<10)) == ["Bo", "Cleo"])
    }

    @Test("treat null as a value when asked for equality, and as nothing otherwise")
    func nulls() async throws {
        let league = try await League()
        #expect(try await league.names(players.shirt == nil) == ["Bo", "Eve*[x]"])
        #expect(try await league.names(players.shirt != nil) == ["Ada", "Cleo", "dan_50%"])
        #expect(try await league.names(players.shirt != 7) == ["Bo", "Cleo", "Eve*[x]"])
        #expect(try await league.names(players.shirt < 7) == ["Cleo"])
        #expect(
            try await league.names(!(players.shirt < 7)) == ["Ada", "Bo", "dan_50%", "Eve*[x]"])
        #expect(try await league.names(!(players.shirt == 7)) == ["Bo", "Cleo", "Eve*[x]"])
        #expect(try await league.names(!players.shirt.in([7])) == ["Bo", "Cleo", "Eve*[x]"])
        let nothing: Int? = nil
        #expect(try await league.names(players.shirt == nothing) == ["Bo", "Eve*[x]"])
        #expect(try await league.names(players.shirt.isNull) == ["Bo", "Eve*[x]"])
    }

    @Test("compare columns with columns")
    func columnsWithColumns() async throws {
        let league = try await League()
        #expect(try await league.names(players.id == players.captainID) == [String]())
        #expect(try await league.names(players.score > players.doubled) == ["Eve*[x]"])
        #expect(try await league.names(players.score <= players.doubled).count == 4)
        #expect(try await league.names(players.score == players.doubled) == ["Cleo"])
        #expect(try await league.names(players.score == players.shirt) == [String]())
        // Both null: equal, as nil is in Swift.
        #expect(try await league.names(players.teamID == players.shirt) == ["Eve*[x]"])
        #expect(
            try await league.names(players.teamID != players.captainID) == [
                "Ada", "Cleo", "dan_50%",
            ])
        #expect(try await league.names(players.score + 1 > players.doubled) == ["Cleo", "Eve*[x]"])
    }

    @Test("find one of many values", arguments: [0, 1, 3, 8, 9, 5_000])
    func lists(length: Int) async throws {
        let league = try await League()
        let ids = (0..<length).map { Optional($0 + 2) }
        let expected = Array(["Bo", "Cleo", "dan_50%", "Eve*[x]"].prefix(length))
        #expect(try await league.names(players.id.in(ids)) == expected)
        #expect(try await league.names(!players.id.in(ids)).count == 5 - expected.count)
    }

    @Test("find one of many texts and numbers, each exactly")
    func exactLists() async throws {
        let league = try await League()
        let names = (0..<20).map { "none \($0)" } + ["dan_50%", "quote \" \\ \u{7} é"]
        try await league.pool.write { context in
            _ = try League.players.insert(
                League.Player(name: "quote \" \\ \u{7} é", height: 0.1 + 0.2), in: context)
        }
        #expect(try await league.names(players.name.in(names)) == ["dan_50%", names[21]])
        let heights = (0..<20).map(Double.init) + [0.1 + 0.2]
        #expect(try await league.names(players.height.in(heights)) == [names[21]])
        let shirts: [Int?] = [nil] + (0..<20).map { $0 }
        #expect(try await league.names(players.shirt.in(shirts)).count == 6)
        #expect(try await league.names(players.shirt.in([nil])).count == 3)
    }

    @Test("lists of every length are few statements")
    func listStatements() {
        let texts = (0..<200).map { length in
            players.score.in(Array(repeating: 1, count: length)).fragment.sql
        }
        #expect(Set(texts).count == 6)
        let bytes = Column<[UInt8]>("bytes")
        let binaries = (1...200).map { length in
            bytes.in((0..<length).map { [UInt8($0)] }).fragment.sql
        }
        #expect(Set(binaries).count == 9)
    }

    @Test("find binary values in a list")
    func binaryLists() async throws {
        let league = try await League()
        let files = PlainTable("files", declaration: "CREATE TABLE files(id INTEGER, bytes BLOB)")
        let bytes = Column<[UInt8]>("bytes")
        let count = try await league.pool.write { context in
            for number in 0..<30 {
                try files.insert(
                    RecordValues(dictionaryLiteral: ("bytes", .blob([UInt8(number)]))), in: context)
            }
            return try files.count(where: bytes.in((10..<50).map { [UInt8($0)] }), in: context)
        }
        #expect(count == 20)
    }

    @Test("look for text literally")
    func text() async throws {
        let league = try await League()
        #expect(try await league.names(players.name.contains("d")) == ["Ada", "dan_50%"])
        #expect(try await league.names(players.name.contains("D")) == [String]())
        #expect(try await league.names(players.name.contains("D", ignoringCase: true)).count == 2)
        #expect(try await league.names(players.name.contains("_")) == ["dan_50%"])
        #expect(
            try await league.names(players.name.contains("%", ignoringCase: true)) == ["dan_50%"])
        #expect(try await league.names(players.name.contains("")).count == 5)
        #expect(try await league.names(players.name.hasPrefix("A")) == ["Ada"])
        #expect(try await league.names(players.name.hasPrefix("a")) == [String]())
        #expect(try await league.names(players.name.hasPrefix("a", ignoringCase: true)) == ["Ada"])
        #expect(try await league.names(players.name.hasPrefix("Eve*[")) == ["Eve*[x]"])
        #expect(try await league.names(players.name.hasPrefix("E*")) == [String]())
        #expect(try await league.names(players.name.hasSuffix("0%")) == ["dan_50%"])
        #expect(try await league.names(players.name.hasSuffix("[x]")) == ["Eve*[x]"])
        #expect(
            try await league.names(players.name.hasSuffix("_%", ignoringCase: true)) == [String]())
        #expect(try await league.names(players.name.like("_o")) == ["Bo"])
        #expect(try await league.names(players.name.ignoringCase == "ADA") == ["Ada"])
    }

    @Test("combine")
    func combinations() async throws {
        let league = try await League()
        #expect(
            try await league.names(players.score > 0 && players.shirt == 7) == ["Ada", "dan_50%"])
        #expect(try await league.names(players.score < 0 || players.name == "Bo").count == 2)
        #expect(
            try await league.names(!(players.score < 0 || players.name == "Bo")).count == 3)
        #expect(try await league.names(.all(of: [])).count == 5)
        #expect(try await league.names(.any(of: [])).isEmpty)
        #expect(
            try await league.names(Condition(sql: "length(name) = ?", arguments: [.integer(3)]))
                == ["Ada"])
        #expect(
            try await league.names(
                players.isCaptain == true
                    && Condition(sql: "score = ? OR score = ?", arguments: [5, 20])) == ["dan_50%"])
    }

    @Test("hold values apart from the text")
    func valuesStayOut() {
        let evil = "'; DROP TABLE players; --"
        let condition =
            players.name == evil || players.name.contains(evil) || players.name.in([evil])
        #expect(!condition.fragment.sql.contains("DROP"))
        #expect(condition.fragment.arguments.count == 3)
        #expect(condition.fragment.arguments.allSatisfy { $0 == .text(evil) })
    }

    @Test("use indexes")
    func indexes() async throws {
        let league = try await League()
        let conditions = [
            players.name == "Ada", players.shirt == nil, players.name.hasPrefix("A"),
            players.shirt.in((0..<20).map { $0 }), players.shirt.between(1, and: 3),
        ]
        for condition in conditions {
            let plan = try await league.pool.read { context in
                try League.players.where(condition).plan(in: context)
            }
            #expect(plan.first?.contains("USING INDEX") == true, "\(plan)")
        }
    }

    @Test("are refused where a column is unknown, with what there is")
    func unknownColumns() async throws {
        let league = try await League()
        let ghost = Column<String>("ghost")
        let wrong: [Condition] = [
            ghost == "ghost", !(players.score > 1 && ghost.contains("g")), ghost.in(["a"]),
            players.name == ghost, ghost.of("players") == "x", ghost.ignoringCase == "x",
        ]
        for condition in wrong {
            let error = try await league.refusal { context in
                try League.players.all(where: condition, in: context)
            }
            #expect(error?.kind == .unknown)
            #expect(error?.message.contains("“ghost”") == true)
            #expect(error?.message.contains("teamID") == true)
        }
        let elsewhere = try await league.refusal { context in
            try League.players.all(where: League.teams.named().city == "Oslo", in: context)
        }
        #expect(elsewhere?.message.contains("“teams”") == true)
    }
}
