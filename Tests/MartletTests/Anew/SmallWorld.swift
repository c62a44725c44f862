import MartletCore
import MartletProtocol
import MartletServerCore
import MartletStore
import SQLiteFaults
import SQLiteKit

@testable import Martlet

/// A real server and devices in one thread, each on a disk of its own, without a network.
final class SmallWorld {
    static let script = DeviceFixture.script

    private let name: String
    private(set) var server: SmallServer
    private var count = 0

    /// - Parameter name: No two worlds may have the same at one time.
    init(_ name: String) throws {
        self.name = name
        server = try SmallServer(FaultDisk(name: "\(name)-server"))
    }

    func device() throws -> SmallDevice {
        count += 1
        return try SmallDevice(
            FaultDisk(name: "\(name)-\(count)", seed: UInt64(count)), number: UInt64(count))
    }

    /// Another server on a copy of the server's disk.
    func restoredServer() throws -> SmallServer {
        count += 1
        let disk = FaultDisk(name: "\(name)-\(count)")
        server.close()
        for path in server.disk.paths {
            if let bytes = server.disk.contents(of: path) { disk.install(bytes, at: path) }
        }
        try server.open()
        return try SmallServer(disk)
    }
}

/// The server side.
final class SmallServer {
    let disk: FaultDisk
    private(set) var node: DataSetNode?

    init(_ disk: FaultDisk) throws {
        self.disk = disk
        try open()
    }

    deinit { node = nil }

    func open() throws {
        let store = try EmbeddedStore(
            path: "server.sqlite", vfs: disk.vfsName, script: SmallWorld.script,
            identity: "team", now: 0)
        node = try DataSetNode(store: store, answerBytes: 600)
    }

    func close() { node = nil }

    /// A snapshot of what the server has now.
    func snapshot() throws -> [UInt8] {
        let path = "snapshot.sqlite"
        let everybody = VisibilityFilter.everything.permissionClass(of: Principal(name: "staff"))
        _ = try SnapshotMaker(path: "server.sqlite", vfs: disk.vfsName)
            .make(for: everybody) { _ in path }
        return disk.contents(of: path) ?? []
    }

    func answer(_ body: [UInt8]) throws -> (status: Int, body: [UInt8]) {
        let request = try SyncCoder.decodeRequest(body)
        let admitted = AdmittedRequest(
            principal: Principal(name: "staff"), request: request, source: body)
        guard let result = node?.process([admitted], now: 0).first else { return (503, []) }
        switch result {
        case .success(let answer): return (200, answer.body)
        case .failure(let problem): return (problem.status, SyncCoder.encode(problem))
        }
    }
}

/// A device on a disk of its own.
final class SmallDevice {
    let disk: FaultDisk
    private var random: SeededBits
    private var opened: DeviceNode?
    private(set) var errors: [SyncError] = []
    /// A snapshot's file, to begin with where there is no data; nil: none is asked for.
    var snapshot: [UInt8]?

    init(_ disk: FaultDisk, number: UInt64) throws {
        self.disk = disk
        random = SeededBits(state: number << 40)
        try open()
    }

    deinit { opened = nil }

    var node: DeviceNode {
        get throws {
            guard let opened else { throw SmallWorldError.closed }
            return opened
        }
    }

    var store: DeviceStore { get throws { try node.store } }

    func bits() -> UInt64 { random.next() }

    func open(script: String = SmallWorld.script) throws {
        let store = try DeviceStore(
            path: "device.sqlite", script: script, vfs: disk.vfsName,
            randomBits: { [unowned self] in bits() })
        var options = DeviceNode.Options()
        options.sliceRecords = 2
        options.usesSnapshots = snapshot != nil
        // What an earlier life of the device held is free again at once; time stands still here.
        options.isOwnerGone = { [hasSnapshot = snapshot != nil] _ in hasSnapshot }
        opened = DeviceNode(store: store, options: options)
    }

    func close() { opened = nil }

    /// Switches off, begins anew, and switches on again.
    func beginAnew(script: String = SmallWorld.script) throws {
        close()
        try DeviceStore.beginAnew(
            path: "device.sqlite", vfs: disk.vfsName, now: 1_000,
            randomBits: { [unowned self] in bits() },
            making: { try $0.execute(script) })
        try open(script: script)
    }

    @discardableResult
    func write<Result>(_ body: (WriteContext) throws -> Result) throws -> Result {
        try store.write(now: 1_000, body)
    }

    /// Exchanges until the device is content, or an exchange fails.
    /// - Parameters:
    ///   - lost: The answer that is lost on the way, counted from 1.
    ///   - observe: Called after each slice.
    /// - Returns: How many requests were made.
    @discardableResult
    func sync(
        with server: SmallServer, lost: Int = 0, observe: (DeviceStore) throws -> Void = { _ in }
    ) throws -> Int {
        var events: [DeviceNode.Event] = [.wake(isUrgent: true)]
        var requests = 0
        errors = []
        while !events.isEmpty {
            for action in try node.handle(events.removeFirst(), now: 1_000) {
                switch action {
                case .send(let exchange, let body):
                    requests += 1
                    guard requests < 500 else { throw SmallWorldError.endless }
                    let answer = try server.answer(body)
                    events.append(
                        requests == lost
                            ? .failed(exchange: exchange, message: "lost")
                            : .answered(
                                exchange: exchange, status: answer.status, body: answer.body,
                                retryAfter: nil))
                case .applyNext(let exchange): events.append(.applyNext(exchange: exchange))
                case .setTimer, .setStreamTimer, .openStream, .closeStream: break
                case .fetchSnapshot(let number):
                    disk.install(snapshot ?? [], at: try store.snapshotPath)
                    events.append(.snapshotFetched(number))
                case .notify(.applied): try observe(store)
                case .notify(.failed(let error, _)): errors.append(error)
                case .notify(.exchanged), .notify(.streamed), .notify(.live): break
                }
            }
        }
        return requests
    }

    /// All that is in the file but leases, row by row, as text.
    func dump(leavingOut columns: Set<String> = []) throws -> [String] {
        let connection = try store.applying.connection
        let tables = try connection.prepare(
            """
            SELECT name FROM sqlite_schema WHERE type = 'table'
                AND name NOT IN ('martlet_lease', 'sqlite_sequence') ORDER BY name
            """
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        var lines: [String] = []
        for table in tables {
            let rows = try store.applying.rows("SELECT * FROM \(table)")
            lines += rows.map { row in
                let values = zip(row.names, row.values)
                    .filter { !columns.contains("\(table).\($0.0)") }
                return "\(table): " + values.map { "\($0)=\($1)" }.joined(separator: " ")
            }.sorted()
        }
        return lines
    }
}

enum SmallWorldError: Error {
    case closed
    case endless
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct SeededBits: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
