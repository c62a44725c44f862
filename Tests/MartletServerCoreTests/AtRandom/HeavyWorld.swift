import MartletModel
import MartletProtocol
import MartletTesting
import SQLiteKit

@testable import MartletEmbedded
@testable import MartletServerCore

/// A server whose members and other programs make it much work: rows and transactions of all sizes, hubs
/// with thousands of rows behind them, long defaults, slow triggers, and devices without end. The bounds of
/// work are small, so that few rows reach them.
///
/// What devices receive they can take, a set takes no more work than its bound, and an honest device's
/// small set is accepted at every moment.
final class HeavyWorld {
    /// The steps of SQLite's machine that one piece of a set's work may take.
    private let mostSteps: Int
    private static let mostAffected = 40
    private static let mostDevices = 5

    private let seed: UInt64
    private let file: ServedFile
    private var random: SeededRandom
    private let hasTrigger: Bool
    /// Whether values are large, in place of many rows.
    private let isLarge: Bool
    private var history: [String] = []
    private var count = 0
    private var calm: Int64 = 0
    /// What the database gives each new record of these tables by itself, in bytes.
    private let stamps: [String: Int]
    private(set) var tally: [String: Int] = [:]

    init(seed: UInt64) throws {
        self.seed = seed
        var random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 29)
        let isLarge = seed % 4 == 0
        let hasTrigger = !isLarge && random.chance(40)
        let stamps = ["hubs", "words"].reduce(into: [:]) { stamps, table in
            stamps[table] = Int.random(in: 0...(isLarge ? 60_000 : 60), using: &random)
        }
        let script = Self.script(stamps, isLarge: isLarge, hasTrigger: hasTrigger, &random)
        // With more steps it is the number of records that ends a set.
        let mostSteps = random.one(of: [60_000, 600_000])
        (self.isLarge, self.hasTrigger, self.random) = (isLarge, hasTrigger, random)
        (self.stamps, self.mostSteps) = (stamps, mostSteps)
        file = try ServedFile(
            "heavy-\(seed)", script: script,
            tables: ["hubs", "spokes", "words", "calm"].map { name in
                ServedTable(
                    name: name, key: "id", isText: name == "words",
                    columns: HeavyWorld.columns[name] ?? [])
            })
        file.prepare = { node, session in
            node.devicesPerUser = Self.mostDevices
            // Where sizes matter, nothing else ends a set.
            if !isLarge { session.bound.most = mostSteps }
            session.bound.mostAffected = Self.mostAffected
        }
        file.prepare(try file.node, try file.session)
        file.judge = { [unowned self] in judge($0, $1) }
    }

    private static let columns: [String: [(name: String, kind: ServedTable.Kind)]] = [
        "hubs": [("name", .text), ("hub", .integer), ("stamp", .text)],
        "spokes": [("body", .text), ("hub", .integer)],
        "words": [("body", .text), ("hub", .integer), ("stamp", .text)],
        "calm": [("n", .integer)],
    ]

    private static func script(
        _ stamps: [String: Int], isLarge: Bool, hasTrigger: Bool, _ random: inout SeededRandom
    ) -> String {
        let actions = ["CASCADE", "SET NULL"]
        let (ofHub, ofWord) = (stamps["hubs"] ?? 0, stamps["words"] ?? 0)
        var script = """
            CREATE TABLE hubs(
                id INTEGER PRIMARY KEY, name TEXT, hub INTEGER REFERENCES hubs ON DELETE CASCADE,
                stamp TEXT DEFAULT (printf('%.*c', \(ofHub), 'd')));
            CREATE TABLE spokes(
                id INTEGER PRIMARY KEY, body TEXT,
                hub INTEGER REFERENCES hubs ON DELETE \(random.one(of: actions)));
            CREATE TABLE words(
                id TEXT PRIMARY KEY, body TEXT,
                hub INTEGER REFERENCES hubs ON DELETE \(random.one(of: actions)),
                stamp TEXT DEFAULT (printf('%.*c', \(ofWord), 'd')));
            CREATE TABLE calm(id INTEGER PRIMARY KEY, n INTEGER);
            """
        for table in ["hubs", "spokes", "words"] where isLarge || random.chance(40) {
            script += " CREATE INDEX of_\(table) ON \(table)(hub);"
        }
        if isLarge, random.chance(50) {
            // One new record makes all that refer to its hub longer.
            script += """
                 CREATE TRIGGER swell AFTER INSERT ON words WHEN NEW.hub IS NOT NULL BEGIN
                    UPDATE spokes SET body = body || 'y' WHERE hub = NEW.hub;
                END;
                """
        }
        if hasTrigger {
            let event = random.one(of: ["INSERT", "UPDATE", "DELETE"])
            let table = random.one(of: ["hubs", "words"])
            let others = random.one(of: ["spokes AS a", "spokes AS a, spokes AS b"])
            script += """
                 CREATE TRIGGER slow AFTER \(event) ON \(table) BEGIN
                    UPDATE calm SET n = n WHERE id = 0 AND (SELECT count(*) FROM \(others)) > 0;
                END;
                """
        }
        return script
    }

    /// What is wrong, with the story; nothing if all is well.
    func run(steps: Int) -> [String] {
        do {
            try beCalm()
            for _ in 0..<steps where file.faults.isEmpty {
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<35: try write()
                case 35..<90: try exchange()
                default: try invent()
                }
                try file.converge()
                try beCalm()
            }
            try file.compare()
            if file.faults.isEmpty { try file.compareWhole() }
        } catch {
            file.fail("\(error)")
        }
        guard !file.faults.isEmpty else { return [] }
        return file.faults.prefix(5).map { "!! \($0)" } + ["seed \(seed)", file.script]
            + history.suffix(10).map(\.clipped)
    }

    private func note(_ name: String) { tally[name, default: 0] += 1 }

    /// Every device can take each entry, and each record in it.
    private func judge(_ entry: LogEntry, _ set: ChangeSet) -> String? {
        guard entry.body.count <= Limits.entryBytes else {
            return "entry \(entry.revision) has \(entry.body.count) bytes: no device takes it"
        }
        for record in set.types.flatMap(\.entries) {
            let bytes = record.attributes.wireByteCount
            if bytes > Limits.rowBytes { return "a record of \(bytes) bytes is in the log" }
        }
        return nil
    }

    // MARK: - Another program

    private func size() -> Int {
        guard isLarge else { return Int.random(in: 0...200, using: &random) }
        let power = Int.random(in: 3...26, using: &random)
        let size = Int.random(in: 1 << (power - 1)...1 << power, using: &random)
        let edges = [
            Limits.rowBytes, Limits.rowBytes / 2, Limits.rowBytes - Limits.requestHeadBytes,
            Limits.entryBytes, Limits.inflatedBytes, Limits.answerBytes,
        ]
        return random.chance(40) ? random.one(of: edges) + random.one(of: [-300, 0, 300]) : size
    }

    /// One transaction of rows of any size, parents after their children now and then.
    private func write() throws {
        let connection = try file.program()
        try connection.execute("PRAGMA foreign_keys = OFF; BEGIN")
        var room = isLarge ? 80 << 20 : 0
        let hub = try (connection.integer("SELECT max(id) FROM hubs") ?? 0) + 1
        var rows = 0
        if isLarge {
            if random.chance(50) {
                rows = try writeSheet(connection, hub)
                room = 0
            }
            for _ in 0..<(room == 0 ? 0 : Int.random(in: 1...6, using: &random)) {
                let size = min(size(), room)
                room -= size
                let table = random.one(of: ["hubs(name, hub)", "spokes(body, hub)"])
                let parent = hub + Int64.random(in: 0...4, using: &random)
                try connection.execute(
                    "INSERT INTO \(table) VALUES (printf('%.*c', \(size), 'x'), \(parent))")
                rows += 1
            }
            for id in hub...hub + 4 {
                try connection.execute(
                    """
                    INSERT OR IGNORE INTO hubs(id, name, stamp)
                    VALUES (\(id), printf('%.*c', \(min(size(), room)), 'x'), NULL)
                    """)
            }
        } else {
            rows = Int.random(in: 1...2_000, using: &random)
            let hubs = random.one(of: [1, 4, Int.random(in: 1...60, using: &random)])
            for (table, columns, count) in [
                ("spokes", "body, hub", rows), ("hubs", "name, hub", hubs),
            ] {
                let parent = table == "hubs" ? "NULL" : "\(hub) + i % \(hubs)"
                try connection.execute(
                    """
                    WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < \(count - 1))
                    INSERT INTO \(table)(\(columns)) SELECT 'r' || i, \(parent) FROM c
                    """)
            }
        }
        try connection.execute("COMMIT")
        history.append("-- a program wrote \(rows) rows behind hub \(hub)")
        note("written")
    }

    /// Many rows of one size: together more than an answer or an entry holds.
    private func writeSheet(_ connection: Connection, _ hub: Int64) throws -> Int {
        let count = Int.random(in: 40...120, using: &random)
        let size = Int.random(in: 1_000...400_000, using: &random)
        try connection.execute(
            """
            WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(count))
            INSERT INTO spokes(body, hub) SELECT printf('%.*c', \(size), 'x'), \(hub) FROM c
            """)
        return count
    }

    // MARK: - Members

    private func ids(_ table: String, _ most: Int) -> [RecordID] {
        let all = file.folded[table]?.keys.sorted() ?? []
        return Array(all.shuffled(using: &random).prefix(most))
    }

    /// A set of any size, up to date or not.
    private func exchange() throws {
        try file.converge()
        var set = ChangeSet()
        count += 1
        (set.identifier, set.sequence) = ("s\(count)", Int64(count))
        let isStale = random.chance(40)
        set.seen = isStale ? 0 : file.through
        let most = random.one(of: isLarge ? [1, 60, 200, 2_000] : [1, 1, 5, 60, 600])
        // There may be nothing to change or delete.
        for _ in 0..<5 where set.recordCount == 0 {
            set.types = makeTypes(most, isStale: isStale)
        }
        guard set.recordCount > 0 else { return }
        let named = set.recordCount
        var request = SyncRequest(maxRevision: file.through, changeSets: [set])
        request.clientID = "member"
        // A connection that was opened anew after a fault has the usual bounds.
        let session = try file.session
        file.prepare(try file.node, session)
        _ = session.connection.takeVirtualMachineSteps()
        let (bytes, answer) = try send(request, "member")
        let steps = try file.session.connection.takeVirtualMachineSteps()
        let verdict = answer.changeSets.last
        let fate = verdict?.revision.map { "accepted \($0)" } ?? verdict?.message ?? "no verdict"
        history.append(
            "-- a set of \(named) records\(isStale ? ", stale" : ""): \(fate), \(steps) steps")
        note(verdict?.revision == nil ? "refused" : "accepted")
        // Facts, carrying out and the truth have a bound each; a set that SQLite rolls back is met twice.
        let bound = 12 * mostSteps + 3_000 * named
        if !isLarge, steps > bound { file.fail("a set took \(steps) steps, more than \(bound)") }
        // One record may have more than that.
        let rows = answer.changeSets.flatMap(\.types).flatMap(\.entries)
        let room = (rows.count > 1 ? Limits.answerBytes : Limits.rowBytes) + Limits.requestHeadBytes
        if verdict?.revision == nil, bytes > room {
            file.fail("a refusal's answer has \(bytes) bytes for \(rows.count) records")
        }
        try file.fold()
        // A trigger that swells rows reaches as many as it likes, within the size of an entry.
        let swells = isLarge && set.types.contains { $0.name == "words" && !$0.create.isEmpty }
        guard verdict?.revision != nil, !swells else { return }
        let reached = (verdict?.recordCount ?? 0) - named
        if reached > Self.mostAffected {
            file.fail("the deletions of a set reached \(reached) other records")
        }
    }

    private func makeTypes(_ most: Int, isStale: Bool) -> [TypeChanges] {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<2: return [deletion(Int.random(in: 1...3, using: &random), isStale: isStale)]
        case 2..<6 where isLarge: return [creation()]
        default:
            var types: [TypeChanges] = []
            for table in ["hubs", "spokes", "words"] where random.chance(50) {
                types.append(type(table, most, isStale: isStale))
            }
            return types
        }
    }

    /// Deletes a few hubs, and nothing else.
    private func deletion(_ count: Int, isStale: Bool) -> TypeChanges {
        let hubs = ids("hubs", count)
        return TypeChanges(
            name: "hubs", delete: hubs,
            entries: hubs.map {
                RecordEntry(id: $0, revision: isStale ? 1 : file.revisions["hubs"]?[$0])
            })
    }

    /// Makes so many records of one table that what the database adds to them comes near to what an entry may
    /// hold, or above it; or one record that makes those of its hub longer.
    private func creation() -> TypeChanges {
        let table = random.one(of: ["hubs", "words"])
        let share = Limits.entryBytes / 10 * Int.random(in: 1...20, using: &random)
        let isAlone = table == "words" && random.chance(50)
        let number = isAlone ? 1 : min(share / max(stamps[table] ?? 0, 1), 8_000)
        var own = Attributes()
        // Each of them makes others longer.
        if isAlone, let hub = ids("hubs", 1).first { own["hub"] = hub.value }
        let created: [RecordID] = (0..<number).map { index in
            table == "words"
                ? .text("c\(count)-\(index)") : .integer(-Int64(index + 1 + count * 10_000))
        }
        return TypeChanges(
            name: table, create: created,
            entries: created.map { RecordEntry(id: $0, attributes: own) })
    }

    private func type(_ table: String, _ most: Int, isStale: Bool) -> TypeChanges {
        var type = TypeChanges(name: table)
        let column = table == "hubs" ? "name" : "body"
        let own = Attributes(names: [column], values: [.text("m\(count)")])
        let isDeleting = random.chance(50)
        for id in ids(table, random.chance(70) ? most : 0) {
            let revision = isStale ? 1 : file.revisions[table]?[id]
            if isDeleting { type.delete.append(id) } else { type.update.append(id) }
            type.entries.append(
                RecordEntry(id: id, revision: revision, attributes: isDeleting ? Attributes() : own)
            )
        }
        for index in 0..<(random.chance(50) ? most : 0) {
            let id: RecordID =
                table == "words"
                ? .text("w\(count)-\(index)") : .integer(-Int64(index + 1 + count * 1_000))
            type.create.append(id)
            type.entries.append(RecordEntry(id: id, attributes: own))
        }
        return type
    }

    private func send(_ request: SyncRequest, _ user: String) throws -> (Int, SyncAnswer) {
        let bytes = try SyncCoder.encode(request)
        let admitted = AdmittedRequest(
            principal: Principal(name: user, user: user),
            request: try SyncCoder.decodeRequest(bytes), source: bytes)
        let body = try file.node.process([admitted], now: 3)[0].get().body
        return (body.count, try SyncCoder.decodeAnswer(body))
    }

    /// A member whose devices come without end.
    private func invent() throws {
        for _ in 0..<Int.random(in: 1...9, using: &random) {
            count += 1
            var request = SyncRequest(maxRevision: file.through, changeSets: [small(count)])
            request.clientID = "invented-\(count)"
            _ = try? send(request, "inventor")
        }
        note("invented")
        let most = try file.program().integer(
            """
            SELECT ifnull(max(n), 0) FROM
                (SELECT count(*) AS n FROM martlet_devices GROUP BY principal)
            """)
        if most ?? 0 > Int64(Self.mostDevices) { file.fail("a user has \(most ?? 0) devices") }
    }

    /// A set of one new record.
    private func small(_ number: Int) -> ChangeSet {
        let n = Attributes(names: ["n"], values: [.integer(Int64(number))])
        let id = RecordID.integer(-Int64(number))
        var set = ChangeSet(types: [
            TypeChanges(name: "calm", create: [id], entries: [RecordEntry(id: id, attributes: n)])
        ])
        (set.identifier, set.sequence) = ("invented-\(number)", Int64(number))
        set.seen = file.through
        return set
    }

    /// An honest device saves one number.
    private func beCalm() throws {
        calm += 1
        var set = small(Int(calm))
        (set.identifier, set.sequence) = ("calm-\(calm)", calm)
        set.seen = file.through
        var request = SyncRequest(maxRevision: file.through, changeSets: [set])
        request.clientID = "calm"
        let answer = try send(request, "honest").1
        if answer.changeSets.last?.revision == nil {
            file.fail("an honest device's set: \(answer.changeSets.last?.message ?? "no verdict")")
        }
        try file.fold()
    }
}
