internal import CompressionKit
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletRules
internal import MartletServerCore
internal import SQLiteFaults
internal import SQLiteKit
internal import SQLiteRecords

/// The simulated server: a disk that survives crashes, and the real server code on it while the
/// server is on.
final class ServerMachine {
    let disk: FaultDisk
    private var node: DataSetNode?
    private var log: LogReader?
    /// The last snapshots, the newest at the end. A server keeps two.
    private var snapshots: [SimulatedSnapshot] = []
    /// The last snapshots of views, by the views' names.
    private var viewSnapshots: [String: SimulatedSnapshot] = [:]
    private let plan: SeedingPlan
    /// A connection that reads the file without the code under test.
    private(set) var reader: Connection?
    private(set) var tables: [RecordTable] = []
    /// The types of its tables; while the server is off, those that it had.
    var types: [EntityType] { schema?.types ?? [] }
    /// The same as a schema.
    private(set) var schema: Schema?
    /// The maximum work of one batch.
    var allowance = WorkAllowance.server
    /// A sentence about the last batch if it took too much work.
    private(set) var excess: String?

    private static let path = "server.sqlite"

    private var script: String
    /// The part of a request that the server processes at a time.
    var share = SetMeasure.Share()
    /// The rules file, for the next start; nil for none.
    var rules: String?
    /// Whether the server has the app's next version.
    private(set) var isUpdated = false

    init(seed: UInt64, name: String, script: String, plan: SeedingPlan) {
        self.plan = plan
        self.script = script
        disk = FaultDisk(name: name, seed: seed, countsWork: true)
    }

    deinit {
        // Connections must be closed while their disk exists, or the disk is never freed.
        node = nil
        log = nil
        tables = []
        reader = nil
    }

    var isUp: Bool { node != nil }

    /// Switches the server on.
    /// - Throws: An error if the disk fails during the start; the server stays off.
    func start(randomBits: () -> UInt64, now: Int64) throws {
        let identity = String(randomBits(), radix: 16)
        let store = try EmbeddedStore(
            path: Self.path, vfs: disk.vfsName, script: script, identity: identity,
            now: now)
        let node = try DataSetNode(store: store, cacheBytes: 40_000, answerBytes: 5_000)
        node.share = share
        node.policies = try rules.map { try RulesProgram($0, schema: node.schema) }
        self.node = node
        log = LogReader(node: node, store: store)
        let reader = try Connection(path: Self.path, mode: .readOnly, vfs: disk.vfsName)
        self.reader = reader
        let schema = try SchemaReader.read(reader)
        self.schema = schema
        tables = schema.types.map { RecordTable(type: $0, connection: reader) }
    }

    /// Switches the server off. Changes that its disk had not synced are lost, in whole or in part.
    func stop(_ random: inout SeededRandom) {
        close()
        disk.crash()
        disk.restart(using: &random)
    }

    /// Switches the server off properly.
    func close() {
        node = nil
        log = nil
        tables = []
        reader = nil
    }

    /// Switches the server off properly, so that it starts with other tables.
    func update(script: String) {
        close()
        self.script = script
        isUpdated = true
    }

    /// Answers a batch of requests in one transaction, as a server under load does.
    /// - Parameter senders: The people who sent the requests.
    func process(_ bodies: [[UInt8]], of senders: [Principal], now: Int64) -> [Answer] {
        guard let node else { return [] }
        var admitted: [AdmittedRequest] = []
        var positions: [Int?] = []
        var answers = bodies.map { _ in Answer(status: 400, body: []) }
        for (index, (body, sender)) in zip(bodies, senders).enumerated() {
            do throws(WireFault) {
                let request = try SyncCoder.decodeRequest(body)
                positions.append(index)
                admitted.append(
                    AdmittedRequest(
                        principal: sender, request: request, source: body, acceptsGzip: true))
            } catch {
                answers[index].body = Gzip.compress(
                    SyncCoder.encode(
                        Problem(status: 400, kind: "malformed", detail: error.message)))
            }
        }
        let before = disk.work
        let results = node.process(admitted, now: now)
        for (position, result) in zip(positions.compactMap(\.self), results) {
            switch result {
            case .success(let answer):
                let body = answer.isGzip ? answer.body : Gzip.compress(answer.body)
                answers[position] = Answer(status: 200, body: body)
            case .failure(let problem):
                answers[position] = Answer(
                    status: problem.status, body: Gzip.compress(SyncCoder.encode(problem)))
            }
        }
        excess = allowance.excess(
            disk.work.since(before),
            bytes: (bodies + answers.map(\.body)).reduce(0) { $0 + $1.count })
        return answers
    }

