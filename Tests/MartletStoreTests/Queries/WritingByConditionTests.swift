import Foundation
import MartletModel
import MartletStore
import Synchronization
import Testing

@Suite("Writing by condition")
struct WritingByConditionTests {
    private let players = League.players

    @Test("updates the rows that meet a condition, with values and with what is computed")
    func updateByCondition() async throws {
        let league = try await League()
        let count = try await league.pool.write { context in
            let players = League.players
            return try players.update(
                where: players.score > 4, set: players.score.set(to: players.score + 1),
                players.shirt.set(nil), players.captainID.set(to: players.score), in: context)
        }
        #expect(count == 3)
        #expect(try await league.names(players.score == 11) == ["Ada"])
        // Right-hand sides see the row as it was.
        #expect(try await league.names(players.captainID == 10) == ["Ada"])
        #expect(try await league.names(players.shirt == nil).count == 4)
        let all = try await league.pool.write { context in
            try League.players.updateAll(set: League.players.score.set(1), in: context)
        }
        #expect(all == 5)
        #expect(try await league.names(players.score == 1).count == 5)
    }

    @Test("deletes the rows that meet a condition")
    func delete() async throws {
        let league = try await League()
        let (one, rest) = try await league.pool.write { context in
            let players = League.players
            return (
                try players.delete(where: players.name.hasPrefix("A"), in: context),
                try players.deleteAll(in: context)
            )
        }
        #expect(one == 1)
        #expect(rest == 4)
        #expect(try await league.names(.always).isEmpty)
    }

    @Test("runs one statement where no hook watches, and one a row where one does")
    func statements() async throws {
        for isHooked in [false, true] {
            let writes = Mutex(0)
            var options = DatabaseOptions()
            if isHooked { options.hooks.before([.update, .delete], of: "players") { _, _ in } }
            options.trace = StatementTrace { run in
                guard run.sql.hasPrefix("UPDATE") || run.sql.hasPrefix("DELETE") else { return }
                writes.withLock { $0 += 1 }
            }
            let league = try await League(options)
            try await league.pool.write { context in
                let players = League.players
                try players.update(
                    where: players.score > 4, set: players.score.set(1), in: context)
                try players.delete(where: players.score == 1, in: context)
            }
            #expect(writes.withLock { $0 } == (isHooked ? 6 : 2))
            #expect(try await league.names(.always) == ["Cleo", "Eve*[x]"])
        }
    }

    @Test("tells hooks of each row, its key and its values, and follows what they change")
    func hooks() async throws {
        let heard = Mutex<[RowWrite]>([])
        var options = DatabaseOptions()
        options.hooks.before([.update], of: "players") { write, context in
            heard.withLock { $0.append(write) }
            // Bo is written before Cleo's turn: she no longer meets the condition.
            if write.key == .integer(2) {
                _ = try context.rows("UPDATE players SET score = 99 WHERE name = 'Cleo'")
            }
        }
        let league = try await League(options)
        let count = try await league.pool.write { context in
            let players = League.players
            return try players.update(
                where: players.score < 10, set: players.score.set(to: players.score * 2),
                players.shirt.set(4), in: context)
        }
        #expect(count == 2)
        let writes = heard.withLock { $0 }
        #expect(writes.map(\.key) == [.integer(2), .integer(5)])
        #expect(writes.map { $0.values?["score"] } == [.integer(10), .integer(-6)])
        #expect(writes.allSatisfy { $0.values?["shirt"] == .integer(4) })
        #expect(try await league.names(players.shirt == 4) == ["Bo", "Eve*[x]"])
    }

    @Test("a hook that throws refuses the whole save")
    func veto() async throws {
        var options = DatabaseOptions()
        options.hooks.before([.delete], of: "players") { write, _ in
            if write.key == .integer(4) { throw StoreError(.vetoed, "Captains stay.") }
        }
        let league = try await League(options)
        let error = try await league.refusal { context in
            try League.players.delete(where: League.players.score >= 0, in: context)
        }
        #expect(error?.kind == .vetoed)
        #expect(try await league.names(.always).count == 5)
    }

    @Test("refuses what the table does not have or cannot hold")
    func refusalsOfConditions() async throws {
        let league = try await League()
        let ghost = Column<Int>("ghost")
        let players = League.players
        let unknown: [@Sendable (WriteContext) throws -> Int] = [
            { try players.update(where: .always, set: ghost.set(1), in: $0) },
            { try players.update(where: ghost == 1, set: players.score.set(1), in: $0) },
            { try players.update(where: .always, set: players.score.set(to: ghost), in: $0) },
            { try players.delete(where: ghost == 1, in: $0) },
        ]
        for work in unknown {
            let error = try await league.refusal(work)
            #expect(error?.kind == .unknown)
            #expect(error?.message.contains("“ghost”") == true)
        }
        let computed = try await league.refusal {
            try players.updateAll(set: players.doubled.set(1), in: $0)
        }
        #expect(computed?.kind == .misuse)
        let twice = try await league.refusal {
            try players.updateAll(set: players.score.set(1), players.score.set(2), in: $0)
        }
        #expect(twice?.kind == .misuse)
        let wrongKind = try await league.refusal {
            try players.updateAll(set: Column<String>("score").set("many"), in: $0)
        }
        #expect(wrongKind?.kind == .value)
        let constraint = try await league.refusal {
            try players.updateAll(set: players.teamID.set(77), in: $0)
        }
        #expect(constraint?.kind == .constraint)
        #expect(try await league.names(players.score == 1).isEmpty)
    }

    @Test("works where the key is several columns, or none")
    func otherKeys() async throws {
        for isHooked in [false, true] {
            var options = DatabaseOptions()
            if isHooked { options.hooks.before([.update, .delete]) { _, _ in } }
            let league = try await League(options)
            let marks = PlainTable(
                "marks", declaration: "CREATE TABLE marks(a INT, b INT, n INT, PRIMARY KEY (a, b))")
            let bare = PlainTable("bare", declaration: "CREATE TABLE bare(n INTEGER)")
            let n = Column<Int>("n")
            let sums = try await league.pool.write { context in
                for number in 0..<4 {
                    let value = SQLValue.integer(Int64(number))
                    try marks.insert(
                        RecordValues(names: ["a", "b", "n"], values: [0, value, value]), in: context
                    )
                    try bare.insert(RecordValues(names: ["n"], values: [value]), in: context)
                }
                #expect(try marks.update(where: n > 1, set: n.set(to: n + 10), in: context) == 2)
                #expect(try bare.update(where: n > 1, set: n.set(to: n + 10), in: context) == 2)
                #expect(try marks.delete(where: n == 0, in: context) == 1)
                #expect(try bare.delete(where: n == 0, in: context) == 1)
                return [
                    try marks.query().select(n.sum()).first(in: context),
                    try bare.query().select(n.sum()).first(in: context),
                ]
            }
            #expect(sums == [26, 26])
        }
    }
}
