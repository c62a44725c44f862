import RandomKit

/// The same rolls for the same seed.
struct Dice: RandomNumberGenerator {
    private var bits: SplitMix64

    init(seed: UInt64) {
        bits = SplitMix64(seed: seed)
    }

    mutating func next() -> UInt64 { bits.next() }

    /// 0 ..< bound.
    mutating func below(_ bound: Int) -> Int {
        Int(next(upperBound: UInt64(bound)))
    }

    /// True once in `count` times.
    mutating func once(in count: Int) -> Bool {
        below(count) == 0
    }

    mutating func pick<Element>(_ list: [Element]) -> Element {
        list[below(list.count)]
    }

    /// A seed nobody chose, so that other documents are tried in every run.
    static var freshSeed: UInt64 {
        var system = SystemRandomNumberGenerator()
        return system.next()
    }
}
