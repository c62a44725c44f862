internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import RandomKit
internal import SQLiteKit
internal import SmallWorlds

/// Events on devices and a server that chance picks, as often as told: how often each comes is of the
/// seed, so a history ten times as long is of the same kind.
struct RandomHistory {
    private var random: SplitMix64
    private let world: GrowingWorld
    private let devices: [SmallDevice]
    /// How often each event comes.
    private let weights: [(event: Event, weight: Int)]
    /// What comes once more at the end, each many times in a row.
    private let bursts: [Burst]
    /// The records that are edited most: a number, or a share of all.
    private var hot: Int?
    private var texts = 0
    /// Records that can still be given a value that cannot be sent: all such records are put back with each
    /// remote change, which is known, and would cost more than all else.
    private var unsendable = 5

    private enum Event: CaseIterable {
        case insert, insertChild, update, updateNew, delete, swap, large
        case foreign, externalUnsendable, outside, exchange, stream, decide, compact
    }

    /// An event that comes many times in a row, before the device exchanges and while an answer is on its way.
    private struct Burst {
        let event: Event
        let device: Int
        /// Whether all of it is about one record.
        let isOfOne: Bool
    }

    /// What a device can do by itself.
    private static let own: [Event] = [
        .insert, .insertChild, .update, .updateNew, .delete, .swap, .foreign,
    ]

    /// A history of some length.
    static func operation(seed: Int) -> Operation {
        var operation = Operation("history of seed \(seed)", size: 120, allowed: 16) {
            world, count in
            var history = try RandomHistory(seed: seed, world: world)
            // Events that are rare do not come ten times as often by chance.
            world.phase = "all of it"
            try history.run(count)
            for burst in history.bursts { try history.run(burst, count / 4) }
        }
        operation.isRandom = true
        return operation
    }

    private init(seed: Int, world: GrowingWorld) throws {
        random = SplitMix64(seed: UInt64(seed) &* 0x9e37_79b9_7f4a_7c15)
        self.world = world
        // Some events are frequent, most are rare, some never come.
        var weights: [(event: Event, weight: Int)] = []
        for event in Event.allCases {
            weights.append((event, [0, 1, 1, 3, 10, 30].randomElement(using: &random) ?? 1))
        }
        // Else the queue grows with the history, and all that comes may move all of it.
        weights.append((.exchange, 3))
        self.weights = weights
        // Drawn before all that depends on the length, so that both lengths have the same.
        var bursts: [Burst] = []
        for event in Self.own.shuffled(using: &random).prefix(2) {
            bursts.append(
                Burst(
                    event: event, device: Int.random(in: 0..<3, using: &random),
                    isOfOne: Bool.random(using: &random)))
        }
        self.bursts = bursts
        hot = [1, 3, nil, nil].randomElement(using: &random) ?? nil
        let author = try world.author(teams: 20, notes: 20)
        devices = [author, try world.device(), try world.device()]
        for device in devices { try world.sync(device) }
    }

    private mutating func run(_ count: Int) throws {
        let sum = weights.reduce(0) { $0 + $1.weight }
        for _ in 0..<count {
            var left = Int.random(in: 0..<max(1, sum), using: &random)
            guard
                let next = weights.first(where: { item in
                    left -= item.weight
                    return left < 0
                })
            else { return }
            try act(next.event)
        }
        for device in devices + devices { try exchange(device) }
    }

    /// One event many times in a row. Each part is counted apart: of these events there are ten times as many
    /// in the longer history.
    private mutating func run(_ burst: Burst, _ count: Int) throws {
        let device = devices[burst.device]
        let world = world
        let name = "many times \(burst.event)\(burst.isOfOne ? " of one" : "")"
        if burst.isOfOne { hot = 1 }
        world.phase = name + ", written"
        for _ in 0..<count { try act(burst.event, on: device) }
        var history = self
        var left = count
        device.whileAnswered = {
            while left > 0 {
                left -= 1
                try history.act(burst.event, on: device)
            }
        }
        defer { device.whileAnswered = {} }
        world.phase = name + ", exchanged"
        try exchange(device)
        self = history
        world.phase = name + ", fetched"
        for other in devices + devices { try exchange(other) }
    }

    private mutating func act(_ event: Event) throws {
        try act(event, on: devices[Int.random(in: 0..<devices.count, using: &random)])
    }

