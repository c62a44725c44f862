/// Chance from a seed: SplitMix64 (Steele, Lea, Flood, 2014).
public struct Chance: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// - Parameter path: Numbers that lead from the seed to one of its many sequences.
    public init(_ seed: UInt64, _ path: Int...) {
        state = seed
        for step in path {
            state = next() ^ UInt64(bitPattern: Int64(step)) &* 0xD6E8_FEB8_6659_FD93
        }
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    public mutating func roll(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &self)
    }

    /// True so often in a hundred times.
    public mutating func percent(_ part: Int) -> Bool { roll(0...99) < part }

    public mutating func pick<Element>(_ list: [Element]) -> Element {
        list[roll(0...list.count - 1)]
    }

    /// A place in so many bytes: an edge as often as any other place.
    public mutating func place(in count: Int) -> Int {
        pick([0, min(1, count), max(0, count - 1), count, roll(0...count), roll(0...count)])
    }

    /// Text that no compression makes short.
    public mutating func noise(_ count: Int) -> String {
        var text = ""
        while text.utf8.count < count { text += String(next(), radix: 36) }
        return text
    }
}