    /// Returns the deltas after a listener's revision, or the reason why there are none.
    func deltas(_ request: DeltaRequest) -> Result<DeltaBatchBytes, Problem>? {
        switch log?.deltas(request) {
        case .batch(let batch): .success(batch)
        case .problem(let problem): .failure(problem)
        case .needsLog, nil: nil
        }
    }

    /// Returns whether a person sees every record, so that there are snapshots for him.
    func showsEverything(to person: Principal) -> Bool {
        node?.feed.views.showsEverything(to: person) ?? true
    }

    /// Empties entries of the log in steps, as a server does between batches.
    func compact(keeping newest: Int64) {
        guard let node else { return }
        while !disk.isDown, !node.compact(keeping: newest, entries: 16).isDone {}
    }

    /// Writes to the file as another program that uses only SQLite, in one transaction.
    /// - Throws: The error of `body` or of SQLite.
    func writeExternal(_ body: (Connection) throws -> Void) throws {
        let program = try Connection(path: Self.path, mode: .readWrite, vfs: disk.vfsName)
        try program.execute("PRAGMA foreign_keys = ON")
        try program.transaction { try body(program) }
    }

    /// Takes external writes into the log, as a server does at intervals.
    func takeExternalWrites(now: Int64) {
        guard let node else { return }
        while !disk.isDown, node.takeExternalWrites(now: now) {}
    }

    /// Returns a stored snapshot if an old one is acceptable, or a new one.
    func snapshot(mayBeOld: Bool) throws -> SimulatedSnapshot? {
        if mayBeOld, let old = snapshots.first { return old }
        guard let node else { return nil }
        let maker = SnapshotMaker(path: Self.path, vfs: disk.vfsName, plan: plan) {
            (body) throws(StorageFault) in try node.whenCaughtUp(body)
        }
        let cut = try maker.make { "snapshot-\($0).sqlite" }
        let made = SimulatedSnapshot(cut) { disk.contents(of: $0) }
        snapshots = snapshots.suffix(1) + [made]
        return made
    }

    /// Returns the stored snapshot of a person's view if an old one is acceptable and the person may have
    /// it, or a new one.
    /// - Parameters:
    ///   - client: The name of the person's device, which gets the file.
    ///   - sight: Returns the records that the person may see now.
    func snapshot(
        for person: Principal, _ client: String, mayBeOld: Bool, now: Int64,
        sight: () throws -> SimulatedRights.Sight?
    ) throws -> SimulatedSnapshot? {
        guard let node else { return nil }
        func claim() throws -> DataSetNode.SnapshotClaim? {
            try node.snapshotClaim(
                of: person, for: client,
                among: viewSnapshots.mapValues {
                    .init(revision: $0.manifest.revision, lineage: $0.manifest.lineage)
                }, now: now)
        }
        guard let first = try claim() else { return nil }
        if mayBeOld, first.granted != nil { return viewSnapshots[first.name] }
        let maker = SnapshotMaker(
            path: Self.path, vfs: disk.vfsName,
            consistently: { (body) throws(StorageFault) in
                try node.whenViewed(by: person, as: first.name, now: now, body)
            }, asksWriter: true)
        let cut = try maker.make(of: first.view) { "snapshot-\($0).sqlite" }
        var made = SimulatedSnapshot(cut) { disk.contents(of: $0) }
        made.sight = try sight()
        viewSnapshots[first.name] = made
        return try claim()?.granted == nil ? nil : made
    }

    /// Notes that a device gets a file of a snapshot of everything.
    func noteEverything(
        givenTo client: String, of person: Principal, now: Int64
    ) throws(StorageFault) {
        guard let node, node.policies != nil else { return }
        _ = try node.noteEverything(givenTo: client, of: person, now: now)
    }

