internal import Martlet
public import MartletDevice
public import MartletStore

/// What a team's devices are tried on: an app's tables, what its users do, what must hold, and what
/// goes wrong. Each seed makes one world of it, and the same seed always the same world.
///
/// ```swift
/// @Test func sync() async throws {
///     var simulation = Simulation(schema: .sql(schema), devices: 4, faults: .poorWiFi)
///     simulation.user("renames a team") { device, user in
///         let name = user.mark()
///         try await device.write { … }
///     }
///     try await simulation.run(seeds: 1...50)
/// }
/// ```
///
/// The code of devices and server is the real one; time, chance, the network and the disks are
/// simulated. In every world these hold, or the run fails: no save is lost, and none comes twice;
/// nobody's change is overridden by someone who had not seen it; refused edits are kept until the
/// app decides; what was typed with `SimulatedUser.mark()` stands in the server's history or is
/// kept; once faults stop, all devices come to rest with the server's tables and permanent ids.
public struct Simulation: Sendable {
    /// What a user does, with the app's own code, on one device. It must wait for nothing but the
    /// device and the user, or the same seed is not the same world any more.
    public typealias Deed =
        @Sendable (_ device: SimulatedDevice, _ user: inout SimulatedUser) async throws -> Void

    /// What another program does to a file: its script, made up by chance.
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

    /// Names the test in reports, and tells replays of several tests apart.
    public let name: String
    public let schema: SimulatedSchema
    /// The tables of the app's next version; nil: there is none. The server gets it within minutes, then
    /// one device after another, with whatever they have yet to send.
    public var nextVersion: SimulatedSchema?
    /// Devices of each world, at least 1. The last of three and more comes late, within ten minutes.
    public var devices: Int
    /// Events delivered before faults stop: arrivals, timers, deeds.
    public var steps: Int
    public var faults: FaultPlan
    /// As in `ClientOptions.hooks`.
    public var hooks = WriteHooks()
    /// As in `ClientOptions.models`.
    public var models = ModelRegistry()
    /// What the app does about refused edits by itself: called now and then on devices that have
    /// some, and until nothing changes any more once faults have stopped. nil: they stay.
    public var resolver: (@Sendable (_ device: SimulatedDevice) async throws -> Void)?
    /// Kinds of faults that need not occur although the plan asks for them.
    public var tolerated: Set<FaultKind> = []

    /// The schema as the server gets it, where it was found out already.
    var serverScript: String?
    var nextServerScript: String?
    var preparation: (@Sendable (SimulatedDevice) async throws -> Void)?
    var deeds: [NamedDeed] = []
    var deviceChecks: [NamedCheck<@Sendable (ReadContext) throws -> String?>] = []
    var worldChecks: [NamedCheck<@Sendable ([SimulatedDevice]) async throws -> String?>] = []

    /// - Parameters:
    ///   - name: Names it in reports and replays; as a rule the test's function.
    ///   - schema: The app's tables.
    ///   - devices: Devices of each world, at least 1.
    ///   - steps: Events delivered before faults stop.
    ///   - faults: What goes wrong, and how often.
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

    /// Does something on the first device before the others begin, without faults.
    public mutating func prepare(
        _ body: @escaping @Sendable (_ device: SimulatedDevice) async throws -> Void
    ) {
        preparation = body
    }

    /// Adds something that users do. Which of their deeds comes next, on which device, chance says.
    /// A deed may throw, as an app's code may: nobody does it then. One that always throws fails
    /// the run.
    /// - Parameter does: What it is, for the reports: “renames a team”.
    public mutating func user(_ does: String, _ deed: @escaping Deed) {
        deeds.append(NamedDeed(name: does, body: .user(deed)))
    }

    /// Adds something that another program does to a file with SQL of its own, in one transaction: a
    /// script that knows nothing of Martlet. On the server it begins when the server takes it in; on a
    /// device it is one of the deeds there. It may fail, as SQL may: then nothing is done.
    /// - Parameter does: What it is, for the reports: “imports the fixtures”.
    public mutating func program(
        _ does: String, on file: SimulatedFile, _ script: @escaping Program
    ) {
        deeds.append(NamedDeed(name: does, body: .program(file, script)))
    }

    /// Adds edits made up from the tables: records made, changed and deleted at random.
    public mutating func randomEdits() {
        user("edits something") { device, user in
            let (seed, mark) = (user.next(), user.mark())
            try await device.write { context in
                var edit = RandomEdit(random: SeededRandom(seed: seed), mark: mark)
                try edit.run(context)
            }
        }
    }

    /// Adds something that must hold on every device at any time, with what was not sent yet.
    /// - Parameter check: What is wrong, in a sentence; nil where nothing is.
    public mutating func always(
        _ name: String, _ check: @escaping @Sendable (ReadContext) throws -> String?
    ) {
        deviceChecks.append(NamedCheck(name: name, body: check))
    }

    /// Adds something that must hold once faults have stopped and all devices are at rest. All
    /// devices show the same then. While a failure is shrunk, there may be only two of them.
    /// - Parameter check: What is wrong, in a sentence; nil where nothing is.
    public mutating func atRest(
        _ name: String,
        _ check: @escaping @Sendable (_ devices: [SimulatedDevice]) async throws -> String?
    ) {
        worldChecks.append(NamedCheck(name: name, body: check))
    }
}

/// Whose file another program writes to.
public enum SimulatedFile: Hashable, Sendable {
    case server, device
}
