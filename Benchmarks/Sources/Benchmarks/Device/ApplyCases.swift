import CStore
import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol

/// Remote change taken into a device's tables, beside a C program that writes the same rows.
enum ApplyCases {
    private static let rows = 100_000
    private static let pairs = 7

    @Sendable static func run() async throws {
        for keys in StoreKeys.allCases {
            try await apply(IncomingPlayers(keys, count: rows))
        }
        try await stream()
    }

    private static func apply(_ incoming: IncomingPlayers) async throws {
        let works: [(String, String?, (DeviceStore) throws -> Void)] = [
            ("change sets in memory", "1.4", incoming.applySets),
            ("deltas in memory, their payloads to be parsed", nil, incoming.applyBatch),
            ("an answer of POST /sync, parsed", "2", incoming.parseAndApplySets),
            ("a batch of the stream, parsed", "2", incoming.parseAndApplyBatch),
        ]
        for (what, expected, work) in works {
            try await StorePairs.run(
                pairs: pairs, group: "apply",
                "\(rows) rows, \(incoming.keys.rawValue), \(what)", expected: expected
            ) {
                try incoming.floor(isNoted: true)
            } ours: {
                let file = try StoreFile()
                defer { file.remove() }
                let store = try incoming.device(file.path)
                return try await StoreTime { try work(store) }
            }
        }
        // What of it is the revision that is kept of each row.
        try await StorePairs.run(
            pairs: pairs, group: "apply",
            "\(rows) rows, \(incoming.keys.rawValue), C with revisions beside C without",
            expected: nil
        ) {
            try incoming.floor(isNoted: false)
        } ours: {
            try incoming.floor(isNoted: true)
        }
    }

    /// A million deltas in batches, as a stream brings them: how much the process grows.
    private static func stream() async throws {
        let (batches, size) = (1_000, 1_000)
        let file = try StoreFile()
        defer { file.remove() }
        let source = try IncomingPlayers(.integers, count: size)
        let store = try source.device(file.path)
        var seconds = 0.0
        var before = 0.0
        for batch in 0...batches {
            let bytes = try source.batch(number: batch)
            let from = DispatchTime.now().uptimeNanoseconds
            try IncomingPlayers.apply(try SyncCoder.decodeDeltaBatch(bytes), to: store)
            guard batch > 0 else {
                // What is allocated once is not growth.
                before = try Machine.memory("VmRSS")
                try Machine.forgetPeak()
                continue
            }
            seconds += Double(DispatchTime.now().uptimeNanoseconds - from) / 1e9
        }
        try Measurement(
            "apply/\(batches * size) deltas in batches of \(size): growth of the resident peak",
            unit: "KiB", samples: [try Machine.memory("VmHWM") - before], expected: "flat"
        ).report()
        try Measurement(
            "apply/\(batches * size) deltas in batches of \(size), a durable commit each",
            unit: "s", samples: [seconds]
        ).report()
    }
}

/// Players as a server sends them: decoded and as bytes, as change sets and as deltas.
struct IncomingPlayers {
    let keys: StoreKeys
    private let players: StorePlayers
    private let sets: [ChangeSet]
    private let answer: [UInt8]
    private let deltas: DeltaBatch
    private let batch: [UInt8]

    private static let perSet = 100
    private static let names = [
        "team", "first_name", "last_name", "score", "shirt", "active", "note",
    ]

    init(_ keys: StoreKeys, count: Int) throws {
        self.keys = keys
        players = try StorePlayers(keys, count: count)
        let made = Self.sets(players, from: 0)
        answer = try SyncCoder.encode(
            SyncAnswer(maxRevision: Int64(made.count), changeSets: made))
        // As they come out of the reader.
        sets = try SyncCoder.decodeAnswer(answer).changeSets
        batch = try Self.batch(made, after: 0)
        deltas = try SyncCoder.decodeDeltaBatch(batch)
    }

    /// A batch as long as all the players, of records of their own for each number.
    func batch(number: Int) throws -> [UInt8] {
        let first = Int64(number) * Int64(sets.count)
        return try Self.batch(
            Self.sets(players, from: number), after: first)
    }

    private static func sets(_ players: StorePlayers, from batch: Int) -> [ChangeSet] {
        let all = UnsafeBufferPointer(start: players.rows, count: players.count)
        let setsEach = players.count / perSet
        return (0..<setsEach).map { number in
            let revision = Int64(batch * setsEach + number + 1)
            let entries = all[number * perSet..<(number + 1) * perSet].map { row in
                RecordEntry(
                    id: players.keys == .texts
                        ? .text(String(cString: row.key))
                        : .integer(row.number + Int64(batch * players.count)),
                    revision: revision,
                    attributes: Attributes(
                        names: names,
                        values: [
                            .integer(row.team), .text(String(cString: row.first_name)),
                            .text(String(cString: row.last_name)), .real(row.score),
                            row.shirt < 0 ? .null : .integer(row.shirt),
                            .boolean(row.active != 0), .text(String(cString: row.note)),
                        ]))
            }
            var set = ChangeSet(types: [
                TypeChanges(name: "players", create: entries.map(\.id), entries: entries)
            ])
            set.revision = revision
            return set
        }
    }

    private static func batch(_ sets: [ChangeSet], after revision: Int64) throws -> [UInt8] {
        let last = revision + Int64(sets.count)
        var bytes = SyncCoder.deltaHead(
            DeltaBatch(from: revision, deltas: [], nextVersion: last))
        for (index, set) in sets.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += try SyncCoder.encodeDeltas(
                of: set, revision: revision + Int64(index) + 1, seconds: 1_790_000_000)
        }
        return bytes + SyncCoder.deltaTail(nextVersion: last)
    }

    /// A device's file without records.
    func device(_ path: String) throws -> DeviceStore {
        var random = SplitMix(state: 4)
        return try DeviceStore(path: path, script: keys.schema) { random.next() }
    }

    /// The same rows written by C.
    func floor(isNoted: Bool) throws -> StoreTime {
        let file = try StoreFile()
        defer { file.remove() }
        return try StoreFile.floor { result in
            let code = store_create(file.path, keys.flag)
            guard code == 0 else { return code }
            return store_apply(
                file.path, players.rows, Int32(players.count), keys.flag, isNoted ? 1 : 0, &result)
        }
    }

    // MARK: - Ways in

    func applySets(to store: DeviceStore) throws { try Self.apply(sets, to: store) }

    func applyBatch(to store: DeviceStore) throws { try Self.apply(deltas, to: store) }

    func parseAndApplySets(to store: DeviceStore) throws {
        try Self.apply(try SyncCoder.decodeAnswer(answer).changeSets, to: store)
    }

    func parseAndApplyBatch(to store: DeviceStore) throws {
        try Self.apply(try SyncCoder.decodeDeltaBatch(batch), to: store)
    }

    private static func apply(_ sets: [ChangeSet], to store: DeviceStore) throws {
        let report = try store.apply(
            sets[...], reaching: Int64(sets.count), lineage: nil, dataSet: nil, owner: "benchmark",
            now: 0)
        guard report != nil else { throw BenchmarkFailure("The answer was not applied.") }
    }

    static func apply(_ batch: DeltaBatch, to store: DeviceStore) throws {
        guard case .applied = try store.apply(batch, now: 0) else {
            throw BenchmarkFailure("The batch was not applied.")
        }
    }
}
