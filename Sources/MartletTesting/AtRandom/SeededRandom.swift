/// Evenly spread bits from a seed: SplitMix64 (Steele, Lea, Flood, 2014).
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) {
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, not including, `bound`.
    mutating func below(_ bound: Int) -> Int {
        Int(next() % UInt64(max(1, bound)))
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
