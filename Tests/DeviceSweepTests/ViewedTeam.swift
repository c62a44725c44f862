import Foundation
import MartletModel
import MartletProtocol
import MartletRules
import MartletStore
import RandomKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

/// Real devices of people who see a part of the data set; from a seed.
struct ViewedTeam {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        CREATE TABLE members(id INTEGER PRIMARY KEY, name TEXT, team INTEGER REFERENCES teams(id));
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, name TEXT, fee INTEGER, team INTEGER REFERENCES teams(id));
        CREATE TABLE words(id TEXT PRIMARY KEY NOT NULL, name TEXT, fee INTEGER);
        """
    private static let types = ["teams", "members", "players", "words"]
    private static let people = ["ann", "bob", "cyd"]

    private static let office = """
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY office ON words TO office USING (true);
        """
    private static let rules = [
        """
        CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
        CREATE POLICY every ON members USING (true);
        CREATE POLICY teams ON players USING (team IN (SELECT id FROM teams)) WITH CHECK (true);
        CREATE POLICY cheap ON words USING (fee < 5) WITH CHECK (true);
        """ + office,
        """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY cheap ON players USING (fee > 3 OR martlet_role('treasurer')) WITH CHECK (true);
        CREATE POLICY of_team ON members
            USING (EXISTS (SELECT 1 FROM teams WHERE teams.id = team AND owner = martlet_user()))
            WITH CHECK (true);
        """ + office,
        """
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY every ON members FOR SELECT USING (true);
        CREATE POLICY mine ON members USING (team IN (SELECT id FROM teams))
            WITH CHECK (EXISTS (SELECT 1 FROM teams WHERE teams.id = team AND name IS NOT NULL));
        CREATE POLICY teams ON players
            USING (team IN (SELECT id FROM teams) OR martlet_role('treasurer') AND fee > 4);
        CREATE POLICY add ON players FOR INSERT WITH CHECK (fee <> 3);
        CREATE POLICY every ON words USING (true);
        CREATE POLICY cheap ON words AS RESTRICTIVE FOR UPDATE TO PUBLIC USING (fee < 7)
            WITH CHECK (fee < 5 OR martlet_role('treasurer'));
        GRANT SELECT, INSERT, UPDATE (name, team) ON members TO PUBLIC;
        GRANT DELETE ON members TO treasurer;
        GRANT ALL ON members TO office;
        """ + office,
    ]

    /// A device and its user.
    private struct Seat {
        let device: SmallDevice
        var principal: Principal
        /// The names that may be in the device's file: of records that it was shown, and its own.
        var heard: Set<String> = []
        /// The names that its user gave.
        var own: Set<String> = []
    }

    private let world: SmallWorld
    /// The names of words on the server: of those that are there, and of deleted ones with the same keys.
    private var (present, former): ([RecordID: Set<String>], [RecordID: Set<String>]) = ([:], [:])
    private var seats: [Seat] = []
    private var random: SplitMix64
    private var rules: Int?
    private var number = 0
    private(set) var moved = 0
    /// The saves whose verdicts of device and server were compared, and those that both refused.
    private(set) var judged = 0
    private(set) var refusedEarly = 0
    /// The steps so far.
    private var story: [String] = []

    init(seed: UInt64) throws {
        random = SplitMix64(seed: seed)
        world = try SmallWorld(DiskName.next("viewed"), script: Self.script)
        for index in 0..<4 {
            let device = try world.device(script: Self.script)
            seats.append(Seat(device: device, principal: Principal(name: "p\(index)")))
            seats[index].principal = person(index)
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    /// The first is the office.
    private mutating func person(_ index: Int) -> Principal {
        var roles = index == 0 || below(6) == 0 ? ["office"] : []
        if below(3) == 0 { roles.append("treasurer") }
        return Principal(name: "p\(index)", user: Self.people[index % 3], roles: roles)
    }

    mutating func step() throws {
        let index = below(seats.count)
        let kind = below(16)
        story.append("\(index): \(kind)")
        switch kind {
        case 0..<5: try save(0)
        case 5..<8: try save(index)
        case 8: try judge(index)
        case 9: if index > 0 { seats[index].principal = person(index) }
        case 10:
            rules = below(5) == 0 ? nil : below(Self.rules.count)
            try secure()
        case 11:
            if below(2) == 0 { world.server.compact() }
            world.server.close()
            try world.server.open()
            try secure()
        case 12 where below(4) == 0:
            try seats[index].device.beginRefetching(script: Self.script)
        case 13: try exchange(index, lost: 1 + below(3))
        case 14: try remake(1 + 2 * below(2))
        default: try settle(index)
        }
    }

    mutating func end() throws {
        for index in seats.indices { try settle(index) }
        for index in seats.indices { try settle(index) }
    }

    private func secure() throws {
        let schema = try #require(world.server.node).schema
        world.server.node?.policies = try rules.map {
            try RulesProgram(Self.rules[$0], schema: schema)
        }
    }

    // MARK: - Saves

    private mutating func save(_ index: Int) throws {
        _ = try save(index, by: deed(index), judges: below(2) == 0)
    }

    /// Saves, unless the device knows that the user may not.
    private func save(
        _ index: Int, by deed: (WriteContext) throws -> Void, judges: Bool
    ) throws -> StoreError? {
        let store = try seats[index].device.store
        store.judgesSaves = judges
        do {
            try store.write(now: 0, deed)
        } catch let error as StoreError where error.kind == .permission {
            return error
        }
        return nil
    }

    /// Saves on a device that has all that its user may see, and expects that the device and the server
    /// agree whether he may.
    private mutating func judge(_ index: Int) throws {
        try settle(index)
        let deed = deed(index)
        let refusal = try save(index, by: deed, judges: true)
        if refusal != nil { #expect(try save(index, by: deed, judges: false) == nil) }
        judged += 1
        try exchange(index)
        let parked = try seats[index].device.store.parked()
        let story = "\(seats[index].principal), rules \(rules ?? -1), \(parked)"
        if let refusal {
            refusedEarly += 1
            #expect(!parked.isEmpty, "\(refusal.debugDescription): \(story)")
        } else {
            #expect(!parked.contains { $0.reason == .permission }, "\(story)")
        }
    }

    /// Makes a save of random values.
    private mutating func deed(_ index: Int) -> (WriteContext) throws -> Void {
        let type = Self.types[below(4)]
        number += 1
        let name = "canary\(number)x"
        seats[index].heard.insert(name)
        seats[index].own.insert(name)
        let freed = freedKeys()
        let key = freed.isEmpty || below(2) == 0 ? "w\(number)" : freed[below(freed.count)]
        let (fee, owner, team) = (below(9), Self.people[below(3)], below(4) == 0 ? nil : below(9))
        let (kind, skipped, number) = (below(4), below(6), number)
        return { context in
            let ids = try context.rows("SELECT id FROM \(type) ORDER BY id").compactMap { $0["id"] }
            let teams = try context.rows("SELECT id FROM teams ORDER BY id").compactMap { $0["id"] }
            func value(_ column: String) -> SQLValue {
                switch column {
                case "name": .text(name)
                case "fee": .integer(Int64(fee))
                case "owner": .text(owner)
                default: team.flatMap { teams.isEmpty ? nil : teams[$0 % teams.count] } ?? .null
                }
            }
            let other = ["teams": "owner", "members": "team", "players": "fee", "words": "fee"][
                type]
            let columns = ["name", other ?? "name"] + (type == "players" ? ["team"] : [])
            if kind == 0 || ids.isEmpty {
                var values = RecordValues()
                for column in columns { values[column] = value(column) }
                let isTaken = ids.contains(.text(key))
                let id = type == "words" ? isTaken ? "w\(number)" : key : nil
                _ = try context.insert(type, values, id: id)
            } else {
                let id = ids[skipped % ids.count]
                if kind == 1, type != "teams" {
                    try context.prepare("DELETE FROM \(type) WHERE id = ?").run([id])
                } else {
                    let list = columns.map { "\($0) = ?" }.joined(separator: ", ")
                    try context.prepare("UPDATE \(type) SET \(list) WHERE id = ?")
                        .run(columns.map(value) + [id])
                }
            }
        }
    }

    /// Returns the keys of deleted words, in order.
    private func freedKeys() -> [String] {
        former.keys.filter { present[$0] == nil }.map(\.description).sorted()
    }

    /// Has somebody change a word, and the office delete it and make another one with its key meanwhile.
    private mutating func remake(_ index: Int) throws {
        try exchange(0)
        let words = try seats[0].device.connection().prepare("SELECT id FROM words ORDER BY id")
            .rows { (row) throws(SQLiteError) in row.text(0) }
        guard !words.isEmpty else { return }
        let (key, fee) = (words[below(words.count)], below(5))
        func name(_ index: Int) -> String {
            number += 1
            seats[index].heard.insert("canary\(number)x")
            seats[index].own.insert("canary\(number)x")
            return "canary\(number)x"
        }
        let (mine, new) = (name(index), name(0))
        _ = try save(
            index,
            by: { context in
                try context.prepare("UPDATE words SET name = ? WHERE id = ?")
                    .run([.text(mine), .text(key)])
            }, judges: false)
        _ = try save(
            0, by: { try $0.prepare("DELETE FROM words WHERE id = ?").run([.text(key)]) },
            judges: false)
        try exchange(0)
        let count = "SELECT count(*) FROM words WHERE id = '\(key)'"
        guard try seats[0].device.connection().integer(count) == 0 else { return }
        _ = try save(
            0,
            by: {
                _ = try $0.insert(
                    "words", ["name": .text(new), "fee": .integer(Int64(fee))], id: key)
            }, judges: false)
        try exchange(0)
    }

    /// Notes which words the server has.
    private mutating func noteWords() throws {
        var names: [RecordID: String] = [:]
        let rows = try world.server.connection().prepare("SELECT id, name FROM words")
        while try rows.step() { names[.text(rows.text(0))] = rows.text(1) }
        for (id, old) in present where names[id] == nil {
            former[id, default: []].formUnion(old)
            present[id] = nil
        }
        for (id, name) in names { present[id, default: []].insert(name) }
    }

    // MARK: - Exchanges

    private mutating func exchange(_ index: Int, lost: Int = 0) throws {
        let seat = seats[index]
        world.server.sender = seat.principal
        if index % 2 == 0 { try seat.device.store.mostKeptBytes = 0 }
        try seat.device.sync(with: world.server, lost: lost)
        if lost == 0 { #expect(seat.device.errors.isEmpty, "\(seat.device.errors)") }
        try noteWords()
        // A person who sees everything gets former values, too: the log's entries.
        let isWhole = world.server.node?.feed.views.showsEverything(to: seat.principal) == true
        let heard = isWhole ? (0...number).map { "canary\($0)x" } : try visible(to: seat.principal)
        for line in heard {
            seats[index].heard.formUnion(line.split(separator: " ").map(String.init))
        }
    }

    private mutating func settle(_ index: Int) throws {
        let before = try rows(of: seats[index].device)
        for _ in 0..<3 { try exchange(index) }
        let seat = seats[index]
        let store = try seat.device.store
        #expect(try store.outboxCount == 0)
        let (shown, expected) = (try rows(of: seat.device), try visible(to: seat.principal))
        #expect(shown == expected, "\(seat.principal), rules \(rules ?? -1)")
        guard shown == expected else { throw SmallWorldError.closed }
        moved += Set(before).symmetricDifference(shown).count
        if index % 2 == 1 { try expectNoImages(on: seat) }
        for set in try store.parked() {
            let reasons = [RefusalReason.stale, .permission, .dependency]
            #expect(
                reasons.contains(set.reason),
                "\(index): \(set.reason): \(set.message) \(set)\n\(story.joined(separator: "\n"))")
            try store.drop(set.identifier, now: 1_000)
        }
        if index % 2 == 0 { try expectNothingElse(in: seat.device, but: expected, index) }
        for path in ["device.sqlite", "device.sqlite-wal"] {
            for name in Self.names(in: seat.device.disk.contents(of: path) ?? []) {
                #expect(seat.heard.contains(name), "\(seat.principal) has \(name)")
            }
        }
    }

    /// Expects that a device which keeps no confirmed sets has the bytes of its rows, and of what its
    /// user wrote.
    private func expectNothingElse(
        in device: SmallDevice, but rows: [String], _ index: Int
    ) throws {
        try device.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        #expect(device.disk.contents(of: "device.sqlite-wal")?.isEmpty != false)
        let shown = rows.reduce(into: Set<String>()) { names, line in
            names.formUnion(line.split(separator: " ").map(String.init))
        }
        for name in Self.names(in: device.disk.contents(of: "device.sqlite") ?? []) {
            #expect(
                shown.contains(name) || seats[index].own.contains(name),
                "\(seats[index].principal) still has \(name)")
        }
    }

    /// Expects that a device keeps earlier values only of records that it has, of types that its user sees
    /// whole, and of records that he deleted himself. A record is another one than a deleted one with its key.
    private func expectNoImages(on seat: Seat) throws {
        let node = try #require(world.server.node)
        guard let policies = node.policies else { return }
        let extents = RowRights(policies, of: seat.principal, now: 0).extents()
        let store = try seat.device.store.applying
        let purge = Purge(store: store)
        let confirmed = try Self.changes(in: "martlet_confirmed_changes", store)
        let deleted = Set(confirmed.lazy.filter { $0.operation == .delete }.map(\.key))
        let parked = try Self.changes(in: "martlet_parked_changes", store)
        for change in parked + confirmed where change.base != nil && !deleted.contains(change.key) {
            if case .integer(let id) = change.id, id < 0 { continue }
            let base = try change.base.map { try SyncCoder.decodeAttributes($0) }
            let isFormer =
                if case .text(let text)? = base?["name"] {
                    former[change.id]?.contains(text) == true
                } else {
                    false
                }
            guard try isFormer || purge.isAway(change.key) else { continue }
            let name = try store.typeName(ofNumber: change.number)
            let type = try #require(node.schema.index(of: name))
            #expect(
                extents[type] == .whole,
                "\(seat.principal), rules \(rules ?? -1): a value of \(name) \(change.id) is kept")
        }
    }

    private static func changes(in table: String, _ store: LocalStore) throws -> [StoredChange] {
        let rows = try store.connection.prepare("SELECT DISTINCT sequence FROM \(table)")
        var changes: [StoredChange] = []
        while try rows.step() {
            changes += try Outbox(store: store).changes(of: rows.integer(0), in: table)
        }
        return changes
    }

    /// Returns the names of records that stand in bytes.
    private static func names(in bytes: [UInt8]) -> Set<String> {
        let mark = Array("canary".utf8)
        var names: Set<String> = []
        for start in bytes.indices
        where bytes[start] == mark[0] && bytes[start...].starts(with: mark) {
            let digits = bytes[(start + mark.count)...].prefix { (48...57).contains($0) }
            guard bytes[digits.endIndex...].first == UInt8(ascii: "x") else { continue }
            names.insert("canary\(String(decoding: digits, as: UTF8.self))x")
        }
        return names
    }

    private func rows(of device: SmallDevice) throws -> [String] {
        try rows(of: device.connection())
    }

    private func rows(of connection: Connection) throws -> [String] {
        var lines: [String] = []
        for type in Self.types {
            let statement = try connection.prepare("SELECT * FROM \(type)")
            while try statement.step() {
                let columns = (0..<statement.columnCount).map {
                    statement.isNull($0) ? "-" : statement.text($0)
                }
                lines.append("\(type) \(columns.joined(separator: " "))")
            }
        }
        return lines.sorted()
    }

    private func visible(to principal: Principal) throws -> [String] {
        let node = try #require(world.server.node)
        guard let program = node.policies else { return try rows(of: world.server.connection()) }
        let read = RowLookups { try node.storage.rows(of: $0, where: $1, isAmong: $2) }
        let evaluator = RowRights(program, of: principal, now: 0).evaluator(over: read)
        var lines: [String] = []
        for (index, type) in Self.types.enumerated() {
            let position = try #require(node.schema.index(of: type), "type \(index)")
            for row in try node.storage.rows(of: position, where: 0, isAmong: nil)
            where try evaluator.maySelect(row, of: position) {
                let values = row.map { value in
                    switch value {
                    case .null: "-"
                    case .integer(let number): "\(number)"
                    case .text(let text): text
                    default: "?"
                    }
                }
                lines.append("\(type) \(values.joined(separator: " "))")
            }
        }
        return lines.sorted()
    }
}
