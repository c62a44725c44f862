import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// Devices as plain dictionaries, at random revisions, that fold whatever they are sent, while
/// others write, tables get new columns, and the log is compacted.
private struct DifferenceRun {
    struct Key: Hashable {
        let type: String
        let id: String
    }

    struct Row: Hashable {
        var revision: Revision
        var values: [String: Value]
    }

    struct Replica {
        var revision: Revision = 0
        var lineage: String?
        var rows: [Key: Row] = [:]
        /// Whether parts of a difference are there and their end is not.
        var isCollecting = false
        var differences = 0
        var parts = 0
        var batches = 0
    }

    /// The columns of each table.
    private var tables = [
        ("teams", "id INTEGER PRIMARY KEY, name TEXT"),
        (
            "players",
            "id INTEGER PRIMARY KEY, name TEXT, rank INTEGER, "
                + "team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE"
        ),
        ("notes", "id TEXT PRIMARY KEY, body TEXT, active BOOLEAN"),
    ]
    private(set) var newColumns = 0

    let server: TestServer
    private(set) var reader: LogReader
    var random: Numbers
    var replicas = [Replica](repeating: Replica(), count: 4)
    var number = 0

    init(seed: UInt64) throws {
        server = try TestServer(Self.script(tables))
        try server.restart(answerBytes: 1_500)
        random = Numbers(state: seed)
        reader = LogReader(feed: server.node.feed, store: server.store)
    }

    mutating func pick(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private static func script(_ tables: [(String, String)]) -> String {
        tables.map { "CREATE TABLE \($0.0) (\($0.1));" }.joined()
    }

    /// Gives a table one column more, whose default all its rows then have.
    mutating func grow() throws {
        guard newColumns < 6 else { return }
        newColumns += 1
        tables[pick(tables.count)].1 += ", c\(newColumns) INTEGER DEFAULT \(newColumns)"
        try server.restart(script: Self.script(tables), answerBytes: 1_500)
        reader = LogReader(feed: server.node.feed, store: server.store)
    }

    // MARK: - Writing

    private mutating func existing(_ type: String) throws -> String? {
        let ids = try server.rows("SELECT id FROM \(type) ORDER BY id").split(separator: "\n")
        return ids.isEmpty ? nil : String(ids[pick(ids.count)])
    }

    mutating func write() throws {
        number += 1
        var set = SetText("w\(number)", sequence: number)
        let name = "\"name\":\"n\(number)\""
        let note = "k\(pick(9))x\(pick(3))"
        for step in 0...pick(2) {
            switch (pick(7), try existing("teams")) {
            case (0, _), (_, nil): set = set.create("teams", "-\(number * 10 + step)", name)
            case (1, let team?), (2, let team?):
                set = set.create(
                    "players", "-\(number * 10 + step)",
                    "\(name),\"team_id\":\(team),\"rank\":\(number)")
            case (3, _):
                guard step == 0, let player = try existing("players") else { continue }
                set = set.update(
                    "players", player, "\"revision\":\(server.node.head.revision),\(name)")
            case (4, _):
                // Refused where the note is there.
                let text = String(repeating: "ü", count: pick(300))
                set = set.create("notes", note, "\"body\":\"\(text)\"")
                return try send(set)
            case (5, _):
                guard step == 0, let old = try existing("notes") else { continue }
                set = set.delete("notes", old)
            default:
                guard step == 0 else { continue }
                let type = pick(3) == 0 ? "teams" : "players"
                guard let old = try existing(type) else { continue }
                return try send(set.delete(type, old))
            }
        }
        try send(set)
    }

    private func send(_ set: SetText) throws {
        _ = try server.answer(
            """
            {"clientId":"writer","maxRevision":\(server.node.head.revision),\
            "acknowledged":\(number - 1),"changeSets":[\(set)]}
            """)
    }

    // MARK: - Reading

    mutating func exchange(_ index: Int) throws {
        if pick(3) == 0 { try listen(index) } else { try pull(index) }
    }

    private mutating func pull(_ index: Int) throws {
        let replica = replicas[index]
        // The lineage of a part says by itself that rows have to follow.
        let asksForRows = pick(9) == 0
        let json = """
            {"clientId":"r\(index)","protocol":1,"maxRevision":\(replica.revision),\
            \(replica.lineage.map { "\"lineage\":\"\($0)\"," } ?? "")\
            \(asksForRows ? "\"rows\":true," : "")"changeSets":[]}
            """
        let answer = try server.answer(json)
        let isDifference = answer.changeSets.first?.isDifference == true
        #expect(
            isDifference
                == (asksForRows || replica.isCollecting
                    || replica.revision < server.node.feed.floor))
        for set in answer.changeSets { try fold(set, index) }
        try finish(index, answer.maxRevision, answer.lineage, answer.more, isDifference)
    }

