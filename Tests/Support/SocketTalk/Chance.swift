internal import RandomKit

/// Chance from a seed.
package struct Chance: RandomNumberGenerator, Sendable {
    private var bits: SplitMix64

    /// - Parameter path: Numbers that lead from the seed to one of its many sequences.
    package init(_ seed: UInt64, _ path: Int...) {
        bits = SplitMix64(seed: seed)
        for step in path {
            bits = SplitMix64(
                seed: next() ^ UInt64(bitPattern: Int64(step)) &* 0xD6E8_FEB8_6659_FD93)
        }
    }

    package mutating func next() -> UInt64 { bits.next() }

    package mutating func roll(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &self)
    }

    /// True so often in a hundred times.
    package mutating func percent(_ part: Int) -> Bool { roll(0...99) < part }

    package mutating func pick<Element>(_ list: [Element]) -> Element {
        list[roll(0...list.count - 1)]
    }

    /// An offset in so many bytes: an edge as often as any other offset.
    package mutating func offset(in count: Int) -> Int {
        pick([0, min(1, count), max(0, count - 1), count, roll(0...count), roll(0...count)])
    }

    /// Text that no compression makes short.
    package mutating func noise(_ count: Int) -> String {
        var text = ""
        while text.utf8.count < count { text += String(next(), radix: 36) }
        return text
    }
}
