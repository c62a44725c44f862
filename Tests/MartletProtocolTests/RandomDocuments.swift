import MartletModel
import MartletProtocol

/// Random messages, and random damage to their bytes.
struct RandomDocuments {
    var dice: Dice

    init(seed: UInt64) {
        dice = Dice(seed: seed)
    }

    // MARK: Messages

    mutating func request() -> SyncRequest {
        var request = SyncRequest(
            maxRevision: Int64(dice.below(1000)), changeSets: changeSets())
        if dice.once(in: 2) { request.clientID = name() }
        if dice.once(in: 2) { request.protocolVersion = 1 }
        if dice.once(in: 2) { request.acknowledged = Int64(dice.below(50)) }
        if dice.once(in: 2) { request.dataSet = name() }
        if dice.once(in: 2) { request.lineage = name() }
        if dice.once(in: 2) { request.schema = name() }
        return request
    }

    mutating func answer() -> SyncAnswer {
        var answer = SyncAnswer(
            maxRevision: Int64.max - Int64(dice.below(3)), more: dice.once(in: 2),
            changeSets: changeSets())
        if dice.once(in: 2) { answer.dataSet = name() }
        if dice.once(in: 2) { answer.lineage = name() }
        return answer
    }

    private mutating func changeSets() -> [ChangeSet] {
        (0..<dice.below(4)).map { _ in changeSet() }
    }

    mutating func changeSet() -> ChangeSet {
        var names: [String] = []
        while names.count < dice.below(4) {
            let name = name()
            if !names.contains(name) { names.append(name) }
        }
        var set = ChangeSet(types: names.map { changes($0) })
        if dice.once(in: 2) { set.identifier = name() }
        if dice.once(in: 2) { set.sequence = Int64(dice.below(100)) }
        if dice.once(in: 2) { set.seen = Int64(dice.below(100)) }
        if dice.once(in: 3) { set.dependencyIdentifier = name() }
        if dice.once(in: 3) { set.timestamp = "2026-11-21T09:12:44.120Z" }
        if dice.once(in: 3) { set.revision = Int64(dice.below(100)) }
        if dice.once(in: 3) { set.conflict = dice.once(in: 2) }
        if dice.once(in: 3) { set.reason = .stale }
        if dice.once(in: 3) { set.message = text() }
        if dice.once(in: 3) { set.retryAfter = Int64(dice.below(100)) }
        return set
    }

    private mutating func changes(_ name: String) -> TypeChanges {
        var changes = TypeChanges(name: name)
        var used: Set<RecordID> = []
        for _ in 0..<dice.below(6) {
            let id = id()
            guard used.insert(id).inserted else { continue }
            var entry = RecordEntry(id: id, attributes: attributes())
            if dice.once(in: 2) { entry.revision = Int64(dice.below(100)) }
            switch dice.below(3) {
            case 0:
                changes.create.append(id)
                if dice.once(in: 2) { entry.oldID = self.id() }
            case 1: changes.update.append(id)
            default:
                changes.delete.append(id)
                guard dice.once(in: 2) else { continue }
            }
            changes.entries.append(entry)
        }
        return changes
    }

    private mutating func id() -> RecordID {
        if dice.once(in: 3) { return .text("t\(dice.below(100))" + text()) }
        let number = dice.once(in: 5) ? Int64(bitPattern: dice.next()) : Int64(dice.below(40)) - 20
        return .integer(number == 0 ? Int64.min : number)
    }

    mutating func attributes() -> Attributes {
        var names: [String] = []
        for _ in 0..<dice.below(dice.once(in: 8) ? 30 : 4) {
            let name = name()
            if !names.contains(name) { names.append(name) }
        }
        return Attributes(names: names, values: names.map { _ in value() })
    }

    mutating func value() -> Value {
        switch dice.below(8) {
        case 0: return .null
        case 1: return .boolean(dice.once(in: 2))
        case 2: return .integer(Int64(dice.below(2000)) - 1000)
        case 3: return .integer(dice.pick([.max, .min, 0, 1 << 53, -1 << 53 - 1]))
        case 4:
            let number = Double(bitPattern: dice.next())
            return .real(number.isFinite ? number : 0)
        case 5: return .real(Double(dice.below(100_000)) / dice.pick([1, 10, 100, 3]))
        default: return .text(text())
        }
    }

    private mutating func name() -> String {
        dice.pick(["a", "b", "name", "screen_items", "ä", "x\"y", "日本", "n", "e"])
            + (dice.once(in: 2) ? "\(dice.below(9))" : "")
    }

    mutating func text() -> String {
        let pieces = [
            "a", "Zoë", "\"", "\\", "/", "\n", "\u{0}", "\u{1F}", "\u{7F}", "\u{2028}", "😀",
            "e\u{301}", "\u{FFFD}", "\u{10FFFF}", " ", "Kugler", "\t", "\u{8}\u{C}\r",
        ]
        return (0..<dice.below(5)).map { _ in dice.pick(pieces) }.joined()
    }

    // MARK: Damage

    /// Changes a few bytes: replaced, removed, repeated, or exchanged for pieces of JSON.
    mutating func damage(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0...dice.below(3) where !bytes.isEmpty {
            let start = dice.below(bytes.count)
            let end = min(bytes.count, start + 1 + dice.below(8))
            switch dice.below(7) {
            case 0: bytes[start] = UInt8(truncatingIfNeeded: dice.next())
            case 1: bytes.remove(at: start)
            case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
            case 3: bytes.removeSubrange(start..<end)
            case 4: bytes.removeSubrange(start...)
            case 5: bytes.insert(contentsOf: piece(), at: start)
            default: bytes.replaceSubrange(start..<end, with: piece())
            }
        }
        return bytes
    }

    private mutating func piece() -> [UInt8] {
        let pieces = [
            "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", "1e9", ".5", "null", "true", "1",
            "\\ud800", "\\udc00", "\\u0000", "\"a\":1,", "[[[[", "{\"a\":", " ", "\n", "\u{FEFF}",
            "\"types\":[],", "\"revision\":1,", "9223372036854775808", "1e999", "é", "-0", "00",
        ]
        let wild: [[UInt8]] = [
            [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5], [0xE2, 0x82], [0], [0x1F],
        ]
        return dice.once(in: 6) ? dice.pick(wild) : [UInt8](dice.pick(pieces).utf8)
    }
}
