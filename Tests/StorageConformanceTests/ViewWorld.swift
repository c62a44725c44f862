import Foundation
import MartletModel
import MartletRules
import RandomKit
import SetTexts
import Testing

@testable import MartletServerCore

/// A data set with random people, records, rights and rules; from a seed.
struct ViewWorld {
    /// MARTLET_VIEWS_SEED names the first of MARTLET_VIEWS_WORLDS worlds.
    static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["MARTLET_VIEWS_SEED"].flatMap { UInt64($0) } ?? 1
        return first..<first + (environment["MARTLET_VIEWS_WORLDS"].flatMap { UInt64($0) } ?? 2)
    }()
    static let steps = 150

    private static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        CREATE TABLE members (
            id INTEGER PRIMARY KEY, person TEXT, share REAL,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, fee INTEGER, share REAL,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE notes (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE words (id TEXT PRIMARY KEY NOT NULL, name TEXT, lang TEXT);
        """
    private static let types = ["teams", "members", "players", "notes", "words"]
    private static let people = ["ann", "bob", "cyd"]

    private static let office = """
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        CREATE POLICY office ON notes TO office USING (true);
        CREATE POLICY office ON words TO office USING (true);
        """
    private static let rules = [
        """
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY mine ON teams FOR SELECT
            USING (id IN (SELECT team_id FROM members WHERE person = martlet_user()));
        CREATE POLICY self ON members USING (person = martlet_user());
        CREATE POLICY teams ON players USING (team_id IN (SELECT id FROM teams));
        CREATE POLICY cheap ON players AS RESTRICTIVE TO treasurer USING (fee < 50);
        CREATE POLICY every ON notes USING (true);
        CREATE POLICY spoken ON words USING (lang = martlet_claim('lang'));
        """ + office,
        """
        CREATE POLICY every ON teams USING (true);
        CREATE POLICY team ON members FOR SELECT
            USING (EXISTS (SELECT 1 FROM teams WHERE teams.id = members.team_id AND owner = martlet_user()));
        CREATE POLICY cheap ON players USING (fee < 30 OR martlet_role('treasurer'));
        CREATE POLICY today ON notes USING ((martlet_today() - CAST ('2020-01-01' AS date)) % 2 = 0);
        ALTER TABLE words DISABLE ROW LEVEL SECURITY;
        """ + office,
        """
        CREATE POLICY mine ON teams FOR SELECT
            USING (id IN (SELECT team_id FROM members WHERE person = martlet_user()));
        CREATE POLICY every ON members USING (true);
        CREATE POLICY near ON players USING (
            EXISTS (SELECT 1 FROM members AS m WHERE m.person = martlet_user() AND m.team_id = players.team_id)
            OR team_id IN (SELECT id FROM teams WHERE owner = martlet_user()) AND fee < 40);
        CREATE POLICY others ON notes USING (NOT EXISTS (
            SELECT 1 FROM members AS m WHERE m.person = martlet_user() AND m.team_id = notes.id));
        CREATE POLICY few ON words USING (lang = martlet_claim('lang') AND EXISTS (
            SELECT 1 FROM members WHERE person = martlet_user()) OR id IN ('w1', 'w2'));
        """ + office,
        """
        CREATE POLICY own ON teams USING (owner = martlet_user() OR EXISTS (
            SELECT 1 FROM members WHERE members.team_id = teams.id AND members.person = martlet_user()));
        CREATE POLICY self ON members USING (person = martlet_user());
        CREATE POLICY teams ON players USING (team_id NOT IN (SELECT id FROM teams) OR EXISTS (
            SELECT 1 FROM teams WHERE teams.id = players.team_id AND players.fee > 20));
        CREATE POLICY bound ON players AS RESTRICTIVE TO treasurer
            USING (fee < coalesce((SELECT id FROM teams ORDER BY id DESC LIMIT 1), 2) * 10);
        CREATE POLICY faulty ON notes USING (id / ((
            SELECT team_id FROM members WHERE person = martlet_user() ORDER BY id LIMIT 1) - 3) >= 0);
        CREATE POLICY spoken ON words USING (lang IN ('de', martlet_claim('lang')));
        """ + office,
    ]
    /// The rules that ask for the day, whose change wakes no listener.
    private static let askingDay = 1

    private let server: TestDataSet
    private var random: SplitMix64
    private var devices: [ViewedDevice] = []
    private var rules: Int?
    private var number = 0
    /// How many records came to devices or left them by a change of rights.
    private(set) var moved = 0
    /// How often a listener was told nothing although the log went on.
    private(set) var quiet = 0
    private let root = Principal(name: "root", user: "root", roles: ["office"])

    init(_ kind: StorageKind, seed: UInt64) async throws {
        server = try await TestDataSet(kind, Self.schema)
        // A sequence of PostgreSQL takes no number back from a refused set.
        server.isCompared = false
        random = SplitMix64(seed: seed)
        for index in 0..<4 {
            devices.append(ViewedDevice("v\(index)", Principal(name: "t\(index)", user: "root")))
            devices[index].principal = person(index)
        }
    }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private mutating func person(_ index: Int) -> Principal {
        var roles: [String] = []
        if below(5) == 0 { roles.append("office") }
        if below(3) == 0 { roles.append("treasurer") }
        let claims = below(4) == 0 ? [:] : ["lang": ["de", "en"][below(2)]]
        return Principal(
            name: "t\(index)", user: Self.people[index % 3], roles: roles, claims: claims)
    }

    mutating func step() throws {
        switch below(20) {
        case 0..<9: try write(as: root, from: "writer")
        case 9: try writeElsewhere()
        case 10:
            let device = below(devices.count)
            devices[device].principal = person(device)
        case 11:
            if below(3) > 0 { return }
            rules = below(5) == 0 ? nil : below(Self.rules.count)
            try server.secure(by: rules.map { Self.rules[$0] })
        case 12:
            if below(2) == 0 {
                // Parts end between revisions, and within them.
                try server.restart(
                    answerBytes: [80, 400, 1 << 20][below(3)], partBytes: [1, 64 << 10][below(2)])
            } else {
                server.now += 86_400_000 * Int64(below(2))
            }
        case 13: if below(4) == 0 { server.compact(keeping: Int64(below(6))) }
        case 14:
            // An exchange that ends before its difference does.
            try exchange(devices[below(devices.count)], rounds: 1)
        case 15:
            let device = devices[below(devices.count)]
            try write(as: device.principal, from: device.name, by: device)
        default: try settle(devices[below(devices.count)])
        }
    }

    /// Brings every device up to date.
    mutating func end() throws {
        for device in devices { try settle(device) }
        for device in devices { try settle(device) }
    }

    // MARK: - Writes

    private mutating func values(_ type: String) -> String {
        number += 1
        let team = below(4) == 0 ? "null" : "\(1 + below(6))"
        return switch type {
        case "teams": #""name":"n\#(number)","owner":"\#(Self.people[below(3)])""#
        case "members": #""person":"\#(Self.people[below(3)])","team_id":\#(team)"#
        case "players": #""name":"n\#(number)","fee":\#(below(60)),"team_id":\#(team)"#
        case "notes": #""name":"n\#(number)""#
        default: #""name":"n\#(number)","lang":"\#(["de", "en"][below(2)])""#
        }
    }

    private mutating func write(
        as principal: Principal, from name: String, by device: ViewedDevice? = nil
    ) throws {
        var set = SetText("s\(number)-\(name)", sequence: number + 1)
        let revisions = try revisions()
        for type in Set((0...below(3)).map { _ in Self.types[below(5)] }).sorted() {
            let id = type == "words" ? "w\(below(9))" : "\(1 + below(8))"
            let base = revisions["\(type) \(id)"]
            let revision = "\"revision\":\(base ?? 0)"
            switch below(6) {
            case 0 where base != nil: set = set.delete(type, id, revision)
            case 1...3 where base != nil: set = set.update(type, id, "\(revision),\(values(type))")
            case _ where type == "words": set = set.create(type, "w\(below(99))", values(type))
            default: set = set.create(type, "-\(number + 1_000)", values(type))
            }
        }
        number += 1
        if let device {
            try exchange(device, [set], rounds: 400)
        } else {
            try server.send(set, from: name, as: principal)
        }
    }

    /// A write of another program.
    private mutating func writeElsewhere() throws {
        number += 1
        let id = 1 + below(8)
        let infinity = server.kind.isPostgres ? "'Infinity'" : "9e999"
        try server.execute(
            [
                "UPDATE players SET fee = \(below(60)), name = 'n\(number)' WHERE id = \(id)",
                "DELETE FROM members WHERE id = \(id)",
                "UPDATE members SET person = '\(Self.people[below(3)])' WHERE id = \(id)",
                "UPDATE teams SET owner = '\(Self.people[below(3)])' WHERE id >= \(id)",
                "UPDATE players SET share = \(infinity), fee = \(below(60)) WHERE id = \(id)",
                """
                UPDATE members SET share = \(infinity), person = '\(Self.people[below(3)])' \
                WHERE id = \(id)
                """,
                "UPDATE players SET share = NULL WHERE id >= \(id)",
                "UPDATE members SET share = NULL WHERE id >= \(id)",
            ][below(8)])
    }

    private func revisions() throws -> [String: Int64] {
        var names: [String: String] = [:]
        for line in try server.rows("SELECT number, name FROM martlet_types").split(separator: "\n")
        {
            let parts = line.split(separator: "|").map(String.init)
            names[parts[0]] = parts[1]
        }
        var revisions: [String: Int64] = [:]
        let all = "SELECT type, id, revision FROM martlet_records WHERE NOT deleted"
        for line in try server.rows(all).split(separator: "\n") {
            let parts = line.split(separator: "|").map(String.init)
            revisions["\(names[parts[0]] ?? "") \(parts[1])"] = Int64(parts[2])
        }
        return revisions
    }

    // MARK: - Exchanges

    private mutating func settle(_ device: ViewedDevice) throws {
        let before = device.records
        // A server looks for what other programs have written.
        while server.node.takeExternalWrites(now: server.now) {}
        try exchange(device, rounds: 400)
        #expect(device.isUpToDate)
        let expected = try visible(to: device.principal)
        if try !has(device, expected) {
            Issue.record(
                """
                \(server.kind.rawValue): \(device.name) as \(device.principal) at \(device.revision) \
                (\(device.lineage ?? "-")) has\n\(Self.text(device.records))\nexpected\n\
                \(Self.text(expected))
                """)
            throw UnexpectedAnswer()
        }
        try listen()
        for type in Self.types {
            let (old, new) = (Set((before[type] ?? [:]).keys), Set((expected[type] ?? [:]).keys))
            moved += old.symmetricDifference(new).count
        }
    }

    /// Each device whose user sees something else than it has is told to fetch it.
    private mutating func listen() throws {
        guard rules != Self.askingDay else { return }
        for device in devices where device.isUpToDate && device.revision > 0 {
            var request = DeltaRequest(principal: device.principal, since: device.revision)
            (request.clientID, request.lineage) = (device.name, device.lineage)
            guard case .batch(let batch) = server.reader().deltas(request) else { continue }
            if !batch.isEmpty { continue }
            if device.revision < server.node.head.revision { quiet += 1 }
            #expect(
                try has(device, visible(to: device.principal)), "\(device.name) is not told")
        }
    }

    private func exchange(
        _ device: ViewedDevice, _ sets: [SetText] = [], rounds: Int
    ) throws {
        try device.exchange(with: server, sets, rounds: rounds) { device in
            // No byte of a record that the person may not see.
            let visible = try Set(names(in: visible(to: device.principal)))
            for name in try names(in: all()) where !visible.contains(name) {
                #expect(!device.heard.contains("\"\(name)\""), "\(device.name) heard \(name)")
            }
        }
    }

    private typealias Records = [String: [RecordID: [String: Value]]]

    /// Whether a device has what its user may see. If he sees all of a type, it may keep records of that
    /// type that cannot be sent, and it may lack them.
    private func has(_ device: ViewedDevice, _ expected: Records) throws -> Bool {
        var records = device.records
        let extents = server.policies.map {
            RowRights($0, of: device.principal, now: server.now).extents()
        }
        for (index, type) in server.node.schema.types.enumerated()
        where extents?[index] ?? .whole == .whole {
            for id in try leftOut(type.name) where expected[type.name]?[id] == nil {
                records[type.name]?[id] = nil
            }
            if records[type.name]?.isEmpty == true { records[type.name] = nil }
        }
        return records == expected
    }

    /// The records of a type that the log leaves out.
    private func leftOut(_ type: String) throws -> [RecordID] {
        let ids = try server.rows(
            """
            SELECT r.id FROM martlet_records AS r WHERE r.others = \(RowFacts.leftOut) AND NOT r.deleted \
            AND r.type = (SELECT t.number FROM martlet_types AS t WHERE t.name = '\(type)')
            """)
        return ids.split(separator: "\n").map { line in
            Int64(line).map { .integer($0) } ?? .text(String(line))
        }
    }

    private func names(in records: Records) -> [String] {
        records.values.flatMap { $0.values }.compactMap { record in
            if case .text(let name)? = record["name"] { name } else { nil }
        }
    }

    private func all() throws -> Records { try records { _, _ in true } }

    private func visible(to principal: Principal) throws -> Records {
        guard let program = server.policies else { return try all() }
        let rows = RowLookups { try server.storage.rows(of: $0, where: $1, isAmong: $2) }
        let evaluator = RowRights(program, of: principal, now: server.now).evaluator(over: rows)
        return try records { try evaluator.maySelect($0, of: $1) }
    }

    private func records(where isMember: (RuleRow, Int) throws -> Bool) throws -> Records {
        var records: Records = [:]
        let schema = server.node.schema
        for (index, type) in schema.types.enumerated() {
            for row in try server.storage.rows(of: index, where: 0, isAmong: nil)
            where try isMember(row, index) {
                var values: [String: Value] = [:]
                for (attribute, value) in zip(type.attributes, row.dropFirst())
                where value != .null {
                    values[attribute.name] = value
                }
                records[type.name, default: [:]][RecordAddress(index, row).id] = values
            }
        }
        return records
    }

    private static func text(_ records: Records) -> String {
        records.flatMap { type, rows in rows.map { "\(type) \($0) \($1)" } }.sorted()
            .joined(separator: "\n")
    }
}