    /// Returns the file of a part as it is sent; nil if no stored snapshot has the part.
    func part(_ name: String, at revision: Revision) -> [UInt8]? {
        snapshots.last { $0.manifest.revision == revision }?.files[name]
    }

    /// An answer as it is sent: always a gzip member.
    struct Answer {
        var status: Int
        var body: [UInt8]
        /// The seconds of the header `Retry-After`.
        var retryAfter: Int64?
    }

    /// One entry of the log as it is stored in the file.
    struct Entry {
        let revision: Revision
        let identifier: String
        let author: String
        let set: ChangeSet
    }

    /// Returns the entries after a revision.
    func entries(after revision: Revision) throws -> [Entry] {
        guard let reader else { return [] }
        let rows = try reader.statement(
            "SELECT revision, identifier, device, body FROM martlet_log WHERE revision > ?"
                + " ORDER BY revision")
        rows.bind(1, integer: revision)
        defer { rows.reset() }
        var entries: [Entry] = []
        while try rows.step() {
            entries.append(
                Entry(
                    revision: rows.integer(0), identifier: rows.text(1),
                    author: String(rows.integer(2)),
                    set: written(try SyncCoder.decodeChangeSet(rows.blob(3)))))
        }
        return entries
    }

    /// Returns a set without computed values, which not every entry has.
    private func written(_ set: ChangeSet) -> ChangeSet {
        var set = set
        for (index, changes) in set.types.enumerated() {
            let type = tables.first { $0.type.name == changes.name }?.type
            let computed = Set(
                type?.attributes.filter(\.isGenerated).map(\.name) ?? [])
            guard !computed.isEmpty else { continue }
            for entry in changes.entries.indices {
                for name in computed { set.types[index].entries[entry].attributes[name] = nil }
            }
        }
        return set
    }

    /// Returns the devices of which the server says that they have confirmed, by name, each with the records
    /// that it may have by type: those that the view which it was given last shows, and deleted ones. A type
    /// that this view shows whole is left out.
    func confirmedDevices() throws -> [String: [String: Set<RecordID>]] {
        guard let reader else { return [:] }
        let purges = try DevicePurges(prefix: "martlet_").list { (query) throws(SQLiteError) in
            try reader.statement(query).rows { (row) throws(SQLiteError) in
                (0..<row.columnCount).map { row.isNull($0) ? nil : row.text($0) }
            }
        }
        let types = try reader.statement("SELECT number, name FROM martlet_types")
            .rows { (row) throws(SQLiteError) in (number: row.integer(0), name: row.text(1)) }
        let find = try reader.statement(
            """
            SELECT v.parts FROM martlet_devices AS d
                JOIN martlet_given AS g ON g.principal = 'device:' || d.number
                JOIN martlet_views AS v ON v.number = g.view WHERE d.client_id = ?1
            """)
        let list = try reader.statement(
            """
            SELECT id FROM martlet_members WHERE view = ?1 AND shown
            UNION ALL SELECT id FROM martlet_records WHERE type = ?2 AND deleted
            """)
        var devices: [String: [String: Set<RecordID>]] = [:]
        for purge in purges where purge.state == .confirmed {
            find.bind(1, text: purge.clientID)
            guard let text = try find.rows({ (row) throws(SQLiteError) in row.text(0) }).first
            else { continue }
            let parts = ViewScan.parts(text, of: types.map(\.number))
            devices[purge.clientID] = [:]
            for (type, part) in zip(types, parts) where part != View.whole {
                list.bind(1, integer: part)
                list.bind(2, integer: type.number)
                let ids = try list.rows { (row) throws(SQLiteError) in try row.recordID(0) }
                devices[purge.clientID]?[type.name] = Set(ids)
            }
        }
        return devices
    }

    /// Returns the tables by type, without attributes that are null or computed.
    func state() throws -> [String: [RecordID: [String: Value]]] {
        var state: [String: [RecordID: [String: Value]]] = [:]
        for table in tables {
            try table.forEach { id, attributes in
                var record: [String: Value] = [:]
                for (name, value) in zip(attributes.names, attributes.values)
                where value != .null && table.type[attribute: name]?.isGenerated == false {
                    record[name] = value
                }
                state[table.type.name, default: [:]][id] = record
            }
        }
        return state
    }
}
