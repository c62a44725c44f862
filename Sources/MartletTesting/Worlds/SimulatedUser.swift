internal import MartletStore

/// The user of a simulated device. Everything random in the user's actions comes from here, so that
/// the same seed makes the same world.
///
/// ```swift
/// let team = teams.randomElement(using: &user)
/// let text = user.mark()
/// ```
public struct SimulatedUser: RandomNumberGenerator, Sendable {
    private var random: SeededRandom
    private let deed: Int
    private var marks = 0

    init(seed: UInt64, deed: Int) {
        var mixer = SeededRandom(seed: seed)
        random = SeededRandom(seed: mixer.next() ^ (UInt64(deed) &* 0x9e37_79b9_7f4a_7c15))
        self.deed = deed
    }

    /// Returns 64 evenly spread bits.
    public mutating func next() -> UInt64 { random.next() }

    /// Returns a number from 0 up to, but not including, `bound`.
    public mutating func below(_ bound: Int) -> Int { random.below(bound) }

    /// Returns a text that no other user types in this world: “‹17›”. Put it into the text that the
    /// user types. Once it is saved, it must reach the server's history, or be in an edit that is
    /// kept or that a user has dropped. If neither is true in the end, the run fails.
    public mutating func mark() -> String {
        marks += 1
        return marks == 1 ? "‹\(deed)›" : "‹\(deed).\(marks)›"
    }
}
