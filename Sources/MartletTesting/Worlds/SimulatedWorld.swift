internal import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore
internal import SQLiteKit

/// One world of a simulation: devices, a server, and the time that passes between them.
///
/// `run()` runs all of it. A test that wants to control the events steps it by hand:
///
/// ```swift
/// let world = try SimulatedWorld(simulation, seed: 1)
/// try await world.begin()
/// await world.disconnect(1)
/// try await world.devices[1].write { try $0.insert("teams", ["name": "Falcons"]) }
/// try await world.pass(.seconds(30))
/// try await world.converge()
/// print(try await world.text())
/// ```
public actor SimulatedWorld {
    /// A mark that was typed, and the device and set in which it was saved.
    struct Typed {
        let mark: String
        let device: Int
        let identifier: String
        let deed: String
    }

    /// The plan that determines this world.
    public nonisolated let plan: WorldPlan
    nonisolated let simulation: Simulation
    nonisolated let hubs: [ChangeHub]
    let engine: Simulator
    /// A promise that was found broken inside a deed, whose code may have caught the error.
    var broken: SimulationFailure?
    /// The current action, for the reports; nil between deeds.
    var deed: String?
    /// Whether a person does it, and not the app automatically.
    var isPerson = false
    var typed: [Typed] = []
    /// The refused sets that were given up, and whether a person did so.
    var dropped: [String: Bool] = [:]
    /// The numbers of the deeds that were done.
    var performed: [Int] = []
    /// The number of times that each deed ended well, and that it threw an error.
    var outcomes: [String: DeedCount] = [:]
    private var deedCount = 0
    private var stepsBefore = 0
    private var hasBegun = false

    /// Creates a world.
    /// - Parameters:
    ///   - simulation: The tables, the users' actions and the conditions.
    ///   - seed: Determines all random decisions.
    ///   - isRecorded: Whether to record the events in words; see `journal()`.
    /// - Throws: `StoreError` for a schema that cannot be used.
    public init(_ simulation: Simulation, seed: UInt64, isRecorded: Bool = false) throws {
        try self.init(
            simulation, plan: WorldPlan(simulation, seed: seed), isRecorded: isRecorded)
    }

    /// Creates a world that a report has named.
    /// - Throws: `StoreError` for a schema that cannot be used.
    public init(_ simulation: Simulation, plan: WorldPlan, isRecorded: Bool = false) throws {
        self.simulation = simulation
        self.plan = plan
        let app = try Self.app(simulation, simulation.schema, simulation.serverScript)
        let next = try simulation.nextVersion.map {
            try Self.app(simulation, $0, simulation.nextServerScript)
        }
        var options = Simulator.Options()
        options.devices = max(1, plan.devices)
        options.steps = plan.steps
        options.faults = plan.faults
        hubs = (0..<options.devices).map { _ in ChangeHub() }
        engine = Simulator(seed: plan.seed, options: options, app: app, next: next)
        engine.replay = plan.command
        if let rules = simulation.rules {
            engine.limit(by: rules, simulation.people)
        }
        if isRecorded { engine.journal = Journal(start: engine.now) }
    }

    private static func app(
        _ simulation: Simulation, _ schema: SimulatedSchema, _ serverScript: String?
    ) throws -> SimulatedApp {
        var app =
            try SimulatedApp(
                schema,
                serverScript: serverScript
                    ?? SimulatedApp.serverScript(schema, rules: simulation.rules))
        app.hooks = simulation.hooks
        app.models = simulation.models
        app.hasLatecomer = !simulation.deeds.isEmpty
        return app
    }

    /// Returns whether a device has the app's next version.
    func isUpdated(_ device: Int) -> Bool { engine.devices[device].isUpdated }

    /// The devices, whether they are on or off.
    public nonisolated var devices: [SimulatedDevice] {
        hubs.indices.map { SimulatedDevice(number: $0, world: self, life: nil) }
    }

    /// The events so far, as counts. `trace` is the same for the same plan, event for event.
    public var report: SimulationReport { engine.report }

    /// Returns the events so far, in words; empty if they were not recorded.
    public func journal() -> [String] { engine.journal?.lines ?? [] }

    /// The number of events delivered since the world began.
    var steps: Int { engine.report.steps - stepsBefore }

    /// Runs the world: deeds and faults for as many steps as planned, then rest.
    /// - Throws: `SimulationFailure` for the first broken promise.
    @discardableResult
    public func run() async throws -> SimulationReport {
        try await begin()
        while steps < plan.steps, try await step() {}
        try await converge()
        return report
    }

    /// Runs the preparation, and switches everything on.
    /// - Throws: `SimulationFailure` if the preparation fails or a promise is broken.
    public func begin() async throws {
        guard !hasBegun else { return }
        hasBegun = true
        if let preparation = simulation.preparation {
            engine.faults = .none
            try guarded {
                try engine.startServer()
                try engine.start(engine.devices[0])
            }
            do {
                try await preparation(devices[0])
            } catch {
                throw engine.failure("the preparation failed: \(error)")
            }
            try guarded { try engine.drain() }
            engine.faults = plan.faults
        }
        try guarded { try engine.startAll() }
        stepsBefore = engine.report.steps
        // All devices that do not come late are on from here.
        try await pass(.zero)
    }

    /// Lets time pass, and delivers the events of this time.
    /// - Throws: `SimulationFailure` for the first broken promise.
    public func pass(_ duration: Duration) async throws {
        let end = engine.now + Self.milliseconds(duration)
        while let next = engine.queue.nextTime, next <= end, try await step() {}
        engine.now = max(engine.now, end)
    }

    /// Cuts a device off from the network.
    /// - Parameters:
    ///   - device: The device's number, from 0.
    ///   - duration: The simulated time; nil to disconnect it until `connect` is called.
    public func disconnect(_ device: Int, for duration: Duration? = nil) {
        engine.devices[device].isolatedUntil =
            duration.map { engine.now + Self.milliseconds($0) } ?? .max / 2
    }

    /// Connects a device to the network again.
    public func connect(_ device: Int) {
        engine.devices[device].isolatedUntil = 0
    }

    /// Switches a device off in the middle of its work. It comes back automatically, with the data
    /// that its disk had synced.
    public func crash(_ device: Int) {
        if engine.devices[device].isUp { engine.stop(engine.devices[device]) }
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        duration.components.seconds * 1_000 + duration.components.attoseconds
            / 1_000_000_000_000_000
    }

    // MARK: - Steps

    /// Delivers the next event.
    /// - Returns: False if there is none.
    private func step() async throws -> Bool {
        guard let (time, event) = engine.queue.take() else { return false }
        engine.now = max(engine.now, time)
        switch event {
        case .use(let device):
            engine.report.steps += 1
            try await use(device)
        case .resolve(let device):
            engine.report.steps += 1
            let pause = Int64(engine.random.below(60_000))
            engine.queue.put(event, at: engine.now + pause)
            try await resolve(device)
        default: try guarded { try engine.step(event) }
        }
        return true
    }

    /// Runs the engine's own code, in which every error is a broken promise.
    func guarded<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as SimulationFailure {
            broken = failure
            throw failure
        } catch {
            let failure = engine.failure(
                "an error came through that the code should have handled: \(error)")
            broken = failure
            throw failure
        }
    }

    /// Does a deed on a device.
    private func use(_ number: Int) async throws {
        let ordinal = deedCount
        deedCount += 1
        guard !simulation.deeds.isEmpty else { return }
        let pause = 200 + Int64(engine.random.below(8_000))
        engine.queue.put(.use(device: number), at: engine.now + pause)
        guard engine.devices[number].isUp, !plan.without.contains(ordinal) else { return }
        performed.append(ordinal)
        engine.rights?.authors[ordinal] = number
        var user = SimulatedUser(seed: plan.seed, deed: ordinal)
        let chosen = simulation.deeds[user.below(simulation.deeds.count)]
        engine.tell(.device(number)) { "somebody \(chosen.name)" }
        let device = SimulatedDevice(
            number: number, world: self, life: engine.devices[number].life)
        deed = chosen.name
        isPerson = true
        defer {
            deed = nil
            isPerson = false
        }
        do {
            switch chosen.body {
            case .user(let deed): try await deed(device, &user)
            case .program(.server, let script): try writeToServer(script(&user))
            case .program(.device, let script):
                try write(script(&user), to: engine.devices[number])
            }
            outcomes[chosen.name, default: DeedCount()].done += 1
        } catch {
            outcomes[chosen.name, default: DeedCount()].add(error)
            engine.tell(.device(number)) { "that failed: \(error)" }
        }
        if let broken { throw broken }
        try checkAlways(number)
    }

    /// Lets the app's resolver handle refused sets.
    func resolve(_ number: Int) async throws {
        let machine = engine.devices[number]
        guard let resolver = simulation.resolver, let node = machine.node,
            try guarded({ try node.store.parkedCount > 0 })
        else { return }
        engine.tell(.device(number)) { "the resolver looks at what was refused" }
        deed = "the resolver"
        defer { deed = nil }
        do {
            try await resolver(
                SimulatedDevice(number: number, world: self, life: machine.life))
        } catch {
            engine.tell(.device(number)) { "the resolver failed: \(error)" }
        }
        if let broken { throw broken }
        try checkAlways(number)
    }
}

/// The number of times that an action ended well, and that it threw an error.
struct DeedCount: Hashable, Sendable {
    var done = 0
    var thrown = 0
    /// The last error.
    var error = ""

    mutating func add(_ error: any Error) {
        thrown += 1
        self.error = "\(error)"
    }

    mutating func add(_ other: DeedCount) {
        done += other.done
        thrown += other.thrown
        if !other.error.isEmpty { error = other.error }
    }
}
