internal import Foundation

/// Everything that determines a simulated world, apart from the simulation's code. A failing world
/// is reported as this, in one line.
public struct WorldPlan: Hashable, Sendable, Codable {
    /// The simulation's name.
    public let simulation: String
    /// The seed, which determines all random decisions.
    public var seed: UInt64
    /// The number of devices.
    public var devices: Int
    /// The number of events delivered before faults stop.
    public var steps: Int
    /// The kinds of faults, and how often they occur.
    public var faults: FaultPlan
    /// The deeds that are left out, by their number in the world.
    public var without: Set<Int> = []

    /// The environment variable that holds the plan of the one world to run.
    static let variable = "MARTLET_REPLAY"

    /// Returns the plan in the environment, to be run instead of all seeds; nil if there is none,
    /// or it belongs to another simulation.
    /// - Throws: `DecodingError` for a text that is no plan.
    static func replayed(
        _ simulation: String, environment: [String: String]
    ) throws -> WorldPlan? {
        guard let text = environment[variable], !text.isEmpty else { return nil }
        let plan = try JSONDecoder().decode(WorldPlan.self, from: Data(text.utf8))
        return plan.simulation == simulation ? plan : nil
    }

    /// The command that runs the world again.
    var command: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let test = simulation.prefix { $0 != "(" }
        return "\(Self.variable)='\(json)' swift test --filter '\(test)'"
    }

    private enum CodingKeys: String, CodingKey {
        case simulation, seed, devices, steps, faults, without
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        simulation = try values.decode(String.self, forKey: .simulation)
        seed = try values.decode(UInt64.self, forKey: .seed)
        devices = try values.decode(Int.self, forKey: .devices)
        steps = try values.decode(Int.self, forKey: .steps)
        faults = try values.decode(FaultPlan.self, forKey: .faults)
        without = try values.decodeIfPresent(Set<Int>.self, forKey: .without) ?? []
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(simulation, forKey: .simulation)
        try values.encode(seed, forKey: .seed)
        try values.encode(devices, forKey: .devices)
        try values.encode(steps, forKey: .steps)
        try values.encode(faults, forKey: .faults)
        if !without.isEmpty { try values.encode(without.sorted(), forKey: .without) }
    }

    init(_ simulation: Simulation, seed: UInt64) {
        self.simulation = simulation.name
        self.seed = seed
        devices = simulation.devices
        steps = simulation.steps
        faults = simulation.faults
    }
}
