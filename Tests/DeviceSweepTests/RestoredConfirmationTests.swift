import MartletModel
import MartletRules
import MartletServerCore
import MartletStore
import RandomKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice

/// A team whose server is restored from backups again and again, at random, while records enter and leave
/// people's views.
private final class RestoredViews {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        """
    private static let rules = """
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY shared ON teams FOR SELECT USING (martlet_role('treasurer') AND name < 'm');
        CREATE POLICY office ON teams TO office USING (true);
        """
    private static let people = ["ann", "bob"]

    /// A device and its user.
    private struct Seat {
        let device: SmallDevice
        var person: Principal
    }

    private let name: String
    private var server: SmallServer
    private var backups: [[String: [UInt8]]] = []
    private var seats: [Seat] = []
    private var random: SplitMix64
    private var count = 0
    /// The steps so far, which a failure prints.
    private var story: [String] = []
    /// How often a device was found that has confirmed, and one whose server was restored since.
    private(set) var confirmed = 0
    private(set) var waiting = 0

    init(seed: UInt64) throws {
        name = DiskName.next("restored-views-\(seed)")
        random = SplitMix64(seed: seed &* 0x1234_5678_9abc_def1)
        server = SmallServer(switchedOff: FaultDisk(name: "\(name)-0"), script: Self.script)
        try open()
        for number in 0..<4 {
            let disk = FaultDisk(name: "\(name)-device-\(number)", seed: UInt64(number))
            let device = SmallDevice(switchedOff: disk, number: seed << 8 | UInt64(number))
            try device.open(script: Self.script)
            seats.append(Seat(device: device, person: person(number)))
        }
        keepBackup()
    }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    /// The first device is the office's.
    private func person(_ number: Int) -> Principal {
        guard number > 0 else { return Principal(name: "o", user: "olga", roles: ["office"]) }
        let roles = below(3) == 0 ? ["treasurer"] : []
        return Principal(name: "p\(number)", user: Self.people[number % 2], roles: roles)
    }

    private func open() throws {
        try server.open()
        let node = try #require(server.node)
        node.policies = try RulesProgram(Self.rules, schema: node.schema)
    }

    func run(steps: Int) throws {
        for _ in 0..<steps {
            switch below(16) {
            case 0: keepBackup()
            case 1: try restore()
            case 2:
                let index = 1 + below(seats.count - 1)
                seats[index].person = person(index)
            case 3..<9: try save()
            default:
                let lost = below(4) == 0 ? 1 + below(3) : 0
                try exchange(seats[below(seats.count)], lost: lost)
            }
            try check()
        }
        for _ in 0..<3 {
            for seat in seats { try exchange(seat, lost: 0) }
        }
        try check()
        let left = try purges().filter(\.isRestored).map { "\($0)" }
        #expect(left.isEmpty, "\(name): \(left)")
    }

    private func save() throws {
        count += 1
        let number = below(3) == 0 ? count : below(count) + 1
        let (title, owner) = (below(2) == 0 ? "lark" : "owl", Self.people[below(2)])
        try seats[0].device.write { context in
            let ids = try context.rows("SELECT id FROM teams ORDER BY id").compactMap { $0["id"] }
            if ids.isEmpty || number == count {
                _ = try context.insert("teams", ["name": .text(title), "owner": .text(owner)])
            } else {
                try context.prepare("UPDATE teams SET name = ?, owner = ? WHERE id = ?")
                    .run([.text(title), .text(owner), ids[number % ids.count]])
            }
        }
        try exchange(seats[0], lost: 0)
    }

    private func exchange(_ seat: Seat, lost: Int) throws {
        server.sender = seat.person
        let number = seats.firstIndex { $0.device === seat.device } ?? 0
        story.append("\(number): exchange, lost \(lost)")
        server.checkRequest = { [weak self] body in
            self?.story.append("  \(number) < \(String(decoding: body, as: UTF8.self).prefix(400))")
        }
        try seat.device.store.endLeases()
        try seat.device.sync(with: server, lost: lost)
        let errors = seat.device.errors.filter { $0.kind != .offline }
        #expect(errors.isEmpty, "\(name): \(errors)")
        for set in try seat.device.store.parked() {
            try seat.device.store.drop(set.identifier, now: 0)
        }
    }

    // MARK: - Backups

    private func keepBackup() {
        story.append("backup \(backups.count)")
        server.close()
        backups.append(
            Dictionary(
                uniqueKeysWithValues: server.disk.paths.map {
                    ($0, server.disk.contents(of: $0) ?? [])
                }))
        try? open()
    }

    /// Puts a backup in place, as `martlet restore` does.
    private func restore() throws {
        count += 1
        let index = below(backups.count)
        let backup = backups[index]
        story.append("restore \(index)")
        let disk = FaultDisk(name: "\(name)-\(count)")
        for (path, bytes) in backup { disk.install(bytes, at: path) }
        server.close()
        server = SmallServer(switchedOff: disk, script: Self.script)
        // The numbers of views are at least the time, which stands still here.
        try server.connection().execute(
            """
            \(ViewScan.retirement(prefix: "martlet_"));
            DELETE FROM sqlite_sequence WHERE name = 'martlet_views';
            INSERT INTO sqlite_sequence (name, seq) VALUES ('martlet_views', \(count * 1_000));
            """)
        try open()
    }

    // MARK: - Afterwards

    private func purges() throws -> [DevicePurge] {
        let connection = try server.connection()
        return try DevicePurges(prefix: "martlet_").list { (query) throws(SQLiteError) in
            try connection.statement(query).rows { (row) throws(SQLiteError) in
                (0..<row.columnCount).map { row.isNull($0) ? nil : row.text($0) }
            }
        }
    }

    /// Expects that no device which counts as confirmed has a record that the view which it was given last
    /// does not show.
    private func check() throws {
        let connection = try server.connection()
        for purge in try purges() {
            if purge.isRestored { waiting += 1 }
            guard purge.state == .confirmed,
                let seat = try seats.first(where: { try $0.device.store.clientID == purge.clientID }
                )
            else { continue }
            confirmed += 1
            let members = try connection.prepare(
                """
                SELECT m.id FROM martlet_devices AS d
                    JOIN martlet_given AS g ON g.principal = 'device:' || d.number
                    JOIN martlet_views AS v ON v.number = g.view
                    JOIN martlet_members AS m ON m.shown
                        AND m.view = CAST(substr(v.parts, instr(v.parts, ':') + 1) AS INTEGER)
                WHERE d.client_id = '\(purge.clientID)'
                """
            ).rows { (row) throws(SQLiteError) in row.integer(0) }
            let rows = try seat.device.store.confirmedState()["teams"] ?? [:]
            let hidden = rows.keys.filter { id in
                if case .integer(let number) = id { !members.contains(number) } else { true }
            }
            guard !hidden.isEmpty else { continue }
            let told =
                try [
                    "\(name): \(seat.person) counts as confirmed with \(hidden): \(purge)",
                    seat.device.store.text(),
                ] + story.suffix(30)
            Issue.record("\(told.joined(separator: "\n"))")
            throw SmallWorldError.closed
        }
    }
}

@Suite("Confirmations of devices whose server is restored")
struct RestoredConfirmationTests {
    @Test("count only if the device has nothing that is hidden", arguments: UInt64(1)...4)
    func atRandom(part: UInt64) throws {
        var (confirmed, waiting) = (0, 0)
        for seed in 0..<5 {
            let world = try RestoredViews(seed: part * 100 + UInt64(seed))
            try world.run(steps: 100)
            confirmed += world.confirmed
            waiting += world.waiting
        }
        // Worlds without either would show nothing.
        #expect(confirmed > 50 && waiting > 20)
    }
}
