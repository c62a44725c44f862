internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletServerCore
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit
internal import SmallWorlds

/// A server and devices in one thread, whose work is counted phase by phase.
final class GrowingWorld {
    static let script = """
        CREATE TABLE teams(
            id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Oslo', rank INTEGER UNIQUE,
            parent_id INTEGER REFERENCES teams(id) ON DELETE CASCADE);
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT, score REAL);
        CREATE TABLE notes(
            id TEXT PRIMARY KEY, body TEXT, team_id INTEGER REFERENCES teams(id) ON DELETE SET NULL);
        CREATE INDEX subteams ON teams(parent_id);
        CREATE INDEX members ON players(team_id);
        CREATE INDEX remarks ON notes(team_id);
        """

    let world: SmallWorld
    let script: String
    /// The disks of devices.
    var disks: [FaultDisk] = []
    private(set) var work: [String: Work] = [:]

    init(script: String = GrowingWorld.script) throws {
        self.script = script
        world = try SmallWorld(DiskName.next("growing"), script: script, pace: .counted)
    }

    var server: SmallServer { world.server }

    var node: DataSetNode {
        get throws {
            guard let node = server.node else { throw SmallWorldError.closed }
            return node
        }
    }

    func device(script: String? = nil) throws -> SmallDevice {
        let device = try world.device(script: script ?? self.script)
        disks.append(device.disk)
        return device
    }

    /// The phase to which all work is added; nil for the phase that is named.
    var phase: String?

    /// Counts the work of a phase, in addition to what it has done before.
    @discardableResult
    func count<Result>(_ phase: String, _ body: () throws -> Result) throws -> Result {
        let before = (onDevices, server.disk.work)
        let memory = Work.Memory.begin()
        let result = try body()
        let asked = memory.end()
        work[self.phase ?? phase, default: Work()].add(
            devices: onDevices.since(before.0), server: server.disk.work.since(before.1), asked)
        return result
    }

    private var onDevices: DiskWork {
        disks.reduce(into: DiskWork()) { sum, disk in
            let work = disk.work
            sum.statements += work.statements
            sum.steps += work.steps
            sum.pages += work.pages
        }
    }

    /// Fails if an exchange did not end well.
    func sync(_ device: SmallDevice) throws {
        try device.sync(with: server)
        if let error = device.errors.first { throw error }
    }

    /// Brings a device up to date, and counts that.
    func countSync(_ device: SmallDevice, _ phase: String = "exchange") throws {
        try count(phase) { try sync(device) }
    }

    // MARK: - What others have written

    /// A device that has made teams and their players on the server.
    func author(teams: Int, players: Int = 0, notes: Int = 0) throws -> SmallDevice {
        let author = try device()
        try author.write { context in
            for number in 0..<teams {
                try context.insert(
                    "teams", ["name": .text("Team \(number)"), "rank": .integer(Int64(number))])
            }
            for number in 0..<notes {
                try context.insert("notes", ["body": "first"], id: "n\(number)")
            }
        }
        try sync(author)
        if players > 0 {
            try author.write { context in
                for number in 0..<players {
                    try context.insert(
                        "players",
                        ["team_id": .integer(Int64(number % teams + 1)), "name": "Player"])
                }
            }
            try sync(author)
        }
        return author
    }

    /// One save for each number.
    func save(
        _ device: SmallDevice, _ numbers: Range<Int>, _ body: (WriteContext, Int) throws -> Void
    ) throws {
        for number in numbers { try device.write { try body($0, number) } }
    }

    /// Answers a request made by hand.
    func ask(_ text: String) throws -> [UInt8] {
        let answer = try server.answer(Array(text.utf8))
        guard answer.status == 200 else {
            throw SyncError(.rejected, String(decoding: answer.body, as: UTF8.self))
        }
        return answer.body
    }

    /// What another program does to the server's file.
    func outside(_ sql: String) throws {
        let connection = try server.connection()
        try connection.execute("PRAGMA foreign_keys = ON")
        try connection.execute(sql)
    }
}
