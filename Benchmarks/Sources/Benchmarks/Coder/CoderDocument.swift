import MartletModel
import MartletProtocol

/// The answers the coder cases read and write: records of nine attributes, as a first import sends
/// them. The same bytes in every run.
enum CoderDocument {
    static var oneLargeSet: SyncAnswer {
        var random = SplitMix(state: 2014)
        let ids = (1...100_000).map { RecordID.integer(Int64($0)) }
        return SyncAnswer(maxRevision: 1001, changeSets: [set(creating: ids, &random)])
    }

    static var textIDs: SyncAnswer {
        var random = SplitMix(state: 2015)
        let ids = (1...100_000).map { _ in
            RecordID.text("\(random.next())-\(random.next())")
        }
        return SyncAnswer(maxRevision: 1001, changeSets: [set(creating: ids, &random)])
    }

    static var manySmallSets: SyncAnswer {
        var random = SplitMix(state: 2016)
        let sets = (1...50_000).map { number in
            var set = set(creating: [.integer(Int64(number))], &random)
            set.identifier = "\(random.next())"
            set.sequence = Int64(number)
            set.revision = Int64(number)
            return set
        }
        return SyncAnswer(maxRevision: 50_000, changeSets: sets)
    }

    private static let names = [
        "team_id", "player_id", "first_name", "last_name", "date_of_birth", "score", "active",
        "comment", "updated_at",
    ]

    private static func set(creating ids: [RecordID], _ random: inout SplitMix) -> ChangeSet {
        let entries = ids.map { id in
            RecordEntry(
                id: id, revision: 1001,
                attributes: Attributes(names: names, values: values(&random)))
        }
        return ChangeSet(types: [
            TypeChanges(name: "screen_instances", create: ids, entries: entries)
        ])
    }

    private static func values(_ random: inout SplitMix) -> [Value] {
        [
            .integer(Int64(random.next(below: 400))),
            .integer(Int64(random.next(below: 20_000))),
            .text(words[random.next(below: words.count)]),
            .text(words[random.next(below: words.count)]),
            .text("19\(70 + random.next(below: 30))-09-12 00:00:00.000+00"),
            .real(Double(random.next(below: 100_000)) / 100),
            .boolean(random.next(below: 2) == 0),
            random.next(below: 4) == 0 ? .null : .text(sentence(&random)),
            .text("2014-02-01T13:15:\(10 + random.next(below: 50)).487Z"),
        ]
    }

    private static let words = [
        "Florian", "Kugler", "Zoë", "Nguyen", "Ana", "O'Neill", "Jürgen", "Maximiliane",
    ]

    private static func sentence(_ random: inout SplitMix) -> String {
        (0..<4).map { _ in words[random.next(below: words.count)] }.joined(separator: " ")
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func next(below bound: Int) -> Int {
        Int(next(upperBound: UInt64(bound)))
    }
}
