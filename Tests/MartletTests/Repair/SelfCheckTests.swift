import MartletModel
import MartletProtocol
import SQLiteRecords
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Finding what differs by halving")
struct SelfCheckTests {
    private static let type = EntityType(
        name: "things", key: "id", keyKind: .integer,
        attributes: [Attribute(name: "value", kind: .integer)])

    /// A record: its revision and its value.
    private struct Thing: Equatable {
        var revision: Revision
        var value: Int64

        var attributes: Attributes { Attributes(names: ["value"], values: [.integer(value)]) }

        func hash(_ id: RecordID) -> RangeHash {
            var hasher = RowHasher(type: SelfCheckTests.type)
            var hash = RangeHash()
            hash.add(row: hasher.hash(id, attributes))
            hash.add(mark: hasher.mark(id, revision))
            return hash
        }
    }

    /// The server as a dictionary; tombstones are those without a thing.
    private struct Model {
        let things: [Int64: Thing?]
        let rowsPerAnswer: Int
        private let keys: [Int64]

        init(things: [Int64: Thing?], rowsPerAnswer: Int = 40) {
            self.things = things
            self.rowsPerAnswer = rowsPerAnswer
            keys = things.keys.sorted()
        }

        /// The position of the first key that is not before a bound.
        private func position(of bound: RecordID) -> Int {
            var (low, high) = (0, keys.count)
            while low < high {
                let middle = (low + high) / 2
                if .integer(keys[middle]) < bound { low = middle + 1 } else { high = middle }
            }
            return low
        }

        func compare(_ request: CheckRequest) -> CheckAnswer {
            var room = rowsPerAnswer
            var answer = CheckAnswer(revision: 1_000)
            for type in request.types {
                var verdict = TypeVerdict(name: type.name)
                for range in type.ranges {
                    verdict.ranges.append(compare(range, request.revision, &room))
                }
                answer.types.append(verdict)
            }
            return answer
        }

        private func compare(
            _ range: CheckedRange, _ revision: Revision, _ room: inout Int
        ) -> RangeVerdict {
            let start = range.from.map { position(of: $0) } ?? 0
            let end = range.below.map { position(of: $0) } ?? keys.count
            let inside = keys[start..<max(start, end)]
            var without: [RecordID] = []
            var rows: [RecordEntry] = []
            var hash = RangeHash()
            for key in inside {
                let id = RecordID.integer(key)
                // A tombstone's revision is of no account here: it is newer than any thing's.
                guard let thing = things[key] ?? nil, thing.revision <= revision else {
                    without.append(id)
                    continue
                }
                hash = hash + thing.hash(id)
                rows.append(
                    RecordEntry(
                        id: id, revision: thing.revision, attributes: thing.attributes))
            }
            if without.isEmpty, hash == range.hash { return .equal }
            guard min(hash.count, range.hash.count) <= 16, room > 0 else {
                return .hash(hash, without: without)
            }
            let next = rows.count > room ? rows[room].id : nil
            rows = Array(rows.prefix(room))
            room -= rows.count
            return .rows(CheckedRows(rows: rows, next: next, without: without))
        }
    }

    private static func records(_ things: [Int64: Thing]) -> HashedRecords {
        var records = HashedRecords(type: type, attributes: type.attributes)
        for (key, thing) in things.sorted(by: { $0.key < $1.key }) {
            records.append(.integer(key), thing.hash(.integer(key)))
        }
        return records
    }

    @Test("finds all that differs and nothing else", arguments: 1...60 as ClosedRange<UInt64>)
    func randomDifferences(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        let count = [0, 1, 15, 17, 300, 3_000][dice.roll(6)]
        var things: [Int64: Thing] = [:]
        var key: Int64 = 0
        for _ in 0..<count {
            key += Int64(1 + dice.roll(4))
            things[key] = Thing(revision: Int64(1 + dice.roll(50)), value: Int64(dice.roll(9)))
        }
        var server: [Int64: Thing?] = things.mapValues { $0 }
        var expected: Set<Int64> = []
        for _ in 0..<[0, 1, 10, 200][dice.roll(4)] {
            let key = Int64(dice.roll(8_000) + 1)
            switch dice.roll(4) {
            case 0: things[key] = Thing(revision: 60, value: 100)
            case 1: things[key] = nil
            case 2: things[key]?.value += 1
            default:
                // Changed, or gone, since the device's revision.
                server[key] = dice.roll(2) == 0 ? Thing(revision: 500, value: 3) : .some(nil)
            }
        }
        for key in Set(things.keys).union(server.keys) {
            let other = server[key]
            if case .some(.none) = other { continue }
            if let thing = other ?? nil, thing.revision > 100 { continue }
            if things[key] != other ?? nil { expected.insert(key) }
        }
        var check = SelfCheck(revision: 100, records: [Self.records(things)])
        let model = Model(things: server)
        var found: [Int64] = []
        var rounds = 0
        while let request = check.next() {
            rounds += 1
            try #require(rounds < 400)
            let outcome = try check.take(model.compare(request))
            for difference in outcome.differences {
                guard case .integer(let key) = difference.id else { continue }
                found.append(key)
                #expect(difference.truth?.revision == (server[key] ?? nil)?.revision)
            }
        }
        #expect(found.sorted() == expected.sorted())
    }

    @Test("ten differences in forty thousand are found in two rounds")
    func rounds() throws {
        var things: [Int64: Thing] = [:]
        for key in 1...40_000 as ClosedRange<Int64> {
            things[key] = Thing(revision: key % 99, value: key)
        }
        var server: [Int64: Thing?] = things.mapValues { $0 }
        for key in stride(from: 2_000, through: 38_000, by: 4_000) as StrideThrough<Int64> {
            server[key] = Thing(revision: 7, value: -1)
        }
        let model = Model(things: server, rowsPerAnswer: 2_000)
        var check = SelfCheck(revision: 100, records: [Self.records(things)])
        var rounds = 0
        var found = 0
        while let request = check.next() {
            rounds += 1
            #expect(request.types[0].ranges.count <= 500)
            found += try check.take(model.compare(request)).differences.count
        }
        #expect(rounds == 2)
        #expect(found == 10)
    }

    @Test("an answer to something else is refused")
    func mismatch() throws {
        let records = Self.records([1: Thing(revision: 1, value: 1)])
        let answers = [
            CheckAnswer(revision: 1), CheckAnswer(revision: 1, types: [TypeVerdict(name: "x")]),
            CheckAnswer(revision: 1, types: [TypeVerdict(name: "things")]),
            CheckAnswer(
                revision: 1, types: [TypeVerdict(name: "things", ranges: [.equal, .equal])]),
        ]
        for answer in answers {
            var check = SelfCheck(revision: 1, records: [records])
            _ = check.next()
            #expect(throws: SelfCheck.Mismatch.self) { try check.take(answer) }
        }
    }
}

private struct Dice {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    }

    mutating func roll(_ sides: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % sides
    }
}
