/// Batches of requests from a seed: a few devices that make, change and delete a few records, each
/// other's too, send sets twice, wait for others, and use numbers and identifiers again.
package struct RandomSets {
    /// The types they are of.
    package static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        CREATE TABLE notes (
            id INTEGER PRIMARY KEY, text TEXT NOT NULL,
            player_id INTEGER REFERENCES players (id) ON DELETE SET NULL);
        CREATE TABLE words (id TEXT PRIMARY KEY NOT NULL, text TEXT);
        """
    private static let types = ["teams", "players", "notes", "words"]

    private var state: UInt64
    /// The number of the next set.
    private var next = 0

    package init(seed: UInt64) {
        state = seed &* 7_919 &+ 1
    }

    private mutating func below(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state ^ (state >> 29)) >> 33) % bound
    }

    private mutating func oneIn(_ number: Int) -> Bool { below(number) == 0 }

    private mutating func recent(_ back: Int) -> Int { max(0, next - below(back)) }

    /// One batch.
    /// - Parameters:
    ///   - head: The newest revision.
    ///   - revisions: Those of the records that there are, by “teams 1”.
    package mutating func requests(at head: Int64, revisions: [String: Int64]) -> [String] {
        var texts: [String] = []
        for _ in 0..<(2 + below(5)) {
            var sets: [String] = []
            for _ in 0..<(1 + below(3)) {
                sets.append(set(revisions).description)
                next += 1
            }
            let device = below(4)
            let name = device == 0 ? "" : "\"clientId\":\"d\(device)\","
            let since = oneIn(4) ? max(0, head - 3) : head
            texts.append(
                "{\(name)\"maxRevision\":\(since),\"changeSets\":[\(sets.joined(separator: ","))]}")
            if oneIn(6) { texts.append(texts[0]) }
        }
        return texts
    }

    private mutating func set(_ revisions: [String: Int64]) -> SetText {
        let name = oneIn(15) ? nil : "s\(oneIn(15) ? recent(4) : next)"
        let sequence = oneIn(15) ? nil : oneIn(10) ? recent(4) + 1 : next + 1
        var set = SetText(name, sequence: sequence, after: oneIn(10) ? "s\(recent(4))" : nil)
        var used: Set<Int> = []
        for _ in 0...(oneIn(3) ? 1 : 0) {
            let kind = below(9)
            let type = kind < 3 ? 0 : kind < 5 || kind == 8 ? 1 : kind == 5 ? 2 : 3
            guard used.insert(type).inserted else { continue }
            add(kind, Self.types[type], to: &set, revisions)
        }
        return set
    }

    private mutating func add(
        _ kind: Int, _ type: String, to set: inout SetText, _ revisions: [String: Int64]
    ) {
        let temporary = "-\(recent(3) + 1)"
        let known = oneIn(3) ? "-\(recent(3) + 1)" : "\(1 + below(6))"
        let letter = ["A", "B", "C"][below(3)]
        let base = revisions["\(type) \(type == "words" ? letter + "1" : known)"] ?? 0
        let revision = "\"revision\":\(oneIn(8) ? base / 2 : base)"
        switch kind {
        case 0: set = set.create(type, temporary, "\"name\":\"\(letter)\(next % 5)\"")
        case 1: set = set.update(type, known, "\(revision),\"name\":\"\(letter)\"")
        case 2: set = set.delete(type, known, revision)
        case 3: set = set.create(type, temporary, "\"team_id\":\(known)")
        case 4: set = set.update(type, known, "\(revision),\"team_id\":\(known)")
        case 5: set = set.create(type, temporary, "\"text\":\"t\",\"player_id\":\(known)")
        case 6: set = set.create(type, letter + "1", "\"text\":\"\(next)\"")
        case 7: set = set.update(type, letter + "1", "\(revision),\"text\":\"u\"")
        default: set = set.delete(type, known)
        }
    }

    /// Returns the revisions of the server's records, by “teams 1”.
    package static func revisions(on server: some JSONServer) throws -> [String: Int64] {
        let lines = try server.rows("SELECT type, id, revision FROM martlet_records")
        var revisions: [String: Int64] = [:]
        for line in lines.split(separator: "\n") {
            let parts = line.split(separator: "|")
            guard parts.count == 3, let type = Int(parts[0]), let revision = Int64(parts[2]) else {
                continue
            }
            revisions["\(types[type - 1]) \(parts[1])"] = revision
        }
        return revisions
    }
}
