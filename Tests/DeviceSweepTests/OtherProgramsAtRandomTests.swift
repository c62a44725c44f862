import Foundation
import Testing

@Suite("What other programs write at random to random tables")
struct OtherProgramsAtRandomTests {
    /// The worlds of each part. MARTLET_WORLDS=1000 takes others, from the seed 1,000 on.
    private static let worlds: UInt64 = 80
    private static let first = number("MARTLET_WORLDS") ?? 0
    /// MARTLET_WORLD=146 runs this one alone, and tells all of it.
    private static let only = number("MARTLET_WORLD")

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    @Test("reaches the server, or is told", arguments: UInt64(0)..<4)
    func reaches(part: UInt64) throws {
        var tally: [String: Int] = [:]
        let first = Self.first + part * Self.worlds
        let seeds = Self.only.map { part == 0 ? $0..<$0 + 1 : $0..<$0 }
        for seed in seeds ?? first..<(first + Self.worlds) {
            let world: WrittenWorld
            do {
                world = try WrittenWorld(seed: seed)
            } catch {
                let isRefused = ["composed in two ways", "name of a trigger's row"].contains {
                    "\(error)".contains($0)
                }
                #expect(isRefused, "seed \(seed): \(error)")
                tally["refused", default: 0] += 1
                continue
            }
            if Self.only != nil { world.tells = .max }
            do {
                try world.run(steps: 12)
            } catch {
                Issue.record("\(error) \(world.story)")
            }
            tally.merge(world.tally, uniquingKeysWith: +)
        }
        // Most of what is written is taken, and most exchanges leave nothing aside.
        guard Self.only == nil else { return }
        #expect(tally["done", default: 0] > 2 * tally["failed", default: 0])
        #expect(tally["exchanged", default: 0] > 300)
        if Self.only != nil || Self.first > 0 { print(tally.sorted { $0.key < $1.key }) }
    }
}
