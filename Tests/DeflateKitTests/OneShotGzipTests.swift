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

    @Test("members in a row are one file for a reader, and end with their checksums")
    func members() throws {
        let plain = text(20_000)
        var packed: [UInt8] = []
        for start in stride(from: 0, to: plain.count, by: 65_537) {
            let piece = Array(plain[start..<min(plain.count, start + 65_537)])
            packed += OneShotGzip.compress(piece, level: 6)
            var checksum = CRC32()
            checksum.update(Array(piece.prefix(9)))
            checksum.update(Array(piece.dropFirst(9)))
            let written = packed.suffix(8).prefix(4).reversed().reduce(UInt32(0)) {
                $0 << 8 | UInt32($1)
            }
            #expect(written == checksum.value)
        }
        let reader = GzipReader()
        var output: [UInt8] = []
        for start in stride(from: 0, to: packed.count, by: 1_000) {
            output += try reader.inflate(Array(packed[start..<min(packed.count, start + 1_000)]))
        }
        try reader.finish()
        expectSame(output, plain)
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
