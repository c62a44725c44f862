internal import RandomKit

/// A generator of evenly distributed random bits. The same seed gives the same bits.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var bits: SplitMix64

    public init(seed: UInt64) {
        bits = SplitMix64(seed: seed)
    }

    public mutating func next() -> UInt64 { bits.next() }

    /// Returns a number from 0 up to, not including, `bound`.
    mutating func below(_ bound: Int) -> Int {
        bits.below(bound)
    }

    /// Returns true in `percent` of a hundred calls.
    package mutating func chance(_ percent: Int) -> Bool {
        below(100) < percent
    }

    /// Returns one of the elements. There must be at least one.
    package mutating func one<Element>(of elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    /// Returns one of the elements; nil if there is none.
    mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[below(elements.count)]
    }
}
