internal import Martlet
public import MartletDevice
public import MartletStore

/// A test of a team's devices: an app's tables, its users' actions, conditions that must hold, and
/// faults. Each seed makes one world of it, and the same seed always makes the same world.
///
/// ```swift
/// var simulation = Simulation(schema: .sql(script), devices: 4, faults: .poorWiFi)
/// simulation.user("adds a team") { device, user in
///     let name = user.mark()
///     try await device.write { try $0.insert("teams", ["name": .text(name)]) }
/// }
/// try await simulation.run(seeds: 1...50)
/// ```
///
/// The code of devices and server is the real one; time, chance, the network and the disks are
/// simulated. The run fails unless these promises hold in every world: no save is lost, and none is
/// applied twice; no change is overridden by a person who had not seen it; refused edits are kept
/// until the app decides; a text from `SimulatedUser.mark()` is in the server's history or is kept;
/// once faults stop, all devices come to rest with the server's tables and permanent ids.
public struct Simulation: Sendable {
    /// An action of a user on one device, with the app's own code. It must wait for nothing but the
    /// device and the user; otherwise the same seed no longer makes the same world.
    public typealias Deed =
        @Sendable (_ device: SimulatedDevice, _ user: inout SimulatedUser) async throws -> Void

    /// A write of another program to a file: returns its script, which may be random.
    public typealias Program = @Sendable (_ user: inout SimulatedUser) -> String

    struct NamedDeed: Sendable {
        enum Body: Sendable {
            case user(Deed)
            case program(SimulatedFile, Program)
        }

        let name: String
        let body: Body
    }

    struct NamedCheck<Check: Sendable>: Sendable {
        let name: String
        let body: Check
    }

    /// The name of the test in reports. It also tells replays of several tests apart.
    public let name: String
    /// The app's tables.
    public let schema: SimulatedSchema
    /// The tables of the app's next version; nil if there is none. The server gets it within
    /// minutes. Then the devices get it one after another, with the changes that they still have to
    /// send.
    public var nextVersion: SimulatedSchema?
    /// The app's rules file, as `martlet serve --rules` takes it; nil if everybody sees and changes
    /// everything. The run then fails if a device does not have exactly the records that the policies show
    /// to its person, if it is sent a mark of another record, or if a set is accepted or refused against
    /// them.
    public var rules: String?
    /// The people of the devices, in their order, for a simulation with rules. If there are more devices,
    /// they begin again with the first. The first person also makes the preparation, and there is at least
    /// one.
    public var people: [SimulatedPerson] = []
    /// The number of devices in each world, at least 1. If there are three or more, the last comes
    /// late, within ten minutes.
    public var devices: Int
    /// The number of events delivered before faults stop: arrivals, timers, deeds.
    public var steps: Int
    /// The kinds of faults, and how often they occur.
    public var faults: FaultPlan
    /// As in `ClientOptions.hooks`.
    public var hooks = WriteHooks()
    /// As in `ClientOptions.models`.
    public var models = ModelRegistry()
    /// The app's automatic decision about refused edits; nil if they stay. It is called now and
    /// then on devices that have some, and, once faults have stopped, until nothing changes any
    /// more.
    public var resolver: (@Sendable (_ device: SimulatedDevice) async throws -> Void)?
    /// The kinds of faults that need not occur although the plan asks for them.
    public var tolerated: Set<FaultKind> = []

    /// The schema as the server gets it; nil if it was not computed yet.
    var serverScript: String?
    var nextServerScript: String?
    var preparation: (@Sendable (SimulatedDevice) async throws -> Void)?
    var deeds: [NamedDeed] = []
    var deviceChecks: [NamedCheck<@Sendable (ReadContext) throws -> String?>] = []
    var worldChecks: [NamedCheck<@Sendable ([SimulatedDevice]) async throws -> String?>] = []

    /// Creates a simulation.
    /// - Parameters:
    ///   - name: The name in reports and replays; usually the test's function.
    ///   - schema: The app's tables.
    ///   - devices: The number of devices in each world, at least 1.
    ///   - steps: The number of events delivered before faults stop.
    ///   - faults: The kinds of faults, and how often they occur.
    public init(
        _ name: String = #function, schema: SimulatedSchema, devices: Int = 4, steps: Int = 600,
        faults: FaultPlan = .poorWiFi
    ) {
        self.name = name
        self.schema = schema
        self.devices = max(1, devices)
        self.steps = steps
        self.faults = faults
    }

    /// Sets the preparation, which runs on the first device before the others begin, without
    /// faults.
    public mutating func prepare(
        _ body: @escaping @Sendable (_ device: SimulatedDevice) async throws -> Void
    ) {
        preparation = body
    }

    /// Adds an action of users. The next action and its device are chosen at random. An action may
    /// throw an error, as an app's code may; it then has no effect. If it always throws, the run
    /// fails.
    /// - Parameters:
    ///   - does: A description for the reports: “renames a team”.
    ///   - deed: The action, which gets the device and its user.
    public mutating func user(_ does: String, _ deed: @escaping Deed) {
        deeds.append(NamedDeed(name: does, body: .user(deed)))
    }

    /// Adds a write by another program to a file, with its own SQL, in one transaction: a script
    /// that knows nothing of Martlet. On the server it begins when the server takes it in; on a
    /// device it is one of the deeds there. It may fail, as SQL may; it then has no effect.
    /// - Parameters:
    ///   - does: A description for the reports: “imports the fixtures”.
    ///   - file: The file that the program writes.
    ///   - script: Returns the SQL of one run.
    public mutating func program(
        _ does: String, on file: SimulatedFile, _ script: @escaping Program
    ) {
        deeds.append(NamedDeed(name: does, body: .program(file, script)))
    }

    /// Adds random edits that follow from the tables: records created, changed and deleted at
    /// random.
    public mutating func randomEdits() {
        user("edits something") { device, user in
            let (seed, mark) = (user.next(), user.mark())
            try await device.write { context in
                var edit = RandomEdit(random: SeededRandom(seed: seed), mark: mark)
                try edit.run(context)
            }
        }
    }

    /// Adds a condition that must hold on every device at any time, including changes that were not
    /// sent yet.
    /// - Parameters:
    ///   - name: The name of the condition, for the reports.
    ///   - check: Returns a sentence about the fault; nil if there is none.
    public mutating func always(
        _ name: String, _ check: @escaping @Sendable (ReadContext) throws -> String?
    ) {
        deviceChecks.append(NamedCheck(name: name, body: check))
    }

    /// Adds a condition that must hold once faults have stopped and all devices are at rest. Without
    /// rules, all devices then show the same data. While a failure is shrunk, there may be only two devices.
    /// - Parameters:
    ///   - name: The name of the condition, for the reports.
    ///   - check: Returns a sentence about the fault; nil if there is none.
    public mutating func atRest(
        _ name: String,
        _ check: @escaping @Sendable (_ devices: [SimulatedDevice]) async throws -> String?
    ) {
        worldChecks.append(NamedCheck(name: name, body: check))
    }
}

/// The file to which another program writes.
public enum SimulatedFile: Hashable, Sendable {
    case server, device
}
