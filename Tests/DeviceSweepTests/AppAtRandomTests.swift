import Foundation
import MartletStore
import Testing

@Suite("An app at random")
struct AppAtRandomTests {
    /// The worlds of each part. MARTLET_APPS=1000 takes others, from the seed 1,000 on.
    private static let worlds: UInt64 = 30
    private static let first = number("MARTLET_APPS") ?? 0
    /// MARTLET_APP=146 runs this one alone, and tells all of it.
    private static let only = number("MARTLET_APP")

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    @Test(
        "sees all that is saved, and what has no place in a closure changes nothing",
        .timeLimit(.minutes(10)), arguments: UInt64(0)..<4)
    func goesOn(part: UInt64) async throws {
        let first = Self.first + part * Self.worlds
        let seeds = Self.only.map { part == 0 ? $0..<$0 + 1 : $0..<$0 }
        for seed in seeds ?? first..<(first + Self.worlds) {
            let world: AppWorld
            do {
                world = try await AppWorld.open(seed: seed)
            } catch let error as StoreError where error.kind == .schema {
                // Names that no device can have together.
                continue
            }
            if Self.only != nil { world.tells = .max }
            do {
                try await world.run(steps: 12)
            } catch {
                Issue.record("\(error) \(world.story)")
            }
        }
    }
}
