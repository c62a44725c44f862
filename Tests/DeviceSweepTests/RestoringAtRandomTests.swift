import MartletModel
import MartletServerCore
import MartletStore
import RandomKit
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// A team whose server is restored from backups again and again, at random.
///
/// Each team's city is its tag, for life; each name of it begins with the tag, and each player's name
/// is the tag of the team it was made for. So an edit or a reference that went to another record than
/// it was meant for shows in the tables.
private final class RestoredWorld {
    private let name: String
    private var server: SmallServer
    private var backups: [[String: [UInt8]]] = []
    private var devices: [SmallDevice] = []
    private var sets: [Set<String>] = []
    private var random: SplitMix64
    private var count = 0
    private let refetches: Bool

    /// - Parameter refetches: Whether devices refetch everything now and then.
    init(seed: UInt64, refetches: Bool) throws {
        self.refetches = refetches
        name = "restored-\(seed)"
        random = SplitMix64(seed: seed &* 0x1234_5678_9abc_def1)
        server = try SmallServer(FaultDisk(name: "\(name)-server-0"))
        for number in 1...3 {
            let disk = FaultDisk(name: "\(name)-device-\(number)", seed: UInt64(number))
            devices.append(try SmallDevice(disk, number: seed << 8 | UInt64(number)))
            sets.append([])
        }
        keepBackup()
    }

    func run(steps: Int) throws {
        for _ in 0..<steps { try step() }
        // Everybody comes back, also those who wait for what others bring.
        for _ in 0..<3 {
            for device in devices { try sync(device, lost: 0) }
        }
        try check()
    }

    private func step() throws {
        let index = Int.random(in: 0..<devices.count, using: &random)
        switch Int.random(in: 0..<20, using: &random) {
        case 0: keepBackup()
        case 1: try restore()
        case 2 where refetches:
            try devices[index].store.endLeases()
            try devices[index].beginRefetching()
        case 2..<8:
            let isLost = Int.random(in: 0..<5, using: &random) == 0
            try sync(devices[index], lost: isLost ? Int.random(in: 1...4, using: &random) : 0)
        default:
            try write(on: devices[index])
            if let queued = try devices[index].store.newestQueued() {
                sets[index].insert(queued.identifier)
            }
        }
    }

    private func sync(_ device: SmallDevice, lost: Int) throws {
        try device.store.endLeases()
        try device.sync(with: server, lost: lost)
        let errors = device.errors.filter { $0.kind != .offline }
        #expect(errors.isEmpty, "\(name): \(errors)")
    }

    private func write(on device: SmallDevice) throws {
        count += 1
        let teams = try device.store.local.rows("SELECT id, city FROM teams ORDER BY id")
        let kind = Int.random(in: 0..<6, using: &random)
        guard let team = teams.randomElement(using: &random), kind > 0,
            case .integer(let id) = team.values[0], case .text(let tag) = team.values[1]
        else {
            let tag = "t\(count)"
            return try device.write {
                _ = try $0.insert("teams", ["name": .text("\(tag) new"), "city": .text(tag)])
            }
        }
        try device.write { context in
            switch kind {
            case 1, 2:
                try context.update(
                    "teams", .integer(id), ["name": .text("\(tag) \(self.count)")])
            case 3:
                try context.delete("teams", .integer(id))
            default:
                _ = try context.insert("players", ["team_id": .integer(id), "name": .text(tag)])
            }
        }
    }

    // MARK: - Backups

    private func keepBackup() {
        server.close()
        backups.append(
            Dictionary(
                uniqueKeysWithValues: server.disk.paths.map {
                    ($0, server.disk.contents(of: $0) ?? [])
                }))
        try? server.open()
    }

    private func restore() throws {
        count += 1
        guard let backup = backups.randomElement(using: &random) else { return }
        let disk = FaultDisk(name: "\(name)-server-\(count)")
        for (path, bytes) in backup { disk.install(bytes, at: path) }
        server.close()
        server = try SmallServer(disk)
    }

    // MARK: - Afterwards

    private func check() throws {
        let connection = try Connection(
            path: "server.sqlite", mode: .readWrite, vfs: server.disk.vfsName)
        func texts(_ sql: String) throws -> [String] {
            try connection.prepare(sql).rows { (row) throws(SQLiteError) in row.text(0) }
        }
        let log = try texts("SELECT identifier FROM martlet_log WHERE identifier IS NOT NULL")
        #expect(Set(log).count == log.count, "\(name): applied twice")
        for (device, sets) in zip(devices, sets) {
            let store = try device.store
            let parked = Set(try store.parked().map(\.identifier))
            let lost = sets.subtracting(log).subtracting(parked)
            #expect(try store.outboxCount == 0, "\(name)")
            #expect(lost.isEmpty, "\(name): lost \(lost)")
            #expect(try store.confirmedState() == devices[0].store.confirmedState(), "\(name)")
            let rows = try store.local.rows("SELECT id, name, city FROM teams ORDER BY id")
            let shown = rows.map { "\($0.values)" }
            let stored = try texts("SELECT count(*) || '' FROM teams")
            #expect(stored == ["\(shown.count)"], "\(name)")
        }
        let strays = try texts(
            """
            SELECT name || ' in ' || city FROM teams WHERE name NOT LIKE city || ' %'
            UNION ALL SELECT players.name || ' plays for ' || city FROM players
            JOIN teams ON teams.id = team_id WHERE players.name <> city
            """)
        #expect(strays.isEmpty, "\(name): \(strays)")
    }
}

@Suite("Backups restored at random")
struct RestoringAtRandomTests {
    @Test(
        "nothing is lost, nothing applied twice, nothing goes to a wrong record", arguments: 1...4)
    func randomRestores(part: UInt64) throws {
        for seed in 0..<5 {
            let world = try RestoredWorld(seed: part * 100 + UInt64(seed), refetches: part == 2)
            try world.run(steps: 120)
        }
    }
}
