/// Something of ours that reads what others send, and what must hold whatever that is.
///
/// `scripts/fuzz` makes up inputs by the million; `FuzzCorpusTests` goes through those that are
/// kept. Both come in here.
protocol FuzzTarget {
    /// As `scripts/fuzz`, the folder of kept inputs and the dictionary call it.
    static var name: String { get }

    /// Reads an input.
    /// - Throws: `BrokenPromise` where something does not hold, or an error that should not have
    ///   come out.
    static func check(_ input: [UInt8]) throws
}

/// What did not hold.
struct BrokenPromise: Error, CustomStringConvertible {
    let description: String
}

/// Throws `BrokenPromise` unless the condition is true.
func hold(_ condition: Bool, _ promise: @autoclosure () -> String) throws(BrokenPromise) {
    guard condition else { throw BrokenPromise(description: promise()) }
}

/// Cuts bytes as a network may, by a seed: 0 hands them out one by one, others in pieces of up to
/// so many.
func pieces(of bytes: ArraySlice<UInt8>, seed: UInt8) -> [[UInt8]] {
    var pieces: [[UInt8]] = []
    var rest = bytes
    var state = UInt64(seed) &+ 1
    while !rest.isEmpty {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let count = 1 + Int(state >> 33) % (Int(seed) + 1)
        pieces.append(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
    }
    return pieces
}