    private mutating func act(_ event: Event, on device: SmallDevice) throws {
        switch event {
        case .insert, .insertChild, .update, .updateNew, .delete, .swap, .large:
            try save(event, on: device)
        case .foreign: try foreign(on: device)
        case .externalUnsendable:
            guard unsendable > 0 else { return }
            unsendable -= 1
            try device.connection().execute(
                "UPDATE players SET score = 9e999 WHERE id = (SELECT max(id) FROM players)")
        case .outside:
            let number = Int.random(in: 1...20, using: &random)
            try world.outside("UPDATE teams SET city = 'o\(next())' WHERE id = \(number)")
            try world.count("taking in") { while try world.node.takeExternalWrites(now: 0) {} }
        case .exchange: try exchange(device)
        case .stream: try world.follow(device, otherwise: exchange)
        case .decide: try decide(on: device)
        case .compact: try world.count("compact") { world.server.compact() }
        }
    }

    private mutating func next() -> Int {
        texts += 1
        return texts
    }

    private func exchange(_ device: SmallDevice) throws {
        try world.count("exchange") { _ = try device.sync(with: world.server) }
    }

    // MARK: - Writing

    /// A record of a device's, one of the hot ones if there are such.
    private mutating func record(_ table: String, on device: SmallDevice, newest: Bool = false)
        throws
        -> Int64?
    {
        // What is looked for must not cost more in a larger table: some of it is counted with an exchange.
        let connection = try device.connection()
        guard let hot else {
            guard let least = try connection.integer("SELECT min(id) FROM \(table)"),
                let most = try connection.integer("SELECT max(id) FROM \(table)")
            else { return nil }
            let id = Int64.random(in: least...most, using: &random)
            return try connection.integer(
                "SELECT id FROM \(table) WHERE id >= \(id) ORDER BY id LIMIT 1")
        }
        let offset = Int.random(in: 0..<hot, using: &random)
        let order = newest ? "id" : "id DESC"
        let ordered = "SELECT id FROM \(table) ORDER BY \(order) LIMIT 1"
        return try connection.integer("\(ordered) OFFSET \(offset)") ?? connection.integer(ordered)
    }

    private mutating func save(_ event: Event, on device: SmallDevice) throws {
        let number = next()
        let team = try record("teams", on: device, newest: event == .updateNew)
        let other = try record("teams", on: device)
        do {
            try world.count("save") {
                try device.write { context in
                    switch event {
                    case .insert:
                        try context.insert("teams", ["name": "t", "parent_id": value(team)])
                    case .insertChild:
                        try context.insert("players", ["name": "p", "team_id": value(team)])
                    case .large:
                        for _ in 0..<20 { try context.insert("players", ["name": "p"]) }
                    case .delete: if let team { _ = try context.delete("teams", .integer(team)) }
                    case .swap:
                        guard let team, let other, team != other else { return }
                        try context.update("teams", .integer(team), ["rank": .null])
                        try context.update(
                            "teams", .integer(other), ["rank": .integer(Int64(10_000 + number))])
                    default:
                        guard let team else { return }
                        try context.update(
                            "teams", .integer(team), ["name": .text("t\(number)")])
                    }
                }
            }
        } catch is StoreError {
            // A unique value that somebody else has.
        }
    }

    private func value(_ id: Int64?) -> SQLValue { id.map { .integer($0) } ?? .null }

    private mutating func foreign(on device: SmallDevice) throws {
        let number = next()
        let program = try device.connection()
        try world.count("foreign") {
            try program.execute(
                """
                BEGIN;
                INSERT INTO players(id, name, score) VALUES (
                    (SELECT id FROM martlet_new_id), 'f\(number)', 1);
                UPDATE teams SET city = 'f\(number)' WHERE id = (SELECT max(id) FROM teams);
                COMMIT
                """)
        }
    }

    /// Decides one of the refused sets.
    private mutating func decide(on device: SmallDevice) throws {
        let connection = try device.connection()
        let first = try connection.text(
            "SELECT identifier FROM martlet_parked ORDER BY sequence LIMIT 1")
        guard let first else { return }
        let drops = Bool.random(using: &random)
        do {
            try world.count("decide") {
                if drops {
                    try device.store.drop(first, now: 1_000)
                } else {
                    try device.store.retry(first, now: 1_000)
                }
            }
        } catch is StoreError {
            try world.count("decide") { try device.store.drop(first, now: 1_000) }
        }
    }
}
