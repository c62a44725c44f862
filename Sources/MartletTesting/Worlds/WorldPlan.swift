internal import Foundation

/// All that makes a simulated world what it is, beside the simulation's code: a failing one is
/// handed on as this, in one line.
public struct WorldPlan: Hashable, Sendable, Codable {
    /// The simulation's name.
    public let simulation: String
    public var seed: UInt64
    public var devices: Int
    /// Events delivered before faults stop.
    public var steps: Int
    public var faults: FaultPlan
    /// Deeds that are left out, by their number in the world.
    public var without: Set<Int> = []

    /// The environment variable that holds the plan of the one world to run.
    static let variable = "MARTLET_REPLAY"

    /// What the environment asks to be run in place of all seeds; nil: nothing, or another
    /// simulation's world.
    /// - Throws: `DecodingError` for a text that is no plan.
    static func replayed(
        _ simulation: String, environment: [String: String]
    ) throws -> WorldPlan? {
        guard let text = environment[variable], !text.isEmpty else { return nil }
        let plan = try JSONDecoder().decode(WorldPlan.self, from: Data(text.utf8))
        return plan.simulation == simulation ? plan : nil
    }

    /// What a person types to run the world again.
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
