internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit
internal import Synchronization

/// Devices and a server in one thread, on virtual time, with all kinds of faults.
///
/// The code of both sides is the real one, including the SQL and the bytes that are sent. Only
/// time, chance, the network and the disks are simulated, and one seed determines all of them. The
/// same seed gives the same run. A step is one delivered event.
public final class Simulator {
    /// The size of the world and the length of the run.
    public struct Options: Sendable {
        public var devices = 5
        /// The number of events delivered before faults stop.
        public var steps = 2_000
        public var faults = FaultPlan()
        /// The number of events for each full comparison of a replica with the log.
        public var checkInterval = 60
        /// Whether another program sometimes writes to the server's file. It writes only to the
        /// simulation's own tables.
        package var writesExternal = true
        /// Whether the seed also determines the kinds of people and networks. This applies only to
        /// the simulation's own worlds.
        package var isMixed = true
        /// The number of worlds in a hundred of Martlet's own tables that have policies.
        package var policies = 0
        /// Receives a line for each event.
        package var tell: (@Sendable (String) -> Void)?

        public init() {}
    }

    enum Event {
        case save(device: Int)
        case decide(device: Int)
        /// A person uses the app, or the app decides about refused edits. The caller that steps the
        /// simulation does this, because the app's code may wait.
        case use(device: Int)
        case resolve(device: Int)
        case deviceEvent(device: Int, life: Int, DeviceNode.Event)
        case request(WaitingRequest)
        case answer(device: Int, life: Int, exchange: Int, ServerMachine.Answer)
        case serve
        case listen(device: Int, life: Int, stream: Int, DeltaCursor)
        case pushed(device: Int, life: Int, stream: Int, batch: [UInt8])
        case snapshotAsked(device: Int, life: Int, number: Int)
        case snapshotCame(
            device: Int, life: Int, number: Int, SnapshotManifest?, file: [UInt8]?)
        case partAsked(device: Int, life: Int, number: Int, part: String, Revision)
        case partCame(device: Int, life: Int, number: Int, file: [UInt8]?)
        case restart(device: Int)
        case restartServer
        /// Another program writes to the server's file.
        case writeExternal
        /// A machine gets the app's next version.
        case update(device: Int)
        case updateServer
        /// People's rights change.
        case changeRights
    }

    struct WaitingRequest {
        let device: Int
        let life: Int
        let exchange: Int
        let body: [UInt8]
        /// The person, as the token says.
        let sender: Principal
    }

    private static let made = Atomic(0)

    let seed: UInt64
    let options: Options
    var faults: FaultPlan
    /// Whether a proxy may answer in place of the server. Its answers may arrive after faults have
    /// stopped.
    let hasStrangers: Bool
    /// The kinds of people and networks.
    let mix: WorldMix
    /// The app that the devices open.
    let app: SimulatedApp
    /// The app's next version; nil if there is none.
    let next: SimulatedApp?
    var random: SeededRandom
    var queue = EventQueue<Event>()
    var now: Int64 = 1_700_000_000_000
    let server: ServerMachine
    let devices: [DeviceMachine]
    var ledger = Ledger()
    var model = Model()
    /// The log as the simulation has read it; entry n is at index n - 1.
    var logged: [ChangeSet] = []
    /// The device that saved each entry; nil for another program.
    var owners: [Int?] = []
    var waiting: [WaitingRequest] = []
    /// The newest answers of the server, for networks that mix answers up.
    var newestAnswers: [ServerMachine.Answer] = []
    /// The open streams, as the server sees them.
    var listeners: [Listener] = []
    /// The people's rights; nil for a world without policies.
    var rights: SimulatedRights?
    /// The requests of the newest batch.
    var served: [WaitingRequest] = []
    var isServing = false
    var isConverging = false
    var saves = 0
    public internal(set) var report = SimulationReport()
    /// The command that reproduces a failure.
    var replay: String
    /// The events in words; nil if they are not recorded.
    var journal: Journal?
    /// A disk failure that will happen soon; nil for none.
    var armed: ArmedFailure?

    /// - Parameters:
    ///   - seed: Determines all random decisions.
    ///   - options: The size of the world and the length of the run.
    public convenience init(seed: UInt64, options: Options = Options()) {
        var random = SeededRandom(seed: ~seed)
        let isRandom = options.isMixed && random.chance(40)
        // A generator of its own leaves worlds without policies as they are.
        var own = SeededRandom(seed: seed ^ 0x706f_6c69_6369_6573)
        let hasPolicies = options.isMixed && !isRandom && own.chance(options.policies)
        self.init(
            seed: seed, options: options,
            app: isRandom ? .random(using: &random) : .workload(hasPolicies: hasPolicies))
        guard hasPolicies else { return }
        let seed = own.next()
        limit(
            by: SimulatedRights(
                seed: seed, devices: devices.count, isApart: mix.people == .apart))
    }

