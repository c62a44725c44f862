import CompressionKit
import DeflateKit
import Testing

/// Without the difference spelled out, which takes minutes for large arrays.
func expectSame(
    _ actual: [UInt8], _ expected: [UInt8], location: SourceLocation = #_sourceLocation
) {
    let isSame = actual == expected
    #expect(isSame, "\(actual.count) bytes, \(expected.count) expected", sourceLocation: location)
}

@Suite("Whole gzip")
struct OneShotGzipTests {
    private let limits = InflationLimits(bytes: 64 << 20, ratio: 250, ratioFloor: 1 << 20)

    private func text(_ count: Int) -> [UInt8] {
        Array((0..<count).map { "record \($0 &* 7_919) of \(count);" }.joined().utf8)
    }

    @Test("gives back what it compressed, and what zlib did", arguments: [0, 1, 2_000, 100_000])
    func roundTripOfOneShotGzip(count: Int) throws {
        let plain = text(count)
        for level in [0, 1, 6, 12, 99] as [Int32] {
            let packed = OneShotGzip.compress(plain, level: level)
            expectSame(try OneShotGzip.inflate(packed, limits: limits), plain)
            expectSame(try Gzip.inflate(packed, limits: limits), plain)
        }
        expectSame(try OneShotGzip.inflate(Gzip.compress(plain), limits: limits), plain)
    }

    @Test("says of every bad body what zlib says")
    func sameErrors() {
        let packed = OneShotGzip.compress(text(50))
        var wrongSum = packed
        wrongSum[packed.count - 8] ^= 1
        var wrongLength = packed
        wrongLength[packed.count - 4] &+= 1
        var shorterLength = packed
        shorterLength[packed.count - 3] &-= 1
        var notGzip = packed
        notGzip[0] = 0
        let bad: [([UInt8], CompressionError.Kind)] = [
            ([], .truncated), (Array(packed.dropLast()), .truncated),
            (Array(packed.prefix(20)), .truncated), (wrongSum, .checksum),
            (wrongLength, .checksum), (shorterLength, .checksum), (notGzip, .notGzip),
            (packed + [1], .trailingBytes), (packed + packed, .severalMembers),
        ]
        for (bytes, kind) in bad {
            let error = #expect(throws: CompressionError.self) {
                try OneShotGzip.inflate(bytes, limits: limits)
            }
            #expect(error?.kind == kind)
        }
    }

    @Test("refuses bodies beyond the limits, whatever length they tell")
    func bombs() {
        let bomb = OneShotGzip.compress([UInt8](repeating: 0, count: 4 << 20), level: 9)
        var liar = bomb
        liar.replaceSubrange((bomb.count - 4)..., with: [1, 0, 0, 0])
        for bytes in [bomb, liar] {
            let error = #expect(throws: CompressionError.self) {
                try OneShotGzip.inflate(bytes, limits: limits)
            }
            #expect(error?.kind == .ratio)
        }
        let plain = text(10_000)
        let packed = OneShotGzip.compress(plain)
        #expect(throws: Never.self) {
            try OneShotGzip.inflate(packed, limit: plain.count, ratio: 250, ratioFloor: 0)
        }
        let error = #expect(throws: CompressionError.self) {
            try OneShotGzip.inflate(packed, limit: plain.count - 1, ratio: 250, ratioFloor: 0)
        }
        #expect(error?.kind == .tooLarge)
    }
}
