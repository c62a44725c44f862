import Foundation
import Testing

/// How often a test kills: as often as it says itself, or, by hand, as MARTLET_KILLS says
/// (`scripts/long kills`).
enum KillCount {
    private static let asked = ProcessInfo.processInfo.environment["MARTLET_KILLS"].flatMap {
        Int($0)
    }

    static func kills(_ usual: Int) -> Int { asked ?? usual }

    /// The time that so many may take: a few seconds each, where more than usual are asked for.
    static func limit(minutes usual: Int) -> TimeLimitTrait.Duration {
        .minutes(asked.map { max(usual, $0 / 5) } ?? usual)
    }
}
