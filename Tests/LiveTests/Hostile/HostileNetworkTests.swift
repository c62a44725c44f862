import Foundation
import Martlet
import MartletModel
import Synchronization
import Testing
import Waiting

/// How much of this is tried, and from which seeds: `MARTLET_HOSTILE_WORLDS` tries so many times as much
/// as usual, and `MARTLET_HOSTILE_SEED` one seed again.
enum HostileSize {
    static let worlds = seeds(8)
    static let progress = seeds(2)
    static let lives = seeds(6)
    static let lines = seeds(1)
    static let away = seeds(4)

    private static func seeds(_ count: Int) -> [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["MARTLET_HOSTILE_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        let times = environment["MARTLET_HOSTILE_WORLDS"].flatMap { Int($0) } ?? 1
        return (0..<count * times).map { _ in UInt64.random(in: 0 ... .max) }
    }
}

/// Devices whose people save all the time, on a network that is as bad as a seed wants it, and in the
/// end well again.
@Suite("A hostile network", .timeLimit(.minutes(60)))
struct HostileNetworkTests {
    @Test(
        "loses nothing, doubles nothing, stops nobody, and is forgotten once it is well",
        arguments: HostileSize.worlds)
    func worldOfHostileNetwork(seed: UInt64) async throws {
        let world = try await HostileWorld(seed: seed)
        do {
            try await world.run()
        } catch {
            Issue.record("\(error)\n\(world.network.story)")
        }
        await world.close()
    }
}