    init(seed: UInt64, options: Options, app: SimulatedApp, next: SimulatedApp? = nil) {
        self.seed = seed
        self.app = app
        self.next = next
        replay = "martlet simulate --seed \(seed)"
        self.options = options
        var random = SeededRandom(seed: seed)
        mix =
            options.isMixed && !app.isScripted
            ? WorldMix(using: &random, mayBeApart: app.random == nil) : WorldMix()
        faults = mix.network(of: options.faults)
        hasStrangers = faults.strangeAnswers > 0
        // The disks of concurrent simulations must have different names.
        let name = "sim-\(Self.made.add(1, ordering: .relaxed).newValue)"
        let isLazy = random.chance(faults.lazySeeding)
        server = ServerMachine(
            seed: random.next(), name: "\(name)-server", script: app.serverScript,
            plan: isLazy ? app.seeding : .whole)
        server.share = mix.share
        if app.random != nil { server.allowance = .serverWithoutIndexes }
        devices = (0..<options.devices).map {
            DeviceMachine(number: $0, seed: random.next(), name: "\(name)-\($0)", app: app)
        }
        self.random = random
        if options.tell != nil { journal = Journal(start: now) }
    }

    /// Runs the simulation to the end.
    /// - Throws: `SimulationFailure` for the first broken promise, with the seed and the command
    ///   that runs it again.
    public func run() throws(SimulationFailure) -> SimulationReport {
        do {
            try startAll()
            while report.steps < options.steps {
                guard let (time, event) = queue.take() else { break }
                now = max(now, time)
                try step(event)
            }
            try converge()
            return report
        } catch let failure as SimulationFailure {
            throw failure
        } catch {
            throw failure("an error came through that the code should have handled: \(error)")
        }
    }

    func startAll() throws {
        try startServer()
        tell(.server) { "its tables: \(app.serverScript)" }
        if next != nil { queue.put(.updateServer, at: now + Int64(random.below(200_000))) }
        if options.writesExternal, !app.isScripted {
            queue.put(.writeExternal, at: now + Int64(random.below(60_000)))
        }
        planRights()
        for device in devices {
            device.skew =
                faults.clockSkew == 0
                ? 0 : Int64(random.below(faults.clockSkew * 2) - faults.clockSkew)
            // If there are three or more devices, the last one joins late, when the log has some
            // length.
            let isLate = app.hasLatecomer && device.number > 1 && device.number == devices.count - 1
            let first = isLate ? now + Int64(random.below(600_000)) : now
            queue.put(.restart(device: device.number), at: first)
            let (number, isScripted) = (device.number, app.isScripted)
            queue.put(
                isScripted ? .use(device: number) : .save(device: number),
                at: first + Int64(random.below(3_000)))
            queue.put(
                isScripted ? .resolve(device: number) : .decide(device: number),
                at: now + Int64(random.below(60_000)))
        }
    }

    func step(_ event: Event) throws {
        report.steps += 1
        try deliver(event)
        if report.steps % options.checkInterval == 0 {
            try check(devices[random.below(devices.count)])
            try checkConfirmations()
        }
    }

    private func deliver(_ event: Event) throws {
        switch event {
        case .save(let number):
            try save(devices[number])
            if !isConverging {
                queue.put(
                    .save(device: number), at: now + 1 + Int64(random.below(mix.longestPause)))
            }
        case .decide(let number):
            try decide(devices[number])
            if !isConverging {
                queue.put(.decide(device: number), at: now + Int64(random.below(60_000)))
            }
        case .use, .resolve: break
        case .deviceEvent(let number, let life, let inner):
            let device = devices[number]
            guard device.life == life, device.isUp else { return }
            if case .progress(device.moved.exchange) = inner { device.moved.time = now }
            try handle(inner, on: device)
        case .request(let request): receive(request)
        case .serve: try serve()
        case .listen(let number, let life, let stream, let cursor):
            try listen(devices[number], life: life, stream: stream, cursor)
        case .pushed(let number, let life, let stream, let batch):
            let device = devices[number]
            guard device.life == life, device.isUp else { return }
            guard now >= device.isolatedUntil else { return cut(device, stream: stream) }
            try handle(.streamed(stream, try inflated(batch)), on: device)
        case .snapshotAsked(let number, let life, let request):
            try sendSnapshot(to: devices[number], life: life, number: request)
        case .snapshotCame(let number, let life, let request, let manifest, let file):
            let device = devices[number]
            guard device.life == life, device.isUp else { return }
            try receiveSnapshot(file, of: manifest, number: request, on: device)
        case .partAsked(let number, let life, let request, let part, let revision):
            try sendPart(part, at: revision, to: devices[number], life: life, number: request)
        case .partCame(let number, let life, let request, let file):
            let device = devices[number]
            guard device.life == life, device.isUp else { return }
            try receivePart(file, number: request, on: device)
        case .answer(let number, let life, let exchange, let answer):
            let device = devices[number]
            guard device.life == life, device.isUp, now >= device.isolatedUntil else { return }
            try handle(
                .answered(
                    exchange: exchange, status: answer.status, body: try inflated(answer.body),
                    retryAfter: answer.retryAfter),
                on: device)
        case .restart(let number): try start(devices[number])
        case .restartServer: try startServer()
        case .writeExternal: try writeExternal()
        case .update(let number): try update(devices[number])
        case .updateServer: try updateServer()
        case .changeRights: try changeRights()
        }
    }

    /// Returns a source of random bits for one machine, drawn from the seed.
    func bits() -> () -> UInt64 {
        var own = SeededRandom(seed: random.next())
        return { own.next() }
    }

    private func receive(_ request: WaitingRequest) {
        note("request", request.exchange, at: .device(request.device))
        guard server.isUp else { return }
        waiting.append(request)
        guard !isServing else { return }
        isServing = true
        queue.put(.serve, at: now + Int64(random.below(30)))
    }

    func failure(_ message: String) -> SimulationFailure {
        SimulationFailure(
            seed: seed, step: report.steps, message: message, replay: replay)
    }
}
