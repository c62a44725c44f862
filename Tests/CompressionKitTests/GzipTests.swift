import CompressionKit
import Testing

/// Without the difference spelled out, which takes minutes for large arrays.
func expectSame(
    _ actual: [UInt8], _ expected: [UInt8], location: SourceLocation = #_sourceLocation
) {
    let isSame = actual == expected
    #expect(isSame, "\(actual.count) bytes, \(expected.count) expected", sourceLocation: location)
}

/// Bytes that neither repeat nor compress away, the same each time.
func mixed(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed
    return (0..<count).map { index in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return index % 3 == 0 ? UInt8(truncatingIfNeeded: state >> 56) : UInt8(index & 0x3f)
    }
}

@Suite("Gzip")
struct GzipTests {
    private let limits = InflationLimits(bytes: 64 << 20, ratio: 250, ratioFloor: 1 << 20)

    @Test("gives back what it compressed", arguments: [0, 1, 5, 4_096, 100_000, 3_000_001])
    func roundTripOfGzip(count: Int) throws {
        let plain = mixed(count)
        for level in [-1, 1, 6, 9, 20] as [Int32] {
            let packed = Gzip.compress(plain, level: level)
            expectSame(try Gzip.inflate(packed, limits: limits), plain)
        }
    }

    @Test("tells a body cut short at any byte")
    func truncatedGzip() {
        let packed = Gzip.compress(mixed(300))
        for count in 0..<packed.count {
            let error = #expect(throws: CompressionError.self) {
                try Gzip.inflate(Array(packed.prefix(count)), limits: limits)
            }
            #expect(error?.kind == .truncated, "cut after \(count)")
        }
    }

    @Test("gives no other data when a bit anywhere is changed")
    func damagedBits() {
        let plain = mixed(300)
        let packed = Gzip.compress(plain)
        // A bit that says nothing of the data (the time in the head, an unused code length) may
        // change; no other data may ever come out.
        var refused = 0
        for index in packed.indices {
            var broken = packed
            broken[index] ^= 0x10
            do {
                #expect(try Gzip.inflate(broken, limits: limits) == plain, "byte \(index)")
            } catch {
                refused += 1
            }
        }
        #expect(refused >= packed.count - 10)
        var wrongSum = packed
        wrongSum[packed.count - 8] ^= 1
        var wrongLength = packed
        wrongLength[packed.count - 1] ^= 1
        for broken in [wrongSum, wrongLength] {
            let error = #expect(throws: CompressionError.self) {
                try Gzip.inflate(broken, limits: limits)
            }
            #expect(error?.kind == .checksum)
        }
    }

    @Test("refuses what is not gzip")
    func bytesThatAreNoGzip() {
        for bytes in [Array("{\"maxRevision\":0}".utf8), [0x78, 0x9c, 3, 0, 0, 0, 0, 1]] {
            let error = #expect(throws: CompressionError.self) {
                try Gzip.inflate(bytes, limits: limits)
            }
            #expect(error?.kind == .notGzip)
        }
    }

    @Test("refuses what follows the data, and a second member")
    func following() {
        let packed = Gzip.compress(mixed(300))
        let trailing = #expect(throws: CompressionError.self) {
            try Gzip.inflate(packed + [0], limits: limits)
        }
        #expect(trailing?.kind == .trailingBytes)
        let second = #expect(throws: CompressionError.self) {
            try Gzip.inflate(packed + packed, limits: limits)
        }
        #expect(second?.kind == .severalMembers)
    }

    @Test("takes a body of exactly the limit and refuses one byte more")
    func limitOfBody() throws {
        let plain = mixed(10_000)
        let packed = Gzip.compress(plain)
        expectSame(try Gzip.inflate(packed, limit: 10_000, ratio: 250, ratioFloor: 1 << 20), plain)
        let error = #expect(throws: CompressionError.self) {
            try Gzip.inflate(packed, limit: 9_999, ratio: 250, ratioFloor: 1 << 20)
        }
        #expect(error?.kind == .tooLarge)
    }

    @Test("refuses a bomb by its ratio, below the limit of bytes")
    func bomb() throws {
        let plain = [UInt8](repeating: 0, count: 4 << 20)
        let packed = Gzip.compress(plain, level: 9)
        #expect(plain.count / packed.count > 250)
        let error = #expect(throws: CompressionError.self) {
            try Gzip.inflate(packed, limits: limits)
        }
        #expect(error?.kind == .ratio)
        // The same, small enough for the floor, is nobody's bomb.
        let small = [UInt8](repeating: 0, count: 1 << 20)
        expectSame(try Gzip.inflate(Gzip.compress(small, level: 9), limits: limits), small)
    }
}