    private mutating func listen(_ index: Int) throws {
        let replica = replicas[index]
        var request = DeltaRequest(
            principal: .ada, since: replica.revision, byteLimit: 1 + pick(1_500))
        request.lineage = replica.lineage
        if replica.isCollecting, pick(2) == 0 { request.lineage = nil }
        request.wantsRows = request.lineage == nil && replica.isCollecting || pick(9) == 0
        guard case .batch(let bytes) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        let batch = try SyncCoder.decodeDeltaBatch(bytes.json)
        let isDifference =
            request.wantsRows || replica.isCollecting || replica.revision < server.node.feed.floor
        #expect(batch.isDifference == isDifference)
        #expect(batch.from == replica.revision)
        for delta in batch.deltas { try fold(delta, index, isDifference: isDifference) }
        replicas[index].batches += 1
        try finish(index, batch.nextVersion, batch.lineage, batch.more, isDifference)
    }

    private mutating func finish(
        _ index: Int, _ revision: Revision, _ lineage: String?, _ more: Bool,
        _ isDifference: Bool
    ) throws {
        #expect(revision >= replicas[index].revision)
        replicas[index].revision = revision
        replicas[index].lineage = lineage
        replicas[index].isCollecting = isDifference && more
        if isDifference { replicas[index].differences += 1 }
        if isDifference, more { replicas[index].parts += 1 }
        guard !more else { return }
        #expect(revision == server.node.head.revision)
        #expect(replicas[index].rows == (try truth()))
    }

    private mutating func fold(_ set: ChangeSet, _ index: Int) throws {
        #expect(set.identifier == nil)
        for type in set.types {
            for entry in type.entries {
                let key = Key(type: type.name, id: entry.id.description)
                let values = Dictionary(
                    uniqueKeysWithValues: zip(entry.attributes.names, entry.attributes.values))
                put(
                    values, key, try #require(entry.revision),
                    whole: set.isDifference || type.create.contains(entry.id), index)
            }
            for id in type.delete {
                replicas[index].rows[Key(type: type.name, id: id.description)] = nil
            }
        }
    }

    private mutating func fold(_ delta: Delta, _ index: Int, isDifference: Bool) throws {
        let key = Key(type: delta.type, id: delta.id)
        guard delta.operation == .upsert else {
            replicas[index].rows[key] = nil
            return
        }
        #expect(!isDifference || delta.isNew)
        let attributes = try SyncCoder.decodeAttributes(Array(try #require(delta.payload).utf8))
        put(
            Dictionary(uniqueKeysWithValues: zip(attributes.names, attributes.values)), key,
            delta.recordRevision ?? delta.version, whole: delta.isNew, index)
    }

    private mutating func put(
        _ values: [String: Value], _ key: Key, _ revision: Revision, whole: Bool, _ index: Int
    ) {
        var row = replicas[index].rows[key] ?? Row(revision: 0, values: [:])
        if whole { row.values = [:] }
        for (name, value) in values { row.values[name] = value == .null ? nil : value }
        row.revision = revision
        replicas[index].rows[key] = row
    }

    // MARK: - The truth

    func truth() throws -> [Key: Row] {
        let connection = try Connection(path: server.path, mode: .readWrite)
        var rows: [Key: Row] = [:]
        for type in try SchemaReader.read(connection).types {
            try RecordTable(type: type, connection: connection).forEach { id, row in
                let values = zip(row.names, row.values).filter { $0.1 != .null }
                let revision = try connection.statement(
                    """
                    SELECT revision, deleted FROM martlet_records WHERE id = ?2 \
                    AND type = (SELECT number FROM martlet_types WHERE name = ?1)
                    """)
                defer { revision.reset() }
                revision.bind(1, text: type.name)
                revision.bind(2, id)
                // Whatever stands in a table is in the log, and so among the records.
                #expect(try revision.step())
                #expect(revision.integer(1) == 0)
                rows[Key(type: type.name, id: id.description)] = Row(
                    revision: revision.integer(0),
                    values: Dictionary(uniqueKeysWithValues: values))
            }
        }
        return rows
    }
}

@Suite("Replicas far behind, against a model")
struct DifferenceModelTests {
    @Test(
        "fold entries and differences in any mixture, and reach the state of the tables",
        arguments: 1...12 as ClosedRange<UInt64>)
    func fold(seed: UInt64) throws {
        var run = try DifferenceRun(seed: seed)
        var compactions = 0
        for step in 0..<300 {
            // Tables get several columns in a row, with and without changes between.
            if step % 100 > 90, run.pick(3) == 0 { try run.grow() }
            switch run.pick(10) {
            case 0...4: try run.write()
            case 5:
                let keeping = Int64(run.pick(20))
                let step = run.server.node.compact(keeping: keeping, entries: 1 + run.pick(30))
                if step.emptied > 0 { compactions += 1 }
            default: try run.exchange(run.pick(run.replicas.count))
            }
        }
        for index in run.replicas.indices {
            repeat { try run.exchange(index) } while run.replicas[index].isCollecting
            while run.replicas[index].revision < run.server.node.head.revision {
                try run.exchange(index)
            }
            #expect(run.replicas[index].rows == (try run.truth()))
        }
        // A run that meets only one way down tests little.
        #expect(compactions > 3)
        #expect(run.newColumns > 1)
        #expect(run.server.node.head.revision > 60)
        #expect(run.replicas.reduce(0) { $0 + $1.differences } > 10)
        #expect(run.replicas.reduce(0) { $0 + $1.parts } > 0)
        #expect(run.replicas.reduce(0) { $0 + $1.batches } > 10)
    }
}
