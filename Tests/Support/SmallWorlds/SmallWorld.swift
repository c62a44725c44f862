internal import Foundation
internal import Martlet
package import MartletDevice
package import MartletEmbedded
internal import MartletModel
package import MartletProtocol
package import MartletServerCore
package import MartletStore
internal import RandomKit
package import SQLiteFaults
package import SQLiteKit
internal import Synchronization

/// A real server and devices in one thread, each on a disk of its own, without a network.
package final class SmallWorld {
    package static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Oslo');
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT, shirt INTEGER UNIQUE);
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
        """

    private let name: String
    private let pace: SmallPace
    package private(set) var server: SmallServer
    private var count = 0

    /// - Parameters:
    ///   - name: No two worlds may have the same at one time.
    ///   - script: The tables of the server.
    package init(
        _ name: String, script: String = SmallWorld.script, pace: SmallPace = SmallPace()
    ) throws {
        self.name = name
        self.pace = pace
        server = SmallServer(
            switchedOff: FaultDisk(name: "\(name)-server", countsWork: pace.countsWork),
            script: script)
        server.pace = pace
        try server.open()
    }

    package func device(script: String? = SmallWorld.script) throws -> SmallDevice {
        count += 1
        let disk = FaultDisk(
            name: "\(name)-\(count)", seed: UInt64(count), countsWork: pace.countsWork)
        let device = SmallDevice(switchedOff: disk, number: UInt64(count))
        device.pace = pace
        try device.open(script: script)
        return device
    }

    /// A device that goes on with a copy of a file in which a client has worked, and which it has closed.
    package func device(ofFileAt path: String, script: String?) throws -> SmallDevice {
        count += 1
        let disk = FaultDisk(name: "\(name)-\(count)", seed: UInt64(count))
        for ending in ["", "-wal"] {
            guard let bytes = FileManager.default.contents(atPath: path + ending) else { continue }
            disk.install([UInt8](bytes), at: "device.sqlite" + ending)
        }
        let device = SmallDevice(switchedOff: disk, number: UInt64(count))
        device.pace = pace
        try device.open(script: script)
        return device
    }

    /// Another server on a copy of the server's disk.
    package func restoredServer() throws -> SmallServer {
        count += 1
        let disk = FaultDisk(name: "\(name)-\(count)", countsWork: pace.countsWork)
        server.close()
        for path in server.disk.paths {
            if let bytes = server.disk.contents(of: path) { disk.install(bytes, at: path) }
        }
        try server.open()
        let server = SmallServer(switchedOff: disk, script: server.script)
        server.pace = pace
        try server.open()
        return server
    }
}

/// How much goes into one answer and one slice, in place of what would take large worlds to fill.
package struct SmallPace {
    package var answerBytes = 600
    package var partBytes = 64 << 10
    package var sliceRecords = 2
    package var sweptPages: Int64 = 16
    package var mostRequests = 500
    /// Whether the disks count what SQLite does on them.
    package var countsWork = false

    package init() {}

    /// Answers as in production, small slices, so that there are many, and disks that count.
    package static var counted: SmallPace {
        var pace = SmallPace()
        pace.answerBytes = Limits.answerBytes
        pace.sliceRecords = 40
        pace.mostRequests = 100_000
        pace.countsWork = true
        return pace
    }
}

/// The server side.
package final class SmallServer {
    package var pace = SmallPace()
    package let disk: FaultDisk
    package private(set) var node: DataSetNode?
    /// Answers comparisons.
    private var reader: LogReader?

    private let identity: String
    let script: String

    package convenience init(_ disk: FaultDisk, identity: String = "team") throws {
        self.init(switchedOff: disk, identity: identity)
        try open()
    }

    /// A server that is yet to be opened.
    package init(
        switchedOff disk: FaultDisk, identity: String = "team", script: String = SmallWorld.script
    ) {
        self.disk = disk
        self.identity = identity
        self.script = script
    }

    deinit { close() }

    package func open() throws {
        let store = try EmbeddedStore(
            path: "server.sqlite", vfs: disk.vfsName, script: script,
            identity: identity, now: 0)
        let node = try DataSetNode(
            store: store, answerBytes: pace.answerBytes, partBytes: pace.partBytes)
        self.node = node
        reader = LogReader(node: node, store: store)
    }

    package func close() { (node, reader) = (nil, nil) }

    /// Another program on the server's file, or a look at it.
    package func connection() throws -> Connection {
        try Connection(path: "server.sqlite", mode: .readWrite, vfs: disk.vfsName)
    }

    /// Empties all entries that only a device that is behind needs.
    package func compact() {
        while let node, !node.compact(keeping: 0).isDone {}
    }

    /// A snapshot of what the server has now.
    package func snapshot(_ plan: SeedingPlan = .whole) throws -> SmallSnapshot {
        let cut = try SnapshotMaker(path: "server.sqlite", vfs: disk.vfsName, plan: plan)
            .make { "snapshot-\($0).sqlite" }
        return SmallSnapshot(cut) { disk.contents(of: $0) ?? [] }
    }

    /// A snapshot of what a person sees now, who sees a part. He is given it.
    package func snapshot(for person: Principal) throws -> SmallSnapshot {
        guard let node, let claim = try node.snapshotClaim(of: person, among: [:], now: 0) else {
            throw SmallWorldError.closed
        }
        let maker = SnapshotMaker(
            path: "server.sqlite", vfs: disk.vfsName,
            consistently: { (body) throws(StorageFault) in
                try node.whenViewed(by: person, as: claim.name, now: 0, body)
            }, asksWriter: true)
        let cut = try maker.make(of: claim.view) { "snapshot-\($0).sqlite" }
        let made = DataSetNode.ViewSnapshot(revision: cut.revision, lineage: cut.lineage)
        _ = try node.snapshotClaim(of: person, among: [claim.name: made], now: 0)
        return SmallSnapshot(cut) { disk.contents(of: $0) ?? [] }
    }

    /// The deltas after a listener's version, or why there are none; nil if they have to wait.
    package func deltas(_ request: DeltaRequest) -> Result<DeltaBatchBytes, Problem>? {
        switch reader?.deltas(request) {
        case .batch(let batch): .success(batch)
        case .problem(let problem): .failure(problem)
        case .needsLog, nil: nil
        }
    }

    /// Looks at each request and each answer, uncompressed.
    package var checkRequest: ([UInt8]) throws -> Void = { _ in }
    package var checkAnswer: ([UInt8]) throws -> Void = { _ in }
    /// The person who sends the requests.
    package var sender = Principal(name: "staff")
    /// The longest body that it takes, or that something in front of it lets through.
    package var longestBody = Int.max

    package func answer(_ body: [UInt8]) throws -> (status: Int, body: [UInt8]) {
        try checkRequest(body)
        guard body.count <= longestBody else {
            let problem = Problem(status: 413, kind: "tooLarge", detail: "The body is too large.")
            return (413, SyncCoder.encode(problem))
        }
        let request = try SyncCoder.decodeRequest(body)
        let admitted = AdmittedRequest(
            principal: sender, request: request, source: body)
        if request.check != nil, case .answer(let answer)? = reader?.answer(to: admitted) {
            return (200, answer.body)
        }
        guard let result = node?.process([admitted], now: 0).first else { return (503, []) }
        switch result {
        case .success(let answer):
            try checkAnswer(answer.body)
            return (200, answer.body)
        case .failure(let problem): return (problem.status, SyncCoder.encode(problem))
        }
    }
}

/// A device on a disk of its own.
package final class SmallDevice {
    package let disk: FaultDisk
    package var pace = SmallPace()
    private var random: SplitMix64
    private var opened: DeviceNode?
    package private(set) var errors: [SyncError] = []
    /// A snapshot to begin with where there is no data; nil: none is asked for.
    package var snapshot: SmallSnapshot?
    /// Parts that do not come: they are asked for in vain.
    package var heldBack: Set<String> = []
    /// Called when the server has answered and the device has not received the answer.
    package var whileAnswered: () throws -> Void = {}
    /// Called before the device goes on with an answer, or with what follows it.
    package var beforeNext: () throws -> Void = {}
    /// Called before a part comes.
    package var beforePart: (String) throws -> Void = { _ in }
    /// Called after a part was installed.
    package var afterPart: () throws -> Void = {}
    /// What came of parts, in order.
    package private(set) var parts: [String] = []

    /// Whether whoever held the file before is gone; else its lease runs on, as time stands still.
    package var isAlone = false

    package convenience init(
        _ disk: FaultDisk, number: UInt64, script: String = SmallWorld.script
    ) throws {
        self.init(switchedOff: disk, number: number)
        try open(script: script)
    }

    /// A device that is yet to be opened.
    package init(switchedOff disk: FaultDisk, number: UInt64) {
        self.disk = disk
        random = SplitMix64(seed: number << 40)
    }

    deinit { opened = nil }

    package var node: DeviceNode {
        get throws {
            guard let opened else { throw SmallWorldError.closed }
            return opened
        }
    }

    package var store: DeviceStore { get throws { try node.store } }

    package var isOpen: Bool { opened != nil }

    /// From now on, identities of another life: none of before comes again.
    package func renew(number: UInt64) { random = SplitMix64(seed: number << 40) }

    package func bits() -> UInt64 { random.next() }

    /// - Parameter script: The tables; nil to take those of the file.
    package func open(script: String? = SmallWorld.script) throws {
        let store = try DeviceStore(
            path: "device.sqlite", script: script, vfs: disk.vfsName,
            randomBits: { [unowned self] in bits() })
        var options = DeviceNode.Options()
        options.sliceRecords = pace.sliceRecords
        options.sweptPages = pace.sweptPages
        options.usesSnapshots = snapshot != nil
        // What an earlier life of the device held is free again at once; time stands still here.
        options.isOwnerGone = { [isGone = isAlone || snapshot != nil] _ in isGone }
        opened = DeviceNode(store: store, options: options)
    }

    package func close() { opened = nil }

    /// Another program on the device's file.
    package func connection() throws -> Connection {
        try Connection(path: "device.sqlite", mode: .readWrite, vfs: disk.vfsName)
    }

    /// Switches off, begins to refetch, and switches on again.
    package func beginRefetching(script: String = SmallWorld.script) throws {
        close()
        try DeviceStore.beginRefetching(
            path: "device.sqlite", vfs: disk.vfsName, now: 1_000,
            randomBits: { [unowned self] in bits() },
            making: { try $0.execute(script) })
        try open(script: script)
    }

    @discardableResult
    package func write<Result>(_ body: (WriteContext) throws -> Result) throws -> Result {
        try store.write(now: 1_000, body)
    }

    /// Exchanges until the device is content, or an exchange fails.
    /// - Parameters:
    ///   - lost: The answer that is lost on the way, counted from 1.
    ///   - observe: Called after each slice.
    /// - Returns: How many requests were made.
    @discardableResult
    package func sync(
        with server: SmallServer, lost: Int = 0, observe: (DeviceStore) throws -> Void = { _ in }
    ) throws -> Int {
        try sync(lost: lost, observe: observe, answering: server.answer)
    }

    /// Exchanges with any server, which answers a body with a status and a body.
    @discardableResult
    package func sync(
        lost: Int = 0, observe: (DeviceStore) throws -> Void = { _ in },
        answering: ([UInt8]) throws -> (status: Int, body: [UInt8])
    ) throws -> Int {
        var events: [DeviceNode.Event] = [.wake(isUrgent: true)]
        var requests = 0
        (errors, parts) = ([], [])
        while !events.isEmpty {
            for action in try node.handle(events.removeFirst(), now: 1_000) {
                switch action {
                case .send(let exchange, let body):
                    requests += 1
                    guard requests < pace.mostRequests else { throw SmallWorldError.endless }
                    let answer = try answering(body)
                    try whileAnswered()
                    events.append(
                        requests == lost
                            ? .failed(exchange: exchange, SyncError(.offline, "lost"))
                            : .answered(
                                exchange: exchange, status: answer.status, body: answer.body,
                                retryAfter: nil))
                case .applyNext(let exchange):
                    try beforeNext()
                    events.append(.applyNext(exchange: exchange))
                case .tidy: events.append(.tidy)
                case .cancel, .setTimer, .setStreamTimer, .setPartTimer, .openStream,
                    .closeStream:
                    break
                case .fetchSnapshot(let number):
                    guard let snapshot, let first = snapshot.manifest.parts.first else {
                        throw SmallWorldError.closed
                    }
                    disk.install(snapshot.files[first.name] ?? [], at: try store.snapshotPath)
                    events.append(.snapshotFetched(number, snapshot.manifest))
                case .fetchPart(let number, let part, let manifest):
                    events.append(try fetch(part.name, of: manifest, number))
                case .notify(.seeded(let installed)):
                    parts.append(installed.name + (installed.isLast ? ", the last" : ""))
                    try afterPart()
                case .notify(.seedingFailed(let error, _)): parts.append(error.kind.name)
                case .notify(.applied): try observe(store)
                case .notify(.failed(let error, _)): errors.append(error)
                case .notify(.exchanged), .notify(.streamed), .notify(.live), .notify(.late),
                    .notify(.passedOver):
                    break
                }
            }
        }
        return requests
    }

    /// What becomes of a part that is asked for: the server has one snapshot.
    private func fetch(
        _ part: String, of manifest: SnapshotManifest, _ number: Int
    ) throws -> DeviceNode.Event {
        try beforePart(part)
        guard let snapshot, !heldBack.contains(part) else {
            return .partFailed(number, SyncError(.offline, "held back"), retryAfter: nil)
        }
        guard manifest == snapshot.manifest, let file = snapshot.files[part] else {
            return .partGone(number, newest: snapshot.manifest)
        }
        disk.install(file, at: "part.sqlite")
        return .partFetched(number, path: "part.sqlite")
    }
}

/// A snapshot as a server keeps it, its files uncompressed.
package struct SmallSnapshot {
    package let manifest: SnapshotManifest
    /// By the name of the part.
    package var files: [String: [UInt8]] = [:]

    package init(_ cut: SnapshotMaker.Cut, contents: (String) -> [UInt8]) {
        var parts: [SnapshotManifest.Part] = []
        for part in cut.parts {
            let bytes = contents(part.path)
            files[part.name] = bytes
            let sum = SnapshotManifest.Sum(bytes: Int64(bytes.count), crc32: 0)
            parts.append(
                .init(
                    name: part.name, hash: String(repeating: "0", count: 64), plain: sum,
                    types: part.records.map { .init(name: $0.type, records: $0.count) },
                    codings: [.init(name: "gzip", sum: sum)]))
        }
        var manifest = SnapshotManifest(
            format: 1, dataSet: cut.dataSet, revision: cut.revision, lineage: cut.lineage,
            schema: cut.schema, parts: parts)
        manifest.view = cut.view
        self.manifest = manifest
    }
}

package enum SmallWorldError: Error {
    case closed
    case endless
}

/// Names for simulated disks: no two of a process may have the same at one time.
package enum DiskName {
    private static let last = Mutex(0)

    package static func next(_ name: String) -> String {
        last.withLock { last in
            last += 1
            return "\(name)-\(last)"
        }
    }
}
