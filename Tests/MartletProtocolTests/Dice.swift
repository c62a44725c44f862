/// SplitMix64 (Steele, Lea, Flood, 2014): the same rolls for the same seed.
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

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
