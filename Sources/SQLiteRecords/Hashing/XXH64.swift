/// XXH64: a fast 64-bit hash. It gives no protection against a person who wants two inputs to have
/// the same hash.
///
/// It follows the public specification
/// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): four lanes take 32 bytes at a
/// time, little endian, on every machine.
package struct XXH64: Sendable {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5
    private static let stripe = 32

    private let seed: UInt64
    private var lanes: Lanes
    /// Bytes that do not fill a stripe yet.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    package init(seed: UInt64 = 0) {
        self.seed = seed
        lanes = Lanes(seed: seed)
    }

    /// Adds bytes to the hashed input.
    /// - Complexity: O(*n*) in the bytes.
    package mutating func update(_ bytes: [UInt8]) {
        count &+= UInt64(bytes.count)
        guard !pending.isEmpty else {
            let end = Self.take(bytes, into: &lanes)
            pending.append(contentsOf: bytes[end...])
            return
        }
        // The buffer stays shorter than a stripe, or it holds all of the given bytes.
        pending.append(contentsOf: bytes)
        pending.removeFirst(Self.take(pending, into: &lanes))
    }

    private static func take(_ bytes: [UInt8], into lanes: inout Lanes) -> Int {
        lanes.take(bytes.span)
    }

    /// Returns the hash of all bytes added so far. More may be added afterwards.
    package func finished() -> UInt64 {
        Self.end(pending.span, from: 0, count: count, lanes: lanes, seed: seed)
    }

    /// Returns the hash of complete input.
    /// - Complexity: O(*n*) in the bytes.
    package static func hash(_ bytes: [UInt8], seed: UInt64 = 0) -> UInt64 {
        var lanes = Lanes(seed: seed)
        let span = bytes.span
        let end = lanes.take(span)
        return Self.end(span, from: end, count: UInt64(bytes.count), lanes: lanes, seed: seed)
    }

    private static func end(
        _ bytes: Span<UInt8>, from start: Int, count: UInt64, lanes: Lanes, seed: UInt64
    ) -> UInt64 {
        var hash = count >= UInt64(stripe) ? lanes.merged() : seed &+ prime5
        hash &+= count
        var index = start
        while index + 8 <= bytes.count {
            hash ^= round(0, word(bytes, index))
            hash = rotated(hash, 27) &* prime1 &+ prime4
            index += 8
        }
        if index + 4 <= bytes.count {
            hash ^= UInt64(half(bytes, index)) &* prime1
            hash = rotated(hash, 23) &* prime2 &+ prime3
            index += 4
        }
        while index < bytes.count {
            hash ^= UInt64(bytes[index]) &* prime5
            hash = rotated(hash, 11) &* prime1
            index += 1
        }
        hash ^= hash >> 33
        hash &*= prime2
        hash ^= hash >> 29
        hash &*= prime3
        return hash ^ hash >> 32
    }

    @inline(__always)
    private static func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 {
        word &<< bits | word &>> (64 &- bits)
    }

    @inline(__always)
    private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        rotated(lane &+ input &* prime2, 31) &* prime1
    }

    /// Returns eight bytes as a word. They are combined one by one, and the compiler makes one load
    /// of it.
    @inline(__always)
    private static func word(_ bytes: Span<UInt8>, _ i: Int) -> UInt64 {
        UInt64(half(bytes, i)) | UInt64(half(bytes, i &+ 4)) << 32
    }

    @inline(__always)
    private static func half(_ bytes: Span<UInt8>, _ i: Int) -> UInt32 {
        UInt32(bytes[i]) | UInt32(bytes[i &+ 1]) << 8 | UInt32(bytes[i &+ 2]) << 16
            | UInt32(bytes[i &+ 3]) << 24
    }

    private struct Lanes: Sendable {
        var a: UInt64
        var b: UInt64
        var c: UInt64
        var d: UInt64

        init(seed: UInt64) {
            a = seed &+ prime1 &+ prime2
            b = seed &+ prime2
            c = seed
            d = seed &- prime1
        }

        /// Takes all complete stripes.
        /// - Returns: The position after them.
        @inline(__always)
        mutating func take(_ bytes: Span<UInt8>) -> Int {
            var index = 0
            let last = bytes.count &- 32
            while index <= last {
                a = round(a, word(bytes, index))
                b = round(b, word(bytes, index &+ 8))
                c = round(c, word(bytes, index &+ 16))
                d = round(d, word(bytes, index &+ 24))
                index &+= 32
            }
            return index
        }

        func merged() -> UInt64 {
            var hash = rotated(a, 1) &+ rotated(b, 7) &+ rotated(c, 12) &+ rotated(d, 18)
            for lane in [a, b, c, d] {
                hash = (hash ^ round(0, lane)) &* prime1 &+ prime4
            }
            return hash
        }
    }
}
