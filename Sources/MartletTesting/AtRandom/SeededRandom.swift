internal import RandomKit

/// Evenly spread bits from a seed.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var bits: SplitMix64

    public init(seed: UInt64) {
        bits = SplitMix64(seed: seed)
    }

    public mutating func next() -> UInt64 { bits.next() }

    /// A number from 0 up to, not including, `bound`.
    mutating func below(_ bound: Int) -> Int {
        bits.below(bound)
    }

    /// True `percent` times in a hundred.
    package mutating func chance(_ percent: Int) -> Bool {
        below(100) < percent
    }

    /// One of the elements, of which there is at least one.
    package mutating func one<Element>(of elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    /// One of the elements; nil where there is none.
    mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[below(elements.count)]
    }
}
