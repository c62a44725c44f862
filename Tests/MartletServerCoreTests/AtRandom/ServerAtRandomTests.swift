import Foundation
import Testing

@Suite("A server's file at random")
struct ServerAtRandomTests {
    /// MARTLET_SERVED_WORLDS=20 tries so many times as many worlds.
    private static let times = number("MARTLET_SERVED_WORLDS") ?? 1
    /// MARTLET_SERVED_SEED=146 runs the world of this seed alone.
    private static let only = number("MARTLET_SERVED_SEED")

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    @Test(
        "what other programs write reaches devices, and what tables can hold is accepted",
        arguments: UInt64(0)..<4)
    func writtenByPrograms(part: UInt64) {
        var tally: [String: Int] = [:]
        let worlds = 60 * Self.times
        for seed in part * worlds..<(part + 1) * worlds where Self.only.map({ $0 == seed }) ?? true
        {
            let world: ServedFileWorld
            do {
                world = try ServedFileWorld(seed: seed)
            } catch {
                let isRefused = ["composed in two ways", "name of a trigger's row"].contains {
                    "\(error)".contains($0)
                }
                #expect(isRefused, "seed \(seed): \(error)")
                continue
            }
            let story = world.run(steps: 14)
            #expect(story.isEmpty, "\(story.joined(separator: "\n"))")
            tally.merge(world.tally, uniquingKeysWith: +)
        }
        guard Self.only == nil else { return }
        if Self.times > 1 { print("served: \(tally.sorted { $0.key < $1.key })") }
        #expect(tally["written", default: 0] > tally["failed", default: 0] / 2, "\(tally)")
        #expect(tally["moved", default: 0] > 20 && tally["accepted", default: 0] > 20, "\(tally)")
    }

    @Test("whatever others ask of it, work and sizes have their bounds", arguments: UInt64(0)..<2)
    func heavy(part: UInt64) throws {
        var tally: [String: Int] = [:]
        let worlds = 4 * Self.times
        for seed in part * worlds..<(part + 1) * worlds where Self.only.map({ $0 == seed }) ?? true
        {
            let world = try HeavyWorld(seed: seed)
            let story = world.run(steps: 12)
            #expect(story.isEmpty, "\(story.joined(separator: "\n"))")
            tally.merge(world.tally, uniquingKeysWith: +)
        }
        guard Self.only == nil else { return }
        if Self.times > 1 { print("heavy: \(tally.sorted { $0.key < $1.key })") }
        #expect(tally["refused", default: 0] > 5 && tally["accepted", default: 0] > 5, "\(tally)")
    }
}
