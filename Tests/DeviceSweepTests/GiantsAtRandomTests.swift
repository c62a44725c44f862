import CompressionKit
import Foundation
import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Values as large as they may be, or a little larger, which chance puts together: on a device by its app
/// and by another program, and on the server by another program.
///
/// What can be saved can be sent, accepted, streamed, put in a difference and in a snapshot, and arrives
/// equal; or it is refused with a sentence, or kept back with one.
private final class GiantWorld {
    private static let script = """
        CREATE TABLE pages(
            id INTEGER PRIMARY KEY, one TEXT, two TEXT, picture BLOB,
            parent_id INTEGER REFERENCES pages(id));
        CREATE TABLE words(id TEXT PRIMARY KEY, one TEXT, picture BLOB);
        """

    private let seed: UInt64
    private let world: SmallWorld
    private let author: SmallDevice
    private let reader: SmallDevice
    private let listener: SmallDevice
    private var random: SeededRandom
    private var story: [String] = []
    private(set) var tally: [String: Int] = [:]

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15)
        var pace = SmallPace.counted
        (pace.sliceRecords, pace.countsWork, pace.mostRequests) = (2_000, false, 400)
        world = try SmallWorld(DiskName.next("giants"), script: Self.script, pace: pace)
        author = try world.device(script: Self.script)
        reader = try world.device(script: Self.script)
        listener = try world.device(script: Self.script)
        world.server.checkRequest = { body in
            let sent = SentBody(body)
            try #require(sent.bytes.count <= Limits.requestBytes, "no request may be so long")
            guard sent.isGzip else { return }
            _ = try Gzip.inflate(
                sent.bytes, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
                ratioFloor: Limits.inflationRatioFloor)
        }
        world.server.checkAnswer = { body in
            try #require(body.count <= Limits.inflatedBytes, "no device takes so long an answer")
        }
    }

    func run() throws {
        // Something in front of the server may let less through than the server takes.
        if random.chance(40) {
            let limit = random.one(of: [64 << 10, 1 << 20, 4 << 20, 10 << 20])
            world.server.longestBody = limit
            story.append("no body over \(limit) bytes gets through")
        }
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: try save()
            case 1: try foreign()
            default: try outside()
            }
            try exchange(author)
            try exchange(reader)
            try follow(listener)
        }
        let rows = try self.rows(on: world.server.connection())
        try compare(reader, rows, "the reader")
        try compare(listener, rows, "the listener")
        if try author.store.withheldCount == 0, try author.store.parkedCount == 0 {
            try compare(author, rows, "the author")
        }
        world.server.compact()
        let late = try world.device(script: Self.script)
        try exchange(late)
        try compare(late, rows, "one that fetched the difference")
        let seeded = try world.device(script: Self.script)
        seeded.snapshot = try world.server.snapshot()
        seeded.close()
        try seeded.open(script: Self.script)
        try exchange(seeded)
        try compare(seeded, rows, "one that began with a snapshot")
    }

    private func count(_ name: String) { tally[name, default: 0] += 1 }

    var told: String { "seed \(seed): " + story.joined(separator: "; ") }

    // MARK: - Giants

    /// Bytes on the wire at which something ends.
    private static let edges = [
        Limits.unmeasuredBytes, Limits.requestHeadBytes, Limits.uploadBytes, Limits.savedSetBytes,
        Limits.textBytes, Limits.requestBytes, Limits.changeSetBytes, Limits.rowBytes,
        Limits.entryBytes,
    ]

    /// A value that takes about so many bytes on the wire, and may be a blob.
    private func value(_ bytes: Int, mayBeBlob: Bool) -> (SQLValue, name: String) {
        let bytes = max(0, bytes)
        func text(_ unit: String, _ width: Int) -> SQLValue {
            .text(String(repeating: unit, count: bytes / width))
        }
        switch Int.random(in: 0..<(mayBeBlob ? 8 : 6), using: &random) {
        case 0: return (text("x", 1), "letters")
        case 1: return (text("\u{1}", 6), "control characters")
        case 2: return (text("\"", 2), "quotes")
        case 3: return (text("é", 2), "accents")
        case 4: return (text("😀", 4), "emoji")
        case 5: return (.text(hostile(bytes)), "letters at random")
        case 6: return (.blob([UInt8](repeating: 0, count: bytes / 4 * 3)), "zero bytes")
        default:
            return (.blob(Array(hostile(bytes / 4 * 3).utf8)), "bytes at random")
        }
    }

    /// Letters that do not compress by much: a block that is longer than the window of gzip, again and
    /// again.
    private func hostile(_ count: Int) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-".utf8)
        let block = (0..<70_000).map { _ in
            letters[Int(truncatingIfNeeded: random.next() >> 40) % 64]
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + block.count)
        while bytes.count < count { bytes += block }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    /// Rows that together take about as many bytes as one of the edges: how many, and the values of each.
    /// - Parameter times: How often the edge may go into one transaction, if its rows are many.
    private func giants(times: Int = 1) -> [(id: String?, one: SQLValue, picture: SQLValue)] {
        let edge = random.one(of: Self.edges)
        let near = random.one(of: [-200_000, -2_000, -300, -100, -20, -1, 0, 1, 20, 300, 2_000])
        let rows = random.one(of: times > 1 ? [1, 2, 3, 9, 40] : [1, 1, 1, 2, 3, 40])
        let most = Limits.inflatedBytes + Limits.entryBytes
        let all =
            rows < 3
            ? edge + near : min(most, edge * Int.random(in: 1...times, using: &random) + near)
        var parts: [String] = []
        let made = (0..<rows).map { row in
            let share = all / rows
            let both = random.chance(25)
            let one = value(both ? share / 2 : share, mayBeBlob: false)
            let picture = both ? value(share / 2, mayBeBlob: true) : (.null, name: "nothing")
            if row == 0 { parts = [one.name, picture.name] }
            let length = random.one(of: [3, 36, 37, 128, 129, 5_000, 300_000])
            // No two giants of a world have one key.
            let key = "\(story.count)-\(row)-" + String(repeating: "k", count: length)
            let id = random.chance(40) ? key : nil
            return (id, one.0, picture.0)
        }
        story.append("\(rows) rows of \(all) bytes, \(parts.joined(separator: " and "))")
        return made
    }

    // MARK: - Who writes

    private func save() throws {
        let rows = giants()
        story.append("saved by the app")
        do {
            try author.write { context in
                for row in rows {
                    guard case .text = row.one else { continue }
                    let values: RecordValues = ["one": row.one, "picture": row.picture]
                    if let id = row.id {
                        try context.insert("words", values, id: id)
                    } else {
                        try context.insert("pages", values)
                    }
                }
            }
            count("saved")
        } catch let error as StoreError {
            story.append("refused: \(error.message.prefix(200))")
            try #require(error.kind == .tooLarge || error.kind == .value, "\(told)")
            count("refused")
        }
    }

    private func insert(
        _ rows: [(id: String?, one: SQLValue, picture: SQLValue)], by program: Connection,
        newKey: String
    ) throws {
        try program.execute("BEGIN")
        for row in rows {
            let statement = try program.prepare(
                row.id == nil
                    ? "INSERT INTO pages(id, one, picture) VALUES (\(newKey), ?1, ?2)"
                    : "INSERT INTO words(one, picture, id) VALUES (?1, ?2, ?3)")
            for (parameter, value) in [(Int32(1), row.one), (2, row.picture)] {
                switch value {
                case .text(let text): statement.bind(parameter, text: text)
                case .blob(let bytes): statement.bind(parameter, blob: bytes)
                default: statement.bindNull(parameter)
                }
            }
            if let id = row.id { statement.bind(3, text: id) }
            try statement.run()
        }
        try program.execute("COMMIT")
    }

    private func foreign() throws {
        let rows = giants()
        story.append("written to the device by another program")
        do {
            try insert(rows, by: author.connection(), newKey: "(SELECT id FROM martlet_new_id)")
            count("foreign")
        } catch let error as SQLiteError {
            story.append("refused: \(error.message.prefix(200))")
            try #require(error.message.contains("martlet:"), "\(told)")
            count("refused")
        }
    }

    private func outside() throws {
        let rows = giants(times: 4)
        story.append("written to the server by another program")
        try insert(rows, by: world.server.connection(), newKey: "NULL")
        count("outside")
        var steps = 0
        while let node = world.server.node, node.takeExternalWrites(now: 0) {
            steps += 1
            try #require(steps < 100, "\(told)")
        }
        try #require(world.server.node?.takeFault() == nil, "\(told)")
    }

    // MARK: - Arriving

    private func exchange(_ device: SmallDevice) throws {
        try device.sync(with: world.server)
        let errors = device.errors.map(\.message)
        try #require(errors.isEmpty, "\(told): \(errors)")
        try #require(try device.store.outboxCount == 0, "\(told): sets were left")
        for set in try device.store.parked() {
            story.append("refused by the server: \(set.message)")
            count("parked")
            let isOfServer = set.message.contains("the most that")
            let isOfNetwork = set.message.contains("as large as this save")
            try #require(isOfServer || isOfNetwork, "\(told)")
            try #require(isOfServer || world.server.longestBody < .max, "\(told)")
        }
        for record in try device.store.withheld() {
            story.append("withheld: \(record.message)")
            count("withheld")
            try #require(record.message.count > 20, "\(told)")
        }
    }

    /// Brings a device up to date by the stream, or by an exchange if the stream says so.
    private func follow(_ device: SmallDevice) throws {
        var batches = 0
        while let node = world.server.node {
            batches += 1
            try #require(batches < 100, "\(told)")
            var request = DeltaRequest(
                principal: Principal(name: "staff"), since: try device.store.revision)
            request.clientID = try device.store.clientID
            guard case .batch(let made) = node.feed.deltas(request) else {
                return try exchange(device)
            }
            if made.isEmpty { return }
            try #require(made.json.count <= Limits.inflatedBytes, "\(told)")
            let batch = try SyncCoder.decodeDeltaBatch(made.json)
            guard case .applied = try device.store.apply(batch, now: 1_000) else {
                return try exchange(device)
            }
            count("streamed")
        }
    }

    /// The rows that can be sent, by table and key.
    private func rows(on connection: Connection) throws -> [String: [[UInt8]]] {
        var found: [String: [[UInt8]]] = [:]
        for table in ["pages", "words"] {
            let rows = try connection.prepare("SELECT id, one, picture FROM \(table)")
            while try rows.step() {
                found["\(table) \(rows.text(0))"] = [rows.blob(1), rows.blob(2)]
            }
        }
        return found
    }

    /// Compares a device with the server. A row that is larger than any that can be sent is not there.
    private func compare(
        _ device: SmallDevice, _ expected: [String: [[UInt8]]], _ name: String
    ) throws {
        let found = try rows(on: device.connection())
        for (key, row) in expected where found[key] != row {
            let size = key.utf8.count + Self.escapedCount(row[0]) + row[1].count
            let isLarge = size > Limits.rowBytes * 3 / 4 - 10_000 && found[key] == nil
            try #require(isLarge, "\(told): \(name) lacks \(key.prefix(20)) of \(size) bytes")
            count("left out")
        }
        let more = found.keys.filter { expected[$0] == nil }.map { $0.prefix(20) }
        try #require(more.isEmpty, "\(told): \(name) has more: \(more)")
    }

    private static func escapedCount(_ text: [UInt8]) -> Int {
        text.reduce(0) { $0 + ($1 < 32 ? 6 : $1 == 34 ? 2 : 1) }
    }
}

@Suite("Giants at random")
struct GiantsAtRandomTests {
    /// How many worlds there are; more by hand: `MARTLET_GIANTS=200 scripts/run-tests --filter GiantsAtRandom`.
    private static let worlds =
        ProcessInfo.processInfo.environment["MARTLET_GIANTS"].flatMap { UInt64($0) } ?? 12

    @Test("what can be saved arrives everywhere, or is refused with a sentence")
    func arrive() throws {
        var tally: [String: Int] = [:]
        for seed in 0..<Self.worlds {
            let world = try GiantWorld(seed: seed)
            do {
                try world.run()
            } catch {
                Issue.record("\(world.told): \(error)")
            }
            tally.merge(world.tally, uniquingKeysWith: +)
        }
        print("giants: \(tally.sorted { $0.key < $1.key })")
        #expect(tally["saved", default: 0] > 0 && tally["refused", default: 0] > 0)
    }
}
