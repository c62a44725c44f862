import MartletModel
import MartletProtocol
import SQLiteFaults
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// Random sets from several devices, given to the server and to the oracle.
private struct ModelRun {
    typealias Wish = ModelOracle.Wish
    typealias Key = ModelOracle.Key

    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT UNIQUE, size INTEGER);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE,
            mentor_id INTEGER REFERENCES players (id) ON DELETE SET NULL);
        CREATE TABLE trophies (
            id TEXT PRIMARY KEY, code TEXT UNIQUE,
            team_id INTEGER REFERENCES teams (id) ON DELETE RESTRICT);
        """
    static let trigger = """
        CREATE TABLE unrelated (id INTEGER PRIMARY KEY);
        CREATE TRIGGER idle AFTER INSERT ON unrelated BEGIN SELECT 1; END;
        """

    let script: String
    let disk: FaultDisk
    var random: Numbers
    var store: EmbeddedStore
    var node: DataSetNode
    var oracle = ModelOracle()
    var sequences: [String: Int] = [:]
    var temporaries: [String: Int64] = [:]
    /// Sets sent before: device, text, fate.
    var sent: [(device: String, text: String, fate: String)] = []
    var fates: [String: Int] = [:]
    /// The log folded.
    var folded: [Key: [String: Value]] = [:]
    var foldedRevisions: [Key: Int64] = [:]
    var foldedThrough: Int64 = 0

    init(seed: UInt64, hasTriggers: Bool) throws {
        script = Self.schema + (hasTriggers ? Self.trigger : "")
        disk = FaultDisk(name: "model-\(seed)-\(hasTriggers)", seed: seed)
        random = Numbers(state: seed)
        store = try EmbeddedStore(
            path: "/data.sqlite", vfs: disk.vfsName, script: script, identity: "abc", now: 0)
        node = try DataSetNode(store: store)
    }

    // MARK: - Making sets

    mutating func pick(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func id(of type: String, _ device: String) -> RecordID {
        if pick(12) == 0 { return .integer(Int64(-1 - pick(6))) }
        let known = oracle.history.keys.filter { $0.type == type }.sorted { $0.id < $1.id }
        guard !known.isEmpty else { return type == "trophies" ? .text("t0") : .integer(1) }
        return known[pick(known.count)].id
    }

    mutating func attributes(of type: String, _ device: String) -> [String: Value] {
        var attributes: [String: Value] = [:]
        func maybe(_ name: String, _ value: Value) { attributes[name] = value }
        switch type {
        case "teams":
            if pick(3) > 0 { maybe("name", .text("n\(pick(8))")) }
            if pick(2) == 0 { maybe("size", .integer(Int64(pick(100)))) }
        case "players":
            if pick(2) == 0 { maybe("name", .text("p\(pick(100))")) }
            if pick(3) > 0 {
                maybe("team_id", pick(6) == 0 ? .null : id(of: "teams", device).value)
            }
            if pick(3) == 0 { maybe("mentor_id", id(of: "players", device).value) }
        default:
            if pick(2) == 0 { maybe("code", .text("c\(pick(5))")) }
            if pick(2) == 0 { maybe("team_id", id(of: "teams", device).value) }
        }
        return attributes
    }

    mutating func wishes(_ device: String) -> [Wish] {
        var wishes: [Wish] = []
        var named: Set<Key> = []
        for _ in 0...pick(4) {
            let type = ["teams", "players", "trophies"][pick(3)]
            switch pick(5) {
            case 0, 1:
                var id = RecordID.text("t\(pick(12))")
                if type != "trophies" {
                    temporaries[device, default: 0] -= pick(8) == 0 ? 0 : 1
                    id = .integer(min(-1, temporaries[device] ?? -1))
                }
                guard named.insert(Key(type: type, id: id)).inserted else { continue }
                wishes.append(
                    Wish(
                        verb: .create, type: type, id: id,
                        attributes: attributes(of: type, device)))
            case 2, 3:
                let id = id(of: type, device)
                guard id.isTemporary == false || type != "trophies",
                    named.insert(Key(type: type, id: id)).inserted
                else { continue }
                wishes.append(
                    Wish(
                        verb: .update, type: type, id: id,
                        base: base(Key(type: type, id: id), device),
                        attributes: attributes(of: type, device)))
            default:
                let id = id(of: type, device)
                guard id.isTemporary == false || type != "trophies",
                    named.insert(Key(type: type, id: id)).inserted
                else { continue }
                let hasBase = pick(2) == 0
                wishes.append(
                    Wish(
                        verb: .delete, type: type, id: id,
                        base: hasBase ? base(Key(type: type, id: id), device) : nil))
            }
        }
        return wishes
    }

    mutating func base(_ key: Key, _ device: String) -> Int64 {
        let changes = oracle.history[oracle.permanent(key, device)] ?? []
        guard let last = changes.last else { return Int64(pick(3)) }
        switch pick(10) {
        case 0: return last.revision + 1
        case 1, 2: return changes[pick(changes.count)].revision
        default: return last.revision
        }
    }

    /// The set's JSON, with types in the order they first come, as the server lists them.
    func text(_ wishes: [Wish], identifier: String, sequence: Int, seen: Int64) -> SetText {
        var set = SetText(identifier, sequence: sequence, seen: seen)
        for wish in wishes {
            var members: [String] = []
            if let base = wish.base { members.append("\"revision\":\(base)") }
            for (name, value) in wish.attributes.sorted(by: { $0.key < $1.key }) {
                let quoted: Bool
                if case .text = value { quoted = true } else { quoted = false }
                members.append("\"\(name)\":\(quoted ? "\"\(value.short)\"" : value.short)")
            }
            let json = members.joined(separator: ",")
            switch wish.verb {
            case .create: set = set.create(wish.type, wish.id.description, json)
            case .update: set = set.update(wish.type, wish.id.description, json)
            case .delete:
                set = set.delete(wish.type, wish.id.description, members.isEmpty ? nil : json)
            }
        }
        return set
    }

    // MARK: - A step

    mutating func step(_ number: Int) throws {
        let device = "d\(pick(3))"
        let maxRevision = max(0, oracle.revision - Int64(pick(4) == 0 ? pick(6) : 0))
        var texts: [String] = []
        var made: [(wishes: [Wish], text: String, fate: String)] = []
        if pick(8) == 0,
            let old = sent.filter({ $0.device == device }).randomElement(using: &random)
        {
            texts.append(old.text)
            made.append(([], old.text, old.fate))
        }
        // New records of this request that were refused, under keys that another one may have.
        var uncreated: Set<ModelOracle.Key> = []
        for (_, text, fate) in made where !fate.hasPrefix("accepted") {
            for changes in try SyncCoder.decodeChangeSet(Array(text.utf8)).types {
                uncreated.formUnion(
                    changes.create.filter { !$0.isTemporary }
                        .map { ModelOracle.Key(type: changes.name, id: $0) })
            }
        }
        for _ in 0...pick(3) {
            let wishes = wishes(device)
            guard !wishes.isEmpty else { continue }
            sequences[device, default: 0] += 1
            let sequence = sequences[device] ?? 0
            let seen = max(0, maxRevision - Int64(pick(3) == 0 ? pick(8) : 0))
            // Wishes come grouped by type and verb on the wire; so does the oracle take them.
            let order = wishes.reduce(into: [String]()) {
                if !$0.contains($1.type) { $0.append($1.type) }
            }
            let sorted = order.flatMap { type in wishes.filter { $0.type == type } }
            let text = text(
                sorted, identifier: "\(device)-\(sequence)", sequence: sequence, seen: seen
            ).description
            let isOnTop = sorted.contains {
                $0.verb != .create && uncreated.contains(.init(type: $0.type, id: $0.id))
            }
            let fate =
                isOnTop ? "dependency" : oracle.decide(sorted, seen: seen, device: device)
            let created = sorted.filter { $0.verb == .create && !$0.id.isTemporary }
                .map { ModelOracle.Key(type: $0.type, id: $0.id) }
            if fate.hasPrefix("accepted") {
                uncreated.subtract(created)
            } else {
                uncreated.formUnion(created)
            }
            texts.append(text)
            made.append((sorted, text, fate))
        }
        let json = """
            {"clientId":"\(device)","maxRevision":\(maxRevision),\
            "changeSets":[\(texts.joined(separator: ","))]}
            """
        let bytes = Array(json.utf8)
        let admitted = AdmittedRequest(
            principal: .ada, request: try SyncCoder.decodeRequest(bytes), source: bytes)
        let prepared = try node.process([admitted], now: Int64(number))[0].get()
        let answer = try SyncCoder.decodeAnswer(prepared.body)
        try check(answer, made, device, since: maxRevision)
        for (wishes, text, fate) in made where !wishes.isEmpty {
            sent.append((device, text, fate))
            fates[String(fate.prefix { $0 != " " }), default: 0] += 1
        }
        if pick(25) == 0 { try restart() }
    }

    mutating func restart() throws {
        disk.restart(.nothing, using: &random)
        store = try EmbeddedStore(
            path: "/data.sqlite", vfs: disk.vfsName, script: script, identity: "abc", now: 0)
        node = try DataSetNode(store: store)
    }

    private func check(
        _ answer: SyncAnswer, _ made: [(wishes: [Wish], text: String, fate: String)],
        _ device: String, since: Int64
    ) throws {
        #expect(answer.maxRevision == oracle.revision)
        let missed = answer.changeSets.compactMap(\.revision).filter { $0 > since }
        #expect(missed == Array(since..<oracle.revision).map { $0 + 1 })
        var refused = answer.changeSets.filter { $0.conflict == true }
        for (wishes, text, fate) in made {
            guard !fate.hasPrefix("accepted") else {
                #expect(
                    answer.changeSets.contains { $0.fate == fate && $0.conflict == false },
                    "\(fate) is missing for \(text)")
                continue
            }
            let set = try #require(refused.first, "\(fate) for \(text)")
            refused.removeFirst()
            #expect(set.fate == fate, "\(set.message ?? "") \(text)")
            checkTruth(set, wishes, device)
        }
        #expect(refused.isEmpty)
    }

    /// The truth names all the set named and what its deletes would reach, as it now is.
    private func checkTruth(_ set: ChangeSet, _ wishes: [Wish], _ device: String) {
        var told: Set<Key> = []
        for type in set.types {
            for entry in type.entries {
                let key = Key(type: type.name, id: entry.id)
                told.insert(key)
                let row = oracle.rows[key]?.attributes.filter { $0.value != .null }
                let sent = Dictionary(
                    uniqueKeysWithValues: zip(entry.attributes.names, entry.attributes.values))
                #expect(row == sent)
                #expect(entry.revision == oracle.history[key]?.last?.revision)
            }
            for id in type.delete {
                told.insert(Key(type: type.name, id: id))
                #expect(oracle.rows[Key(type: type.name, id: id)] == nil)
            }
        }
        let keys = wishes.map { oracle.permanent(Key(type: $0.type, id: $0.id), device) }
        let deletes = wishes.filter { $0.verb == .delete }
            .map { oracle.permanent(Key(type: $0.type, id: $0.id), device) }
        let reach = oracle.reach(deletes.filter { oracle.rows[$0] != nil }, in: oracle.rows)
        let expected = Set(keys).union(reach.gone).union(reach.emptied)
        #expect(wishes.isEmpty || told == expected)
    }

    // MARK: - The whole

    /// Folds the log on, and compares it with the tables and with the oracle.
    mutating func checkAll() throws {
        let log = EmbeddedLog(path: "/data.sqlite", vfs: disk.vfsName)
        for entry in try log.entries(from: foldedThrough + 1, through: 1 << 40, maxBytes: .max) {
            fold(try SyncCoder.decodeChangeSet(entry.body))
            foldedThrough = entry.revision
        }
        #expect(foldedThrough == oracle.revision)
        let wanted = oracle.rows.mapValues { $0.attributes.filter { $0.value != .null } }
        #expect(folded == wanted)
        let connection = try Connection(path: "/data.sqlite", vfs: disk.vfsName)
        #expect(try connection.text("PRAGMA foreign_key_check") == nil)
        var stored: [Key: [String: Value]] = [:]
        for type in try SchemaReader.read(connection).types {
            try RecordTable(type: type, connection: connection).forEach { id, row in
                stored[Key(type: type.name, id: id)] = Dictionary(
                    uniqueKeysWithValues: zip(row.names, row.values).filter { $0.1 != .null })
            }
        }
        #expect(stored == wanted)
        for (key, changes) in oracle.history where oracle.rows[key] != nil {
            #expect(foldedRevisions[key] == changes.last?.revision)
        }
    }

    private mutating func fold(_ set: ChangeSet) {
        for type in set.types {
            for entry in type.entries {
                let key = Key(type: type.name, id: entry.id)
                if type.create.contains(entry.id) {
                    #expect(folded[key] == nil)
                    folded[key] = [:]
                }
                #expect(folded[key] != nil)
                for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                    folded[key]?.removeValue(forKey: name)
                    if value != .null { folded[key]?[name] = value }
                }
                foldedRevisions[key] = entry.revision
            }
            for id in type.delete {
                let key = Key(type: type.name, id: id)
                #expect(folded[key] != nil)
                folded[key] = nil
            }
        }
    }
}

@Suite("Random sets against a model")
struct ModelTests {
    @Test(
        "verdicts, rows, truths and the folded log are the oracle's",
        arguments: [1, 2, 3, 4, 5, 6] as [UInt64], [false, true])
    func model(seed: UInt64, hasTriggers: Bool) throws {
        var run = try ModelRun(seed: seed, hasTriggers: hasTriggers)
        for number in 0..<250 {
            try run.step(number)
            if number % 10 == 9 { try run.checkAll() }
        }
        try run.checkAll()
        // A run that meets only one kind of verdict tests little.
        #expect(run.fates.count >= 5, "\(run.fates)")
        #expect(run.fates["accepted", default: 0] > 40, "\(run.fates)")
    }
}
