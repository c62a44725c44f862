import MartletModel
import MartletStore
import RandomKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests two devices that change different records of the same tables at the same time.
@Suite("Saves that nobody else touches")
struct UndisturbedTests {
    /// Makes a save of the second device, with one or two of the deeds in which records hand values
    /// on.
    private static func save(_ context: WriteContext, _ random: inout SplitMix64) throws {
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            switch Int.random(in: 0..<9, using: &random) {
            case 0, 1: try insert(context, shirt: Int64.random(in: 0..<40, using: &random))
            case 2, 3: try exchange(context, &random)
            case 4:
                guard let (id, shirt) = try player(context, &random) else { continue }
                try context.delete("players", id)
                try context.insert("players", ["name": "successor", "shirt": shirt])
            case 5:
                guard let (_, shirt) = try player(context, &random) else { continue }
                _ = try context.rows(
                    """
                    INSERT OR REPLACE INTO players(id, name, shirt)
                    SELECT id, 'replaced', ? FROM martlet_new_id
                    """, [shirt])
            default: try toggle(context, &random)
            }
        }
    }

    private static func insert(_ context: WriteContext, shirt: Int64) throws {
        let taken = try context.rows("SELECT 1 FROM players WHERE shirt = ?", [.integer(shirt)])
        if taken.isEmpty { try context.insert("players", ["name": "p", "shirt": .integer(shirt)]) }
    }

    private static func player(
        _ context: WriteContext, _ random: inout SplitMix64
    ) throws -> (RecordID, SQLValue)? {
        let rows = try context.rows("SELECT id, shirt FROM players ORDER BY id")
        guard let row = rows.randomElement(using: &random),
            let id = row["id"].flatMap({ RecordID($0) }),
            case .integer(let shirt)? = row["shirt"]
        else { return nil }
        return (id, .integer(shirt))
    }

    private static func exchange(_ context: WriteContext, _ random: inout SplitMix64) throws {
        guard let (first, one) = try player(context, &random),
            let (second, other) = try player(context, &random), first != second
        else { return }
        try context.update("players", first, ["shirt": .null])
        try context.update("players", second, ["shirt": one])
        // This is a swap, or a value that moves on and is replaced by a new one.
        let new = Int64.random(in: 1_000...1_000_000_000, using: &random)
        let isSwap = Bool.random(using: &random)
        try context.update("players", first, ["shirt": isSwap ? other : .integer(new)])
    }

    private static func toggle(_ context: WriteContext, _ random: inout SplitMix64) throws {
        let key = "k\(Int.random(in: 0..<4, using: &random))"
        if try context.rows("SELECT 1 FROM notes WHERE id = ?", [.text(key)]).isEmpty {
            try context.insert("notes", ["body": "made"], id: key)
        } else if Bool.random(using: &random) {
            try context.update("notes", .text(key), ["body": "changed"])
        } else {
            try context.delete("notes", .text(key))
        }
    }

    @Test("are never refused, whatever others do elsewhere meanwhile", arguments: 1...12)
    func never(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed) &* 7_919)
        let world = try SmallWorld("undisturbed-\(seed)")
        let (first, second) = (try world.device(), try world.device())
        // Other records had these keys before.
        for key in 0..<4 {
            try first.write { try $0.insert("notes", ["body": "old"], id: "k\(key)") }
        }
        try first.sync(with: world.server)
        try first.write { _ = try $0.rows("DELETE FROM notes") }
        try first.sync(with: world.server)
        try second.sync(with: world.server)
        for step in 0..<25 {
            // A deletion moves all waiting sets.
            try first.write { context in
                try context.insert("teams", ["name": "t\(step)"])
                _ = try context.rows(
                    "DELETE FROM teams WHERE id > 0 AND name <> ?", [.text("t\(step)")])
            }
            try first.sync(with: world.server)
            for _ in 0..<Int.random(in: 0..<3, using: &random) {
                try second.write { try Self.save($0, &random) }
            }
            try second.sync(with: world.server) { store in
                guard Int.random(in: 0..<2, using: &random) == 0, try store.outboxCount < 6 else {
                    return
                }
                try store.write(now: 1_000) { try Self.save($0, &random) }
            }
            #expect(try second.store.parked().map(\.message) == [], "step \(step)")
            #expect(try first.store.parked().isEmpty)
        }
        try second.sync(with: world.server)
        try first.sync(with: world.server)
        #expect(try second.store.outboxCount == 0)
        #expect(try first.store.shownState() == second.store.shownState())
    }
}
