internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore
internal import RandomKit
internal import SQLiteKit
internal import SmallWorlds

/// A device that is used for years: its person edits a few records again and again, and what the file keeps
/// beside these does not grow with the years.
struct LongLife {
    let seed: Int
    private var random: SplitMix64
    private let world: GrowingWorld
    private let device: SmallDevice
    private let colleague: SmallDevice
    private var saves = 0

    /// Change sets after which a device keeps as much as it ever will.
    private static let grown = 10_500
    /// Change sets of a whole life.
    private static let old = 12_500
    /// Rows that a table may have gained: some are let go of a thousand at a time.
    private static let slack: Int64 = 1_100
    /// What is kept for ever, for each new record: a temporary id finds its record.
    private static let everlasting: Set<String> = ["martlet_ids"]

    init(seed: Int) throws {
        self.seed = seed
        random = SplitMix64(seed: UInt64(seed) &* 0x9e37_79b9_7f4a_7c15)
        world = try GrowingWorld()
        device = try world.author(teams: 3, notes: 3)
        colleague = try world.device()
        try device.store.mostKeptBytes = 0
        try world.sync(colleague)
    }

    /// - Returns: The tables that have grown, with their rows before and after.
    mutating func run() throws -> [String] {
        try live(until: Self.grown)
        let grown = try rows()
        try live(until: Self.old)
        return try rows().sorted { $0.key < $1.key }.compactMap { table, count in
            let before = grown[table] ?? 0
            guard count > before + Self.slack, !Self.everlasting.contains(table) else { return nil }
            return
                "\(table) had \(before) rows after \(Self.grown) saves, and \(count) after \(Self.old)"
        }
    }

    private mutating func live(until count: Int) throws {
        while saves < count {
            for _ in 0..<Int.random(in: 1...400, using: &random) { try save() }
            if Int.random(in: 0..<4, using: &random) == 0 {
                try colleague.write { [saves] in
                    try $0.update("teams", .integer(3), ["city": .text("c\(saves)")])
                }
                try world.sync(colleague)
            }
            try world.sync(device)
            for set in try device.store.parked() {
                try device.store.drop(set.identifier, now: 1_000)
            }
            if Int.random(in: 0..<8, using: &random) == 0 { world.server.compact() }
        }
        try world.sync(device)
    }

    private mutating func save() throws {
        saves += 1
        let number = saves
        let team = Int64.random(in: 1...3, using: &random)
        let note = RecordID.text("n\(Int.random(in: 0..<3, using: &random))")
        switch Int.random(in: 0..<20, using: &random) {
        case 0:
            // What comes and goes leaves nothing behind.
            let key = "once\(number % 5)"
            try device.write { context in
                if try !context.delete("notes", .text(key)) {
                    try context.insert("notes", ["body": "b"], id: key)
                }
            }
        case 1:
            try device.connection().execute(
                "UPDATE notes SET body = 'f\(number)' WHERE id = 'n0'")
        case 2..<8:
            try device.write { try $0.update("notes", note, ["body": .text("b\(number)")]) }
        default:
            try device.write {
                try $0.update("teams", .integer(team), ["name": .text("t\(number)")])
            }
        }
    }

    /// The number of rows of each of Martlet's tables in the device's file.
    private func rows() throws -> [String: Int64] {
        let connection = try device.connection()
        let names = try connection.prepare(
            """
            SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'martlet\\_%' ESCAPE '\\'
            """
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        var rows: [String: Int64] = [:]
        for name in names {
            rows[name] = try connection.integer("SELECT count(*) FROM \(name)") ?? 0
        }
        return rows
    }
}
