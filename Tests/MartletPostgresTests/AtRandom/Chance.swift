import RandomKit

/// Numbers from a seed.
struct Chance: RandomNumberGenerator {
    private var bits: SplitMix64

    init(seed: UInt64) { bits = SplitMix64(seed: seed &* 0x1234_5678_9abc_def1) }

    mutating func next() -> UInt64 { bits.next() }

    mutating func percent(_ percent: Int) -> Bool { number(0..<100) < percent }

    mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }

    mutating func one<Element>(of elements: [Element]) -> Element {
        elements[number(0..<elements.count)]
    }
}
